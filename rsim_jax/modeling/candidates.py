"""Which geoms may touch: MuJoCo's filters, its mixing of contact parameters, and what the pair table supports."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from rsim_jax.collision.pair_table import family_index
from rsim_jax.modeling.names import label
from rsim_jax.modeling.refuse import Refusals
from rsim_jax.structs import ELLIPSOID, HFIELD, MESH

OWN, MAXIMUM, FIRST, SECOND = 0, 1, 2, 3  # Model.pair_from_geoms
_UNSUPPORTED = {HFIELD: "hfield", ELLIPSOID: "ellipsoid", MESH: "mesh", int(mujoco.mjtGeom.mjGEOM_SDF): "sdf"}
_SHAPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")


@dataclass(frozen=True)
class Pair:
    """A candidate pair, geom a < geom b."""

    a: int
    b: int
    friction: float
    friction_source: int  # OWN, MAXIMUM, FIRST or SECOND
    margin: float  # m, how far apart the surfaces touch


@dataclass(frozen=True)
class _Contact:
    """Parameters of a pair before it is known to be supported."""

    condim: int
    friction: np.ndarray  # tangential twice, spinning, rolling twice
    source: int
    margin: float
    adhesion: float
    element: str  # what a refusal names


def find_pairs(compiled: mujoco.MjModel, body_link: tuple[int, ...], refusals: Refusals) -> tuple[Pair, ...]:
    """All pairs that can touch with an effect, sorted by family of shapes, then geom a, then geom b."""
    off = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    if compiled.opt.disableflags & off:
        return ()
    geom_link = np.asarray(body_link)[compiled.geom_bodyid]
    movable = geom_link < compiled.njnt
    effective = (movable[:, None] | movable[None, :]) & (geom_link[:, None] != geom_link[None, :])
    contacts = {
        (int(a), int(b)): _mixed(compiled, a, b)
        for a, b in np.argwhere(np.triu(_allowed(compiled) & effective, 1)).tolist()
    }
    for i in range(compiled.npair):
        a, b = sorted((int(compiled.pair_geom1[i]), int(compiled.pair_geom2[i])))
        if effective[a, b]:
            contacts[a, b] = _explicit(compiled, i)
    return _supported(compiled, contacts, refusals)


def _allowed(compiled: mujoco.MjModel) -> np.ndarray:
    """(ngeom, ngeom) bool: pairs that pass masks, parent and exclude filters."""
    body, weld = compiled.geom_bodyid, compiled.body_weldid
    masks = (compiled.geom_contype[:, None] & compiled.geom_conaffinity[None, :]) != 0
    masks |= masks.T
    geom_weld = weld[body]
    parent = weld[compiled.body_parentid[geom_weld]]
    related = (geom_weld[:, None] == parent[None, :]) | (parent[:, None] == geom_weld[None, :])
    in_world = (geom_weld[:, None] == 0) | (geom_weld[None, :] == 0)  # the world is nobody's parent here
    keeps_parents = bool(compiled.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    allowed = masks & (geom_weld[:, None] != geom_weld[None, :])
    if not keeps_parents:
        allowed &= ~related | in_world
    for signature in compiled.exclude_signature:
        first, second = divmod(int(signature), 1 << 16)
        allowed[np.ix_(body == first, body == second)] = False
        allowed[np.ix_(body == second, body == first)] = False
    return allowed


def _mixed(compiled: mujoco.MjModel, a: int, b: int) -> _Contact:
    """Parameters of two geoms: of the one with priority, else the larger condim and element-wise larger friction."""
    priority = int(compiled.geom_priority[a]) - int(compiled.geom_priority[b])
    condims, frictions = compiled.geom_condim[[a, b]], compiled.geom_friction[[a, b]]
    if priority == 0:
        condim, friction, source = int(condims.max()), frictions.max(axis=0), MAXIMUM
    else:
        winner = 0 if priority > 0 else 1
        condim, friction, source = int(condims[winner]), frictions[winner], (FIRST, SECOND)[winner]
    responsible = a if condims[0] == condim else b
    return _Contact(
        condim,
        friction[[0, 0, 1, 2, 2]],
        source,
        float(compiled.geom_margin[a] + compiled.geom_margin[b]),
        float(compiled.geom_adhesion[a] + compiled.geom_adhesion[b]),
        label(compiled, "geom", responsible),
    )


def _explicit(compiled: mujoco.MjModel, i: int) -> _Contact:
    return _Contact(
        int(compiled.pair_dim[i]),
        compiled.pair_friction[i],
        OWN,
        float(compiled.pair_margin[i]),
        float(compiled.pair_adhesion[i]),
        label(compiled, "pair", i),
    )


def _supported(
    compiled: mujoco.MjModel, contacts: dict[tuple[int, int], _Contact], refusals: Refusals
) -> tuple[Pair, ...]:
    _refuse_shapes(compiled, contacts, refusals)
    _refuse_parameters(contacts, refusals)
    found = []
    for (a, b), contact in contacts.items():
        family = family_index(int(compiled.geom_type[a]), int(compiled.geom_type[b]))
        if family is None:
            continue
        slippery = contact.condim == 1
        friction = 0.0 if slippery else float(contact.friction[0])
        found.append((family, Pair(a, b, friction, OWN if slippery else contact.source, contact.margin)))
    found.sort(key=lambda entry: (entry[0], entry[1].a, entry[1].b))
    return tuple(pair for _, pair in found)


def _refuse_shapes(compiled: mujoco.MjModel, contacts: dict[tuple[int, int], _Contact], refusals: Refusals) -> None:
    """Geoms of a shape without any family once each, other combinations pair by pair."""
    shapes = compiled.geom_type
    for g in sorted({g for pair in contacts for g in pair if int(shapes[g]) in _UNSUPPORTED}):
        kind = _UNSUPPORTED[int(shapes[g])]
        remedy = 'set contype="0" conaffinity="0" and use other shapes for contact'
        refusals.add(kind, label(compiled, "geom", g), f"contacts of type {kind} are not simulated", remedy)
    for a, b in contacts:
        types = int(shapes[a]), int(shapes[b])
        if family_index(*types) is None and not any(t in _UNSUPPORTED for t in types):
            element = f"{label(compiled, 'geom', a)} with {label(compiled, 'geom', b)}"
            value = f"contact of {_SHAPES[types[0]]} with {_SHAPES[types[1]]} is not simulated"
            refusals.add("pair", element, value, "use other shapes, or <exclude> the two bodies")


def _refuse_parameters(contacts: dict[tuple[int, int], _Contact], refusals: Refusals) -> None:
    named: set[tuple[str, str]] = set()

    def refuse(kind: str, element: str, value: str, remedy: str) -> None:
        if (kind, element) not in named:  # one line per geom, not per pair
            named.add((kind, element))
            refusals.add(kind, element, value, remedy)

    for contact in contacts.values():
        first, second, spinning, rolling = (float(contact.friction[k]) for k in (0, 1, 2, 3))
        rolling = max(rolling, float(contact.friction[4])) if contact.condim == 6 else 0.0
        if contact.condim >= 4 and (spinning > 0 or rolling > 0):
            value = f"condim {contact.condim} with spinning {spinning:g}, rolling {rolling:g} is not simulated"
            refuse("condim", contact.element, value, 'set condim="3"')
        if contact.condim >= 3 and first != second:
            value = f"friction {first:g}, {second:g} differs between tangents, which is not simulated"
            refuse("friction", contact.element, value, "make the first two equal")
        if contact.adhesion:
            value = f"adhesion {contact.adhesion:g} N is not simulated"
            refuse("adhesion", contact.element, value, "set it to 0")
