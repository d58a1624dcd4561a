"""Joints of one degree of freedom: the motion of one, and of all levels of a deep tree in one compiled loop.

R = R_pre Rot(a, q - q_ref),  x = x_pre + R_pre c - R c      hinge about the anchor c
R = R_pre,                    x = x_pre + R_pre a (q - q_ref)      slide
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.dynamics.structure import Structure
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.tree import take
from rsim_jax.lanes.trigonometry import sincos
from rsim_jax.structs import BALL, FREE, HINGE, Model, Topology


def move(
    rotation: jax.Array,
    position: jax.Array,
    axis: jax.Array,
    anchor: jax.Array,
    shift: jax.Array,
    hinge: jax.Array | None,
) -> tuple[jax.Array, jax.Array]:
    """Pose after the joint from the pose before it.

    Args:
        rotation: (3, 3, n, N) before the joint; position (3, n, N).
        position: see rotation.
        axis: (3, n, 1) unit, link frame; anchor (3, n, 1) m.
        anchor: see axis.
        shift: (n, N) q - q_ref, rad or m.
        hinge: (n, 1) 1 for hinges, 0 for slides; None when all are hinges.
    """
    angle = shift if hinge is None else fence(shift * hinge)
    sine, cosine = fence(sincos(angle))
    turned = vectors.matmul(rotation, _axis_angle(axis, sine, cosine))
    swing = vectors.rotate(rotation, anchor) - vectors.rotate(turned, anchor)
    if hinge is None:
        return turned, fence(position + swing)
    travel = vectors.rotate(rotation, axis) * (shift * (1 - hinge))
    return turned, fence(position + swing * hinge + travel)


def _axis_angle(axis: jax.Array, sine: jax.Array, cosine: jax.Array) -> jax.Array:
    """Rodrigues: a a' + cos (1 - a a') + sin [a], as a (3, 3, n, N) array."""
    x, y, z = axis[0], axis[1], axis[2]
    versine = 1 - cosine
    skew = [[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]]
    a = [x, y, z]
    rows = []
    for i in range(3):
        row = [a[i] * a[k] * versine + skew[i][k] * sine + (cosine if i == k else 0) for k in range(3)]
        rows.append(stack(row))
    return stack(rows)


def possible(topology: Topology, tree: Structure) -> bool:
    """Whether all levels below the roots have single-dof joints only."""
    return all(topology.joint_type[j] not in (FREE, BALL) for level in tree.levels[1:] for j in level.joints)


def poses(
    model: Model, tree: Structure, root_rotation: jax.Array, root_position: jax.Array, q: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Rotation (3, 3, m, N) and position (3, m, N) of all links below the roots, in tree order, by a scan over levels.

    Levels are padded to the widest one; padded items repeat the level's first joint and are dropped.
    """
    topology, levels = model.topology, tree.levels[1:]
    width = max(len(level.joints) for level in tree.levels)
    padded = [level.joints + (level.joints[0],) * (width - len(level.joints)) for level in levels]
    parents = [level.parents + (0,) * (width - len(level.joints)) for level in levels]
    flat = tuple(j for joints in padded for j in joints)

    def by_level(x: jax.Array, index: tuple[int, ...]) -> jax.Array:
        """(..., n, W) -> (level, ..., width, W)."""
        chosen = take(x, index)
        return jnp.moveaxis(chosen.reshape(*x.shape[:-2], len(levels), width, x.shape[-1]), -3, 0)

    entries = tuple(topology.joint_qadr[j] for j in flat)
    hinge = jnp.asarray([[float(topology.joint_type[j] == HINGE)] for j in flat], q.dtype)
    inputs = (
        jnp.asarray(parents, jnp.int32),
        by_level(model.joint_rotation, flat),
        by_level(model.joint_offset, flat),
        by_level(model.joint_axis, flat),
        by_level(model.joint_anchor, flat),
        by_level(hinge, tuple(range(len(flat)))),
        by_level(q - model.joint_ref, entries),
    )

    def body(above: tuple[jax.Array, jax.Array], level: tuple[jax.Array, ...]):
        parent, frame, offset, axis, anchor, hinge, shift = level
        rotation, position = (jnp.take(x, parent, axis=-2) for x in above)
        before = vectors.matmul(rotation, frame)
        here = move(before, fence(position + vectors.rotate(rotation, offset)), axis, anchor, shift, hinge)
        return here, here

    def pad(x: jax.Array) -> jax.Array:
        return jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, width - x.shape[-2]), (0, 0)])

    _, results = lax.scan(body, (pad(root_rotation), pad(root_position)), inputs)
    real = tuple(k * width + item for k, level in enumerate(levels) for item in range(len(level.joints)))
    return tuple(take(jnp.moveaxis(x, 0, -3).reshape(*x.shape[1:-2], -1, x.shape[-1]), real) for x in results)
