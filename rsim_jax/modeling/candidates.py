"""Which geoms may touch: MuJoCo's filters, its mixing of contact parameters, and what the pair table supports."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from rsim_jax.collision.pair_table import family_index
from rsim_jax.modeling.names import label
from rsim_jax.modeling.refuse import Refusals

OWN, MAXIMUM, FIRST, SECOND = 0, 1, 2, 3  # Model.pair_from_geoms
_UNSUPPORTED = {int(mujoco.mjtGeom.mjGEOM_SDF): "sdf"}
_SHAPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")


@dataclass(frozen=True)
class Pairs:
    """Pairs of geoms that may touch, one row each."""

    geoms: np.ndarray  # (n, 2) geom a < geom b
    condim: np.ndarray  # (n,)
    friction: np.ndarray  # (n, 5) tangential twice, spinning, rolling twice
    source: np.ndarray  # (n,) OWN, MAXIMUM, FIRST or SECOND
    margin: np.ndarray  # (n,) m, how far apart the surfaces touch
    adhesion: np.ndarray  # (n,) N
    explicit: np.ndarray  # (n,) index of the <pair> element, -1 where there is none

    def __len__(self) -> int:
        return len(self.geoms)

    def take(self, rows: np.ndarray) -> Pairs:
        """These rows, in this order."""
        return Pairs(**{name: value[rows] for name, value in vars(self).items()})

    @property
    def sliding(self) -> np.ndarray:
        """(n,) coefficient of sliding friction, 0 for condim 1."""
        return np.where(self.condim == 1, 0.0, self.friction[:, 0])

    @property
    def spinning(self) -> np.ndarray:
        """(n,) m, coefficient of spinning friction, 0 below condim 4."""
        return np.where(self.condim >= 4, self.friction[:, 2], 0.0)

    @property
    def rolling(self) -> np.ndarray:
        """(n,) m, coefficient of rolling friction, 0 below condim 6."""
        return np.where(self.condim == 6, self.friction[:, 3], 0.0)


def find_pairs(compiled: mujoco.MjModel, body_link: tuple[int, ...], refusals: Refusals) -> Pairs:
    """All pairs that can touch with an effect, sorted by family of shapes, then geom a, then geom b."""
    off = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    geom_link = np.asarray(body_link)[compiled.geom_bodyid]
    movable = geom_link < compiled.njnt
    effective = (movable[:, None] | movable[None, :]) & (geom_link[:, None] != geom_link[None, :])
    if compiled.opt.disableflags & off:
        effective[:] = False
    explicit = np.sort(np.stack([compiled.pair_geom1, compiled.pair_geom2], -1).reshape(-1, 2), -1)
    allowed = np.triu(_allowed(compiled) & effective, 1)
    allowed[explicit[:, 0], explicit[:, 1]] = False
    chosen = np.flatnonzero(effective[explicit[:, 0], explicit[:, 1]])
    pairs = _joined(_mixed(compiled, np.argwhere(allowed)), _explicit(compiled, chosen, explicit[chosen]))
    _refuse_shapes(compiled, pairs, refusals)
    _refuse_parameters(compiled, pairs, refusals)
    return _sorted_by_family(compiled, pairs)


def _allowed(compiled: mujoco.MjModel) -> np.ndarray:
    """(ngeom, ngeom) bool: pairs that pass masks, parent and exclude filters."""
    body, weld = compiled.geom_bodyid, compiled.body_weldid
    masks = (compiled.geom_contype[:, None] & compiled.geom_conaffinity[None, :]) != 0
    masks |= masks.T
    geom_weld = weld[body]
    parent = weld[compiled.body_parentid[geom_weld]]
    related = (geom_weld[:, None] == parent[None, :]) | (parent[:, None] == geom_weld[None, :])
    in_world = (geom_weld[:, None] == 0) | (geom_weld[None, :] == 0)  # the world is nobody's parent here
    allowed = masks & (geom_weld[:, None] != geom_weld[None, :])
    if not compiled.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT:
        allowed &= ~related | in_world
    for signature in compiled.exclude_signature:
        first, second = divmod(int(signature), 1 << 16)
        allowed[np.ix_(body == first, body == second)] = False
        allowed[np.ix_(body == second, body == first)] = False
    return allowed


def _mixed(compiled: mujoco.MjModel, geoms: np.ndarray) -> Pairs:
    """Parameters of two geoms: of the one with priority, else the larger condim and element-wise larger friction."""
    priority, condim, friction = (
        v[geoms] for v in (compiled.geom_priority, compiled.geom_condim, compiled.geom_friction)
    )
    source = np.select([priority[:, 0] > priority[:, 1], priority[:, 0] < priority[:, 1]], [FIRST, SECOND], MAXIMUM)
    three = np.where(
        (source == MAXIMUM)[:, None],
        friction.max(1),
        np.where((source == FIRST)[:, None], friction[:, 0], friction[:, 1]),
    )
    return Pairs(
        geoms=geoms,
        condim=np.select([source == FIRST, source == SECOND], [condim[:, 0], condim[:, 1]], condim.max(1)),
        friction=three[:, [0, 0, 1, 2, 2]],
        source=source,
        margin=compiled.geom_margin[geoms].sum(1),
        adhesion=compiled.geom_adhesion[geoms].sum(1),
        explicit=np.full(len(geoms), -1),
    )


def _explicit(compiled: mujoco.MjModel, rows: np.ndarray, geoms: np.ndarray) -> Pairs:
    return Pairs(
        geoms=geoms,
        condim=compiled.pair_dim[rows],
        friction=compiled.pair_friction[rows],
        source=np.full(len(rows), OWN),
        margin=compiled.pair_margin[rows],
        adhesion=compiled.pair_adhesion[rows],
        explicit=rows,
    )


def _joined(first: Pairs, second: Pairs) -> Pairs:
    return Pairs(**{name: np.concatenate([value, getattr(second, name)]) for name, value in vars(first).items()})


def _sorted_by_family(compiled: mujoco.MjModel, pairs: Pairs) -> Pairs:
    """Supported pairs only; condim 1 pairs own their friction, which is zero."""
    types = compiled.geom_type[pairs.geoms].tolist()
    order = [
        (family, *pairs.geoms[row].tolist(), row)
        for row, shapes in enumerate(types)
        if (family := family_index(*shapes)) is not None
    ]
    kept = pairs.take(np.array([row for *_, row in sorted(order)], int))
    kept.source[kept.condim == 1] = OWN
    return kept


def _refuse_shapes(compiled: mujoco.MjModel, pairs: Pairs, refusals: Refusals) -> None:
    """Geoms of a shape without any family once each, other combinations pair by pair."""
    types = compiled.geom_type
    for g in np.unique(pairs.geoms):
        kind = _UNSUPPORTED.get(int(types[g]))
        if kind:
            remedy = 'set contype="0" conaffinity="0" and use other shapes for contact'
            refusals.add(kind, label(compiled, "geom", int(g)), f"contacts of type {kind} are not simulated", remedy)
    for a, b in pairs.geoms.tolist():
        shapes = int(types[a]), int(types[b])
        if family_index(*shapes) is None and not any(s in _UNSUPPORTED for s in shapes):
            element = f"{label(compiled, 'geom', a)} with {label(compiled, 'geom', b)}"
            value = f"contact of {_SHAPES[shapes[0]]} with {_SHAPES[shapes[1]]} is not simulated"
            refusals.add("pair", element, value, "use other shapes, or <exclude> the two bodies")


def _refuse_parameters(compiled: mujoco.MjModel, pairs: Pairs, refusals: Refusals) -> None:
    """Anisotropic and adhesive contacts; one line for each geom or <pair> that asks for one."""
    sliding = (pairs.condim >= 3) & (pairs.friction[:, 0] != pairs.friction[:, 1])
    rolling = (pairs.condim == 6) & (pairs.friction[:, 3] != pairs.friction[:, 4])
    named: set[tuple[str, str]] = set()
    for row in np.flatnonzero(sliding | rolling | (pairs.adhesion != 0)):
        element, f = _responsible(compiled, pairs, row), pairs.friction[row]
        faults = (
            (sliding, "friction", f"friction {f[0]:g}, {f[1]:g} along two tangents", "make them equal"),
            (rolling, "friction", f"rolling friction {f[3]:g}, {f[4]:g} about two tangents", "make them equal"),
            (pairs.adhesion, "adhesion", f"adhesion {pairs.adhesion[row]:g} N", "set it to 0"),
        )
        for is_faulty, kind, value, remedy in faults:
            if is_faulty[row] and (kind, element) not in named:
                named.add((kind, element))
                refusals.add(kind, element, f"{value} is not simulated", remedy)


def _responsible(compiled: mujoco.MjModel, pairs: Pairs, row: int) -> str:
    """The <pair>, or the geom whose condim or adhesion holds."""
    if pairs.explicit[row] >= 0:
        return label(compiled, "pair", int(pairs.explicit[row]))
    a, b = pairs.geoms[row].tolist()
    return label(compiled, "geom", a if compiled.geom_adhesion[a] else b)
