"""Give pairs of geoms compliant contact: they leave the candidates for rows and join those of penalty forces."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.collision.pair_table import candidates, family_index, penalty_topology
from rsim_jax.errors import ModelError
from rsim_jax.modeling.derive import PENALTY_NUMBERS, as_leaf
from rsim_jax.modeling.material import PenaltyContact
from rsim_jax.modeling.registry import compiled, register
from rsim_jax.modeling.stiffness import check_step
from rsim_jax.structs import Model, PenaltyGeometry, PenaltyParameters, PenaltyVelocity, Topology

_LAW_TRIAL = (2, 3)  # contact points and worlds of the trial evaluation of a user's law
GeomChoice = int | str | Sequence[int | str]


def set_contact_model(
    model: Model, geom_a: GeomChoice, geom_b: GeomChoice, penalty: PenaltyContact | Sequence[PenaltyContact]
) -> Model:
    """A model in which some pairs of geoms have compliant contact; the last call for a pair holds.

    Args:
        model: from `load` or `Scene.compile`.
        geom_a: id or name of a geom, or several; with each of them goes each of `geom_b`, in either order.
        geom_b: the same.
        penalty: as for `Scene.set_contact_model`.

    Raises:
        ModelError: for unknown geoms, pairs that never collide, a law of the wrong shape, too long a time step.
    """
    owner = f"{model.topology.source}: set_contact_model({geom_a!r}, {geom_b!r})"
    penalties = penalty_models(owner, penalty)
    first, second = (chosen_geoms(model, owner, geoms) for geoms in (geom_a, geom_b))
    changed, numbers = with_penalty(model, owner, first, second, penalties)
    if numbers is None:
        raise ModelError(f"{owner}: these geoms never collide: enable their contact in the file first")
    check_step(changed, dict(zip(numbers, penalties, strict=True)))
    return changed


def penalty_models(owner: str, value: Any) -> tuple[PenaltyContact, ...]:
    """One penalty model or several as a tuple."""
    models = tuple(value) if isinstance(value, Sequence) else (value,)
    for model in models or (None,):
        if not isinstance(model, PenaltyContact):
            raise ModelError(f"{owner}: {model!r}: give an rsim_jax.PenaltyContact")
    return models


def chosen_geoms(model: Model, owner: str, choice: GeomChoice) -> set[int]:
    """Ids of geoms given by id or name, one or several."""
    several = not isinstance(choice, str) and isinstance(choice, Iterable)
    return set(_ids(owner, "geom", model.topology.geom_names, choice if several else (choice,)))


def _ids(owner: str, what: str, names: tuple[str, ...], values: Iterable[Any]) -> tuple[int, ...]:
    found = []
    for value in values:
        if isinstance(value, str) and value in names:
            found.append(names.index(value))
        elif isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < len(names):
            found.append(int(value))
        else:
            known = ", ".join(n for n in names if n) or "none"
            raise ModelError(f"{owner}: no {what} {value!r}; ids are 0 ... {len(names) - 1}, names: {known}")
    return tuple(found)


def with_penalty(
    model: Model, owner: str, first: set[int], second: set[int], penalties: tuple[PenaltyContact, ...]
) -> tuple[Model, tuple[int, ...] | None]:
    """The model with compliant contact between the geoms `first` and `second`, and the numbers of `penalties` in it.

    A pair to which the first of `penalties` is not restricted takes it, whatever it had before; other pairs keep a
    penalty model that they have, and lose their rigid contact. Numbers are None when no pair matches.
    """

    def matches(pair: tuple[int, int]) -> bool:
        a, b = pair
        return (a in first and b in second) or (a in second and b in first)

    topology = model.topology
    moved = [p for p, pair in enumerate(topology.pair_geoms) if matches(pair)]
    present = [p for p, pair in enumerate(topology.penalty_pairs) if matches(pair)]
    if not moved and not present:
        return model, None
    for penalty in penalties:
        _check_law(owner, penalty)
    source = compiled(model)
    model, numbers = _numbered(model, owner, penalties)
    bodies = model.topology.penalty_bodies[numbers[0]]
    taken = [p for p in present if _acts(topology, topology.penalty_pairs[p], bodies)]
    changed = _moved(model, moved, taken, numbers[0])
    register(changed, source)
    return changed, numbers


def _acts(topology: Topology, pair: tuple[int, int], bodies: tuple[int, ...] | None) -> bool:
    return bodies is None or any(topology.geom_body[g] in bodies for g in pair)


def _numbered(model: Model, owner: str, penalties: tuple[PenaltyContact, ...]) -> tuple[Model, tuple[int, ...]]:
    """The model with these penalty models among its own, and their numbers."""
    topology, numbers = model.topology, []
    laws, restrictions = list(topology.penalty_laws), list(topology.penalty_bodies)
    table = np.asarray(model.penalty_numbers)[:, :, 0]
    for penalty in penalties:
        column = np.asarray([penalty.kp, penalty.kc, penalty.n, penalty.mu, penalty.v_lin], table.dtype)
        bodies = _restriction(owner, topology, penalty)
        known = [
            m
            for m, law in enumerate(laws)
            if law is penalty.law and restrictions[m] == bodies and (table[:, m] == column).all()
        ]
        if not known:
            laws.append(penalty.law)
            restrictions.append(bodies)
            table = np.concatenate([table, column[:, None]], axis=1)
        numbers.append(known[0] if known else len(laws) - 1)
    topology = dataclasses.replace(topology, penalty_laws=tuple(laws), penalty_bodies=tuple(restrictions))
    leaf = as_leaf(table[..., None], model.dtype)
    return dataclasses.replace(model, topology=topology, penalty_numbers=leaf), tuple(numbers)


def _restriction(owner: str, topology: Topology, penalty: PenaltyContact) -> tuple[int, ...] | None:
    """Sorted ids of the bodies that a penalty model acts on; None for all."""
    bodies = penalty.bodies
    if bodies is None:
        return None
    if all(isinstance(b, bool) for b in bodies) and len(bodies):
        if len(bodies) != topology.nbody:
            raise ModelError(
                f"{owner}: the mask bodies has {len(bodies)} entries; this model has {topology.nbody} bodies"
            )
        return tuple(int(b) for b in np.flatnonzero(bodies))
    return tuple(sorted(set(_ids(owner, "body", topology.body_names, bodies))))


def _moved(model: Model, moved: list[int], taken: list[int], number: int) -> Model:
    """Rigid pairs `moved` become penalty pairs; they and the penalty pairs `taken` have penalty model `number`."""
    topology = model.topology
    types = topology.geom_type
    joined = [*topology.penalty_pairs, *(topology.pair_geoms[p] for p in moved)]
    order = sorted(range(len(joined)), key=lambda i: (family_index(*(types[g] for g in joined[i])), *joined[i]))
    given = {*taken, *range(topology.npenalty, len(joined))}
    rest = [p for p in range(topology.npair) if p not in set(moved)]
    leaves = {}
    for field in dataclasses.fields(model):
        value = getattr(model, field.name)
        if field.name.startswith("pair_") and not field.name.startswith("pair_penalty_"):
            leaves[field.name] = jax.device_put(np.asarray(value)[..., rest, :])
    margin = np.concatenate([model.penalty_margin, np.asarray(model.pair_margin)[moved]])
    leaves["penalty_margin"] = jax.device_put(margin[order])
    values = {"pair_penalty_model": np.asarray(number, np.int32)}
    values |= {name: np.asarray(model.penalty_numbers)[k, number, 0] for k, name in enumerate(PENALTY_NUMBERS)}
    for name, value in values.items():
        old = np.asarray(getattr(model, name))
        new = np.concatenate([old, np.zeros((len(moved), old.shape[-1]), old.dtype)])
        new[sorted(given)] = value
        leaves[name] = jax.device_put(new[order])
    topology = dataclasses.replace(
        topology,
        pair_geoms=tuple(topology.pair_geoms[p] for p in rest),
        penalty_pairs=tuple(joined[i] for i in order),
    )
    topology = dataclasses.replace(
        topology,
        max_contacts=min(topology.max_contacts, len(candidates(topology))),
        penalty_candidates=len(candidates(penalty_topology(topology))),
    )
    return dataclasses.replace(model, topology=topology, **leaves)


def _check_law(owner: str, penalty: PenaltyContact) -> None:
    """Refuse a user's law that fails on a trial or returns the wrong shapes."""
    if penalty.law is None:
        return
    points, worlds = _LAW_TRIAL
    shared = jax.ShapeDtypeStruct((points, 1), jnp.float32)
    scalar = jax.ShapeDtypeStruct((points, worlds), jnp.float32)
    vector = jax.ShapeDtypeStruct((3, points, worlds), jnp.float32)
    arguments = (
        PenaltyParameters(kp=shared, kc=shared, n=shared, mu=shared, v_lin=shared),
        PenaltyGeometry(depth=scalar, point=vector, normal=vector),
        PenaltyVelocity(rate=scalar, slip=vector),
    )
    name = getattr(penalty.law, "__name__", repr(penalty.law))
    try:
        found = jax.eval_shape(penalty.law, *arguments)
    except Exception as error:  # whatever a user's function may raise
        raise ModelError(f"{owner}: law {name} fails on {points} contact points in {worlds} worlds: {error}") from error
    shapes = tuple(getattr(x, "shape", None) for x in found) if isinstance(found, tuple | list) else found
    if shapes != (scalar.shape, vector.shape):
        wanted = f"(F_n {scalar.shape}, F_t {vector.shape})"
        raise ModelError(
            f"{owner}: law {name} returns shapes {shapes}; give {wanted} for {points} points in {worlds} worlds"
        )
