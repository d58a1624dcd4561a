"""Contacts of the last step for people, sensors and other simulators' tools.

Conventions of Drake's PointPairContactInfo: geometry is of the start of the step, velocities and forces of its end;
the force acts on body B at the contact point, the other body gets its opposite. Forces are impulse / dt; for compliant
contacts that is the mean over the step's derivative evaluations.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.contact.frames import frame, to_world
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import Contacts, Model, PenaltyContacts, PointPair, PointPairContactInfo, State


def step_report(model: Model, state: State, geoms: jax.Array) -> PointPairContactInfo:
    """The contacts of the last step: max_contacts slots, then one for each candidate with compliant contact.

    `geoms` (2, slots, N) of every slot; those of inactive slots mean nothing.
    """
    slots, penalties = model.topology.max_contacts, model.topology.penalty_candidates

    def contacts(x: jax.Array) -> jax.Array:
        last = x.shape[-2]
        return concatenate([x[..., :slots, :], x[..., last - penalties : last, :]], axis=-2)

    rows = jax.tree.map(contacts, state.rows)
    gap, normal, impulse, velocity = rows.gap, rows.normal, rows.impulse, rows.velocity
    loaded = impulse[2] > 0
    valid = rows.active & ((gap <= 0) | loaded)
    return _record(
        model,
        geoms,
        valid,
        speculative=valid & (gap > 0),
        point=rows.point + state.origin[:, None],
        normal=normal,
        gap=gap,
        force=to_world(frame(normal), impulse) / model.dt,
        separation=velocity[2],
        slip=vectors.safe_norm(velocity[:2]),
    )


def pose_report(
    model: Model, contacts: Contacts, penalty: PenaltyContacts | None, origin: jax.Array, geoms: jax.Array
) -> PointPairContactInfo:
    """The touching candidates of a pose, without forces or velocities; slots as in `step_report`."""
    active = contacts.active
    point, normal, gap = contacts.point, contacts.normal, contacts.gap
    if penalty is not None:
        active = concatenate([active, penalty.enabled & (penalty.gap <= 0)])
        point = concatenate([point, penalty.point], axis=1)
        normal = concatenate([normal, penalty.normal], axis=1)
        gap = concatenate([gap, penalty.gap])
    zero = jnp.zeros_like(gap)
    return _record(
        model,
        geoms,
        active,
        speculative=jnp.zeros_like(active),
        point=point + origin[:, None],
        normal=normal,
        gap=gap,
        force=jnp.zeros_like(point),
        separation=zero,
        slip=zero,
    )


def _record(model, geoms, valid, *, speculative, point, normal, gap, force, separation, slip):
    owner = jnp.asarray([*model.topology.geom_body, 0], jnp.int32)
    ids = [jnp.where(valid, geom, -1) for geom in geoms]
    bodies = [jnp.where(valid, owner[geom], -1) for geom in geoms]

    def shown(x: jax.Array) -> jax.Array:
        return jnp.where(valid, x, 0)

    depth = -gap
    return PointPairContactInfo(
        valid=valid,
        speculative=speculative,
        body_a=bodies[0],
        body_b=bodies[1],
        geom_a=ids[0],
        geom_b=ids[1],
        contact_force=shown(force),
        contact_point=shown(point),
        separation_speed=shown(separation),
        slip_speed=shown(slip),
        point_pair=PointPair(
            p_WCa=shown(point + 0.5 * depth * normal),
            p_WCb=shown(point - 0.5 * depth * normal),
            nhat_BA_W=shown(-normal),
            depth=shown(depth),
        ),
    )


def net_force(model: Model, report: PointPairContactInfo) -> jax.Array:
    """Sum of contact forces on every body (3, nbody, N), world axes, N."""
    body = jnp.arange(model.nbody)[:, None, None]  # (nbody, 1, 1) against (K, N)
    weight = (report.body_b == body).astype(model.dtype) - (report.body_a == body).astype(model.dtype)
    return jnp.sum(weight * report.contact_force[:, None], axis=2)


@dataclass(frozen=True)
class PairRecord:
    """One contact of one world, in plain numbers."""

    body_a: int
    body_b: int
    geom_a: int
    geom_b: int
    speculative: bool
    contact_force: np.ndarray  # (3,) N on body B, world axes
    contact_point: np.ndarray  # (3,) m, world
    separation_speed: float  # m/s, > 0 apart
    slip_speed: float  # m/s
    p_WCa: np.ndarray
    p_WCb: np.ndarray
    nhat_BA_W: np.ndarray
    depth: float  # m, > 0 penetrating


def pair_report(report: PointPairContactInfo, world: int = 0) -> list[PairRecord]:
    """The valid contacts of one world as a list, on the host."""
    host = jax.tree.map(lambda x: np.asarray(x)[..., world], report)
    records = []
    for k in np.flatnonzero(host.valid):
        records.append(
            PairRecord(
                body_a=int(host.body_a[k]),
                body_b=int(host.body_b[k]),
                geom_a=int(host.geom_a[k]),
                geom_b=int(host.geom_b[k]),
                speculative=bool(host.speculative[k]),
                contact_force=host.contact_force[:, k],
                contact_point=host.contact_point[:, k],
                separation_speed=float(host.separation_speed[k]),
                slip_speed=float(host.slip_speed[k]),
                p_WCa=host.point_pair.p_WCa[:, k],
                p_WCb=host.point_pair.p_WCb[:, k],
                nhat_BA_W=host.point_pair.nhat_BA_W[:, k],
                depth=float(host.point_pair.depth[k]),
            )
        )
    return records
