"""From contacts to rows: Jacobians, targets and bounds.

Velocity of a contact, B relative to A in its frame, v = J qd + surface velocity; for dof i with motion (w_i, l_i)
about its tree's origin o, moving side s_i (+1 B, -1 A), and frame axis e at point p:

    J[e, i] = s_i (e . l_i + ((p - o) x e) . w_i) + (gap+ / 2) s_i^2 (n x e) . w_i,   gap+ = max(gap, 0)

p is the middle of the gap; the last term moves it to the body's own surface, where the shapes will touch.

Targets along the normal (dt = step, gap < 0 penetrating, v- = velocity at the start of the step):

    touching:   b = min(beta max(0, -gap - slop), max_correction),  beta = clamp(0.2 erp, 0, 0.3) / dt
    apart:      b = -gap / dt                (semi_implicit; the trapezoid rule moves by the mean velocity, so there
                b = -2 gap / dt - v-)
    impact:     b = max(b, rebound) where approach = -v- exceeds the threshold and closes the gap
    receding:   b = -e max(0, v- - threshold) where shapes still overlap but part, and nothing is corrected

An impulse lam changes the energy by lam (v- + v+) / 2, so that b = -e v- at either sign keeps it at e = 1, also where
a third body pushes back a pair that has just bounced; b = 0 there would add lam v- / 2.

The bounce happens at the surface. With the row's free acceleration a towards it, a body that is a gap away still gains
2 a gap of v^2 on the way down and loses as much on the way back, so that a bounce met early adds no energy:

    rebound = e (approach - threshold) sqrt(1 - 2 a gap+ (1 - e^2) / (e approach)^2)
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rsim_jax.contact.frames import to_frame
from rsim_jax.contact.system import dot_rows, pack_angular, pack_contact
from rsim_jax.lanes import vectors, windows
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Contacts, Model, record

RESTING_SPEED = 1e-5  # m/s: slower approaches are rounding at rest, no impact, even with a threshold of 0
MAX_BETA = 0.3  # largest share of a penetration corrected in one step
LIMIT_CORRECTION = (1.0, 5.0)  # m/s for slides, rad/s for hinges
FARTHEST = 1e9  # m or rad, where the stops of an unlimited joint are


class Turning:
    """What a contact's rolling and spinning friction need."""

    rolling: jax.Array  # (N,) or (K, N), m: bound of the torque across the normal over the normal force
    spinning: jax.Array  # the same along the normal
    spin: jax.Array  # (3, N) or (K, 3, N) rad/s, of prescribed bodies, B relative to A, world axes


Turning = record(Turning)


class Slot:
    """One contact slot of all worlds, N on the last axis; see structs.Contacts for the fields."""

    point: jax.Array  # (3, N)
    axes: tuple[jax.Array, jax.Array, jax.Array]  # contact frame, (3, N) each
    side: jax.Array  # (nv, N), tree order of dofs
    carried: jax.Array  # (3, N) velocity of prescribed surfaces, B relative to A, world axes
    gap: jax.Array  # (N,), like all that follow
    friction: jax.Array
    restitution: jax.Array
    restitution_threshold: jax.Array
    static_friction: jax.Array
    static_friction_velocity: jax.Array
    turning: Turning | None = None


Slot = record(Slot)


def contact_jacobian(
    slot: Slot, angular: jax.Array, linear: jax.Array, tree_origin: jax.Array, dof_tree: tuple[int, ...]
) -> jax.Array:
    """J (3, nv, N) of one slot; motions (3, nv, N), their trees' origins (3, ntree, N)."""
    arm = fence(slot.point[:, None] - tree_origin)
    half = fence(0.5 * jnp.maximum(slot.gap, 0) * slot.side * slot.side)
    tangents = (slot.axes[1], -slot.axes[0], None)  # n x e
    rows = []
    for axis, across in zip(slot.axes, tangents, strict=True):
        e = axis[:, None]
        moment = take(vectors.cross(arm, jnp.broadcast_to(e, arm.shape)), dof_tree)
        row = slot.side * (vectors.dot(e, linear) + vectors.dot(moment, angular))
        rows.append(row if across is None else row + half * vectors.dot(across[:, None], angular))
    return stack(rows)


def contact_row(
    model: Model, slot: Slot, whitened: jax.Array, before: jax.Array, velocity: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(packed row for RowSystem.contact, whether it is an impact (N,)).

    Args:
        model: the scene.
        slot: geometry and material.
        whitened: Y (3, width, N).
        before: J qd (3, N) at the start of the step, without what prescribed surfaces bring.
        velocity: the same of the free velocity.
    """
    surface = to_frame(slot.axes, slot.carried)
    before, velocity = fence((before + surface, velocity + surface))
    target = contact_target(model, slot, before[2], velocity[2])
    impact = fence(-before[2] > jnp.maximum(slot.restitution_threshold, RESTING_SPEED))
    return pack_contact(whitened, velocity, target, effective_friction(slot, before)), impact


def angular_jacobian(slot: Slot, angular: jax.Array) -> jax.Array:
    """J (3, nv, N) of the relative angular velocity of one slot in its frame; motions (3, nv, N)."""
    return stack([slot.side * vectors.dot(axis[:, None], angular) for axis in slot.axes])


def angular_row(slot: Slot, whitened: jax.Array, velocity: jax.Array) -> jax.Array:
    """Packed row for RowSystem.angular from Y (3, width, N) and the free J qd (3, N)."""
    turning = slot.turning
    c = fence(velocity + to_frame(slot.axes, turning.spin))
    return pack_angular(whitened, c, turning.rolling, turning.spinning)


def along(jacobian: jax.Array, u: jax.Array) -> jax.Array:
    """J u (3, N)."""
    return stack([dot_rows(jacobian[r], u) for r in range(3)])


def pair_angular_row(slot: Slot, view: Any, together: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(Y (3, 2 w, N), free J qd (3, N)) of the relative angular velocity of a slot between two links."""
    y, free = [], []
    for axis in slot.axes:
        e = axis[:, None]
        both = fence(vectors.dot(e[:, None], view.angular))  # (w, 2, N)
        a, b = -both[:, 0], both[:, 1]
        y.append(jnp.concatenate([jnp.where(together, a + b, a), jnp.where(together, 0, b)]))
        speed = vectors.dot(e, view.free[:3])
        free.append(speed[1] - speed[0])
    return fence(jnp.stack(y)), stack(free)


def pair_row(slot: Slot, view: Any, together: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(Y (3, 2 w, N), J qd (3, N) at the start of the step and of the free velocity) of a slot between two links.

    Args:
        slot: geometry; `side` is not looked at.
        view: dynamics.tree_blocks.LinkView of the links of A and B.
        together: (N,) whether both are links of one tree, which then has the block of A to itself.
    """
    half = jnp.where(together, 0, 0.5 * jnp.maximum(slot.gap, 0)) * slot.axes[2]
    arms = fence(stack([slot.point - half, slot.point + half], axis=1) - view.origin)  # (3, 2, N)
    y, start, free = [], [], []
    for axis in slot.axes:
        e = jnp.broadcast_to(axis[:, None], arms.shape)
        moment = vectors.cross(arms, e)
        both = fence(vectors.dot(e[:, None], view.linear) + vectors.dot(moment[:, None], view.angular))  # (w, 2, N)
        a, b = -both[:, 0], both[:, 1]
        y.append(jnp.concatenate([jnp.where(together, a + b, a), jnp.where(together, 0, b)]))
        for speeds, twist in ((start, view.start), (free, view.free)):
            speed = vectors.dot(e, twist[3:]) + vectors.dot(moment, twist[:3])
            speeds.append(speed[1] - speed[0])
    return fence(jnp.stack(y)), stack(start), stack(free)


def effective_friction(slot: Slot, start_velocity: jax.Array) -> jax.Array:
    """mu + (mu_s - mu) (1 - |v_t|/v_s) below the static velocity v_s, else mu: (N,)."""
    slip = vectors.safe_norm(start_velocity[:2])
    threshold = slot.static_friction_velocity
    usable = threshold > 0
    blend = jnp.where(usable, jnp.maximum(0, 1 - slip / jnp.where(usable, threshold, 1)), 0)
    return fence(slot.friction + (slot.static_friction - slot.friction) * blend)


def contact_target(model: Model, slot: Slot, v: jax.Array, free: jax.Array) -> jax.Array:
    """Post-step normal velocity b (N,) of a contact whose normal velocity starts at v (N,) and would become `free`."""
    dt, gap = model.dt, slot.gap
    push = jnp.minimum(beta(model) * jnp.maximum(0, -gap - model.slop), model.max_correction)
    allowance = -2 * gap / dt - v if model.topology.integrator == "trapezoid" else -gap / dt
    approach = jnp.maximum(0, -v)
    impact = (approach > slot.restitution_threshold) & (approach * dt > gap)
    bounce = rebound(slot.restitution, approach, slot.restitution_threshold, gap, (v - free) / dt)
    parting = jnp.where(push > 0, push, -slot.restitution * jnp.maximum(0, v - slot.restitution_threshold))
    target = jnp.where(gap > 0, allowance, parting)
    return fence(jnp.where(impact & (slot.restitution > 0), jnp.maximum(target, bounce), target))


def rebound(e: jax.Array, approach: jax.Array, threshold: jax.Array, gap: jax.Array, a: jax.Array) -> jax.Array:
    """Speed after an impact; e (approach - threshold) at the surface, less when it is met a gap ahead."""
    kept = e * approach
    usable = kept > 0
    lost = 2 * jnp.maximum(a, 0) * jnp.maximum(gap, 0) * (1 - e * e)
    share = jnp.maximum(1 - lost / jnp.where(usable, kept * kept, 1), 0)
    positive = usable & (share > 0)
    return jnp.where(positive, e * (approach - threshold) * jnp.sqrt(jnp.where(positive, share, 1)), 0)


def beta(model: Model) -> jax.Array:
    """Share of a position error corrected per second: clamp(0.2 erp, 0, 0.3) / dt."""
    return jnp.clip(0.2 * model.erp, 0, MAX_BETA) / model.dt


def limit_rows(model: Model, q: jax.Array, qd: jax.Array, free: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(sign, gap, target), each (limited joints, N): the stop that the free motion of a limited joint ends nearer to.

    sign +1 at the lower stop (row velocity = qd), -1 at the upper one. A stop acts ahead: b = -gap / dt. The velocity
    limit bounds how fast that stop may be approached; where the stop does not act, the row guards the limit in the
    direction of a free motion that exceeds it.
    """
    topology = model.topology
    joints = topology.limited_joints
    position = take(q, tuple(topology.joint_qadr[j] for j in joints))
    dofs = tuple(topology.joint_dadr[j] for j in joints)
    velocity, free = take(qd, dofs), take(free, dofs)
    margin = take(model.joint_margin, joints)
    # a joint without range counts as far from either stop: infinities would spoil derivatives
    low, high = (jnp.clip(take(model.joint_range[k], joints), -FARTHEST, FARTHEST) for k in (0, 1))
    below = position - low - margin
    above = high - position - margin
    # the stop that is nearer at the end of the step: in mid-range it is the one that the joint moves to
    lower = below + model.dt * free <= above - model.dt * free
    sign = jnp.where(lower, 1.0, -1.0).astype(q.dtype)
    gap = jnp.where(lower, below, above)
    cap = jnp.asarray([LIMIT_CORRECTION[topology.joint_type[j] - 2] for j in joints], q.dtype).reshape(-1, 1)
    push = jnp.minimum(beta(model) * jnp.maximum(0, -gap), cap)
    start = sign * velocity
    trapezoid = topology.integrator == "trapezoid"
    target = jnp.where(gap > 0, -2 * gap / model.dt - start if trapezoid else -gap / model.dt, push)
    approach = jnp.maximum(0, -start)
    speed = rebound(model.limit_restitution, approach, 0, gap, sign * (velocity - free) / model.dt)
    bounce = jnp.where(approach * model.dt > gap, speed, 0)
    target = jnp.where(bounce > 0, jnp.maximum(target, bounce), target)
    fastest = take(model.joint_velocity_limit, dofs)
    speeding = (jnp.abs(free) > fastest) & (sign * free >= target)
    target = jnp.where(speeding, -fastest, jnp.maximum(target, -fastest))
    return fence((jnp.where(speeding, -jnp.sign(free), sign), gap, target))


def previous_impulse(
    contacts: Contacts,
    axes: tuple[jax.Array, jax.Array, jax.Array],
    impact: jax.Array,
    old_index: jax.Array,
    old_point: jax.Array,
    old_impulse: jax.Array,
) -> jax.Array:
    """Warm start (3, K, N): last step's impulse of the same pair and feature, within 1 cm, in the new frame.

    `old_impulse` is in world axes, `old_point` relative to the present origin. Impacts start from zero.
    """
    slots = old_index.shape[0]
    found = [jnp.zeros_like(contacts.gap) for _ in range(3)]
    for j in range(slots):
        offset = [contacts.point[k] - old_point[k, j] for k in range(3)]
        near = offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2] < WARM_DISTANCE**2
        same = (contacts.index == old_index[j]) & (contacts.index >= 0) & near & ~impact
        found = [jnp.where(same, old_impulse[k, j], found[k]) for k in range(3)]
    return to_frame(axes, stack(found))


def listed_impulse(
    contacts: Contacts,
    axes: tuple[jax.Array, jax.Array, jax.Array],
    impact: jax.Array,
    old_index: jax.Array,
    old_point: jax.Array,
    old_impulse: jax.Array,
) -> jax.Array:
    """`previous_impulse` where many slots are used and their indices rise: the old slot is found by halving."""
    last = jnp.iinfo(jnp.int32).max
    slot = windows.find(jnp.where(old_index < 0, last, old_index), contacts.index)
    known = slot < old_index.shape[0]
    old = windows.pick(jnp.concatenate([old_point, old_impulse]), slot)
    offset = fence(contacts.point - old[:3])
    same = known & contacts.active & (vectors.dot(offset, offset) < WARM_DISTANCE**2) & ~impact
    return to_frame(axes, fence(jnp.where(same, old[3:], 0)))


WARM_DISTANCE = 0.01  # m
