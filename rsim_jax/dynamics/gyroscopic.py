"""Rotation of single bodies, free or on a ball joint: energy kept at any speed, momentum up to 2 rad a step.

Explicit integration of w x I w gains energy at every step and lets a fast, slender body blow up. Here the torque of
the step turns w into w', and the body then turns freely (all in body axes):

    I w' = I w + dt t
    I (w" - w') + h w_m x I w_m = 0,   w_m = (w' + w") / 2,   h = dt tan(x) / x,   x = dt |w_m| / 2,   w+ = w"

The second line says I w" = C' I w' with C the Cayley rotation of h w_m, which turns by the angle 2 atan(h |w_m| / 2)
= dt |w_m|, so C = exp(dt w_m). Moving the attitude by w_m therefore keeps the spin R I w in world axes to rounding,
and the dot product with w_m shows that w' I w' = w" I w". (Cayley form without the stretch: Simo and Wong,
"Unconditionally stable algorithms for rigid body dynamics", IJNME 1991.) The trapezoid rule applies half of the
torque before and half, held in world axes, after the turn: I w+ = I w" + C' t dt / 2.

I is about the centre of mass of a free body, about the anchor of a ball. The bias force already holds the explicit
torque; what is returned is the difference, a pure couple, so it only enters the three rotation dofs. Links of larger
trees keep the explicit term: their inertia is not constant.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.structure import joint_runs
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.tree import in_rows, take
from rsim_jax.structs import BALL, FREE, Model, Topology

NEWTON_STEPS = 4  # rounding of float64 for dt |w| <= 1
LARGEST_HALF_TURN = 1.0  # rad; beyond this x the stretch h / dt stays, and momentum is only kept in body axes


def single_bodies(topology: Topology) -> tuple[int, ...]:
    """Free and ball joints that are a whole tree."""
    parents = set(topology.joint_parent)
    return tuple(
        j
        for j, kind in enumerate(topology.joint_type)
        if kind in (FREE, BALL) and j not in parents and topology.joint_parent[j] >= topology.njnt
    )


def _first_rotation(topology: Topology, joint: int) -> int:
    """The first of the joint's three rotation dofs."""
    return topology.joint_dadr[joint] + (3 if topology.joint_type[joint] == FREE else 0)


def _inertia(model: Model, bodies: tuple[int, ...]) -> jax.Array:
    """(6, n, W) body axes, about the centre of mass or the anchor."""
    topology = model.topology
    about_com = take(model.link_inertia, bodies)
    on_ball = jnp.asarray([[float(topology.joint_type[j] == BALL)] for j in bodies], about_com.dtype)
    arm = take(model.link_com, bodies) - take(model.joint_anchor, bodies)
    mass = take(model.link_mass, bodies) * on_ball
    x, y, z = arm[0], arm[1], arm[2]
    shift = [y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z]
    return about_com + mass * jnp.stack(jnp.broadcast_arrays(*shift))


def turn(model: Model, rotation: jax.Array, qd: jax.Array, net: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(couple, lag), each (nv, N) in public order.

    Args:
        model: with at least one single body.
        rotation: link to world (3, 3, njnt, W).
        qd: velocities at the start of the step, public order.
        net: generalised force less bias (nv, N), with the explicit gyroscopic torque, public order.

    Returns:
        couple: what to add to `net`; lag: w_m less the velocity that would move the attitude without it.
    """
    topology, dt = model.topology, model.dt
    bodies = single_bodies(topology)
    omega = _rotation_part(topology, bodies, qd)
    inertia = _inertia(model, bodies)
    explicit = vectors.cross(omega, _apply(inertia, omega))
    kick = fence(dt * _solve(_matrix(inertia), _torque(model, bodies, rotation, net) + explicit))
    halves = topology.integrator == "trapezoid"
    before = fence(omega + 0.5 * kick) if halves else fence(omega + kick)
    after = before
    for _ in range(NEWTON_STEPS):
        after = _newton(inertia, before, after, dt)
    middle = fence(0.5 * (before + after))
    end = _late_kick(inertia, after, 0.5 * kick, middle, dt) if halves else after
    couple = fence(explicit + _apply(inertia, fence(end - omega - kick)) / dt)
    lag = fence(middle - (0.5 * (omega + end) if halves else end))
    return _scatter(topology, bodies, couple), _scatter(topology, bodies, lag)


def _late_kick(inertia: jax.Array, after: jax.Array, kick: jax.Array, middle: jax.Array, dt: jax.Array) -> jax.Array:
    """w" + I^-1 C' I kick; C' v = v + 2 / (1 + b . b) (b x (b x v) - b x v), b = h w_m / 2."""
    b = fence(0.5 * dt * _stretch(middle, dt) * middle)
    v = _apply(inertia, kick)
    across = vectors.cross(b, v)
    turned = v + 2 / (1 + vectors.dot(b, b)) * (vectors.cross(b, across) - across)
    return fence(after + _solve(_matrix(inertia), turned))


def _rotation_part(topology: Topology, bodies: tuple[int, ...], x: jax.Array) -> jax.Array:
    return jnp.stack([take(x, tuple(_first_rotation(topology, j) + k for j in bodies)) for k in range(3)])


def _torque(model: Model, bodies: tuple[int, ...], rotation: jax.Array, net: jax.Array) -> jax.Array:
    """Torque (3, n, N), body axes: about the centre of mass of a free body, about the anchor of a ball."""
    topology = model.topology
    free = [topology.joint_type[j] == FREE for j in bodies]
    force = jnp.stack([take(net, tuple(topology.joint_dadr[j] + k for j in bodies)) for k in range(3)])
    poses = take(rotation, bodies)
    turned = stack([vectors.dot(poses[:, k], force) for k in range(3)])
    arm = take(model.link_com, bodies) * jnp.asarray(free, net.dtype)[:, None]  # a ball's net is about its anchor
    moment = vectors.cross(jnp.broadcast_to(arm, turned.shape), turned)
    return fence(_rotation_part(topology, bodies, net) - moment)


def _apply(inertia: jax.Array, v: jax.Array) -> jax.Array:
    xx, yy, zz, xy, xz, yz = (inertia[k] for k in range(6))
    return stack(
        [xx * v[0] + xy * v[1] + xz * v[2], xy * v[0] + yy * v[1] + yz * v[2], xz * v[0] + yz * v[1] + zz * v[2]]
    )


def _matrix(inertia: jax.Array) -> list[jax.Array]:
    xx, yy, zz, xy, xz, yz = (inertia[k] for k in range(6))
    return [stack(row) for row in ([xx, xy, xz], [xy, yy, yz], [xz, yz, zz])]


def _solve(rows: list[jax.Array], right: jax.Array) -> jax.Array:
    """x (3, n, N) of the 3x3 system with the given rows, by cross products."""
    c01, c12, c20 = (vectors.cross(rows[i], rows[(i + 1) % 3]) for i in range(3))
    determinant = vectors.dot(rows[0], c12)
    return fence((c12 * right[0] + c20 * right[1] + c01 * right[2]) / determinant)


def _stretch(middle: jax.Array, dt: jax.Array) -> jax.Array:
    """tan(x) / x at x = dt |w_m| / 2, by its continued fraction."""
    x2 = jnp.minimum(0.25 * dt * dt * vectors.dot(middle, middle), LARGEST_HALF_TURN**2)
    return 1 / (1 - x2 / (3 - x2 / (5 - x2 / (7 - x2 / (9 - x2 / 11)))))


def _newton(inertia: jax.Array, before: jax.Array, after: jax.Array, dt: jax.Array) -> jax.Array:
    """One Newton step on I (w" - w') + h w_m x I w_m = 0, h held; Jacobian I + h/2 ([w_m] I - [I w_m])."""
    xx, yy, zz, xy, xz, yz = (inertia[k] for k in range(6))
    middle = fence(0.5 * (before + after))
    h = fence(dt * _stretch(middle, dt))
    spin = _apply(inertia, middle)
    residual = fence(_apply(inertia, fence(after - before)) + h * vectors.cross(middle, spin))
    h = 0.5 * h
    a, s = middle, spin
    rows = [
        [
            xx + h * (a[1] * xz - a[2] * xy),
            xy + h * (a[1] * yz - a[2] * yy + s[2]),
            xz + h * (a[1] * zz - a[2] * yz - s[1]),
        ],
        [
            xy + h * (a[2] * xx - a[0] * xz - s[2]),
            yy + h * (a[2] * xy - a[0] * yz),
            yz + h * (a[2] * xz - a[0] * zz + s[0]),
        ],
        [
            xz + h * (a[0] * xy - a[1] * xx + s[1]),
            yz + h * (a[0] * yy - a[1] * xy - s[0]),
            zz + h * (a[0] * yz - a[1] * xz),
        ],
    ]
    jacobian = [fence(jnp.stack(jnp.broadcast_arrays(*row))) for row in rows]
    return fence(after - _solve(jacobian, residual))


def _scatter(topology: Topology, bodies: tuple[int, ...], part: jax.Array) -> jax.Array:
    """Place the rotation parts (3, n, N) of the chosen joints in an (nv, N) array of zeros."""
    n, parts, filled, item = part.shape[-1], [], 0, 0
    for run in joint_runs(topology):
        chosen = [j for j in run.joints if item < len(bodies) and j in bodies[item:]]
        if len(chosen) != len(run.joints) or run.kind == "scalar":
            parts += _one_by_one(topology, chosen, part[:, item:], filled, run.qd.stop)
        else:
            rows = part[:, item : item + len(chosen)]
            if run.kind == "free":
                rows = jnp.concatenate([jnp.zeros_like(rows), rows])
            parts.append(in_rows(rows))
        filled, item = run.qd.stop, item + len(chosen)
    return concatenate(parts, axis=0) if parts else jnp.zeros((topology.nv, n), part.dtype)


def _one_by_one(topology: Topology, bodies: list[int], part: jax.Array, start: int, stop: int) -> list[jax.Array]:
    """Rows start ... stop of the result, where only some joints of a run turn freely."""
    parts = []
    for item, joint in enumerate(bodies):
        first = _first_rotation(topology, joint)
        parts += [jnp.zeros((first - start, part.shape[-1]), part.dtype), part[:, item]]
        start = first + 3
    return [*parts, jnp.zeros((stop - start, part.shape[-1]), part.dtype)]
