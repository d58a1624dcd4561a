"""Poses of all links from q, and the motion subspace of all dofs.

For a link with parent p, frame (F, u) in the parent before its joint moves, axis a and anchor c in its own frame:

    R_pre = R_p F,   x_pre = x_p + R_p u
    hinge:  R = R_pre Rot(a, q - q_ref),  x = x_pre + R_pre c - R c
    slide:  R = R_pre,                    x = x_pre + R_pre a (q - q_ref)
    ball:   R = R_pre Rot(q_ref^-1 q),    x = x_pre + R_pre c - R c
    free:   R = Rot(q),                   x = q[:3]

Positions are relative to the origin, the position of the first tree's root link (see structs). Motion vectors S =
[angular; linear] are in world axes, about the origin of their tree, the position of its root link.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from rsim_jax.dynamics import rolled
from rsim_jax.dynamics.structure import joints_of_type, structure
from rsim_jax.lanes import quaternions, vectors
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import BALL, FREE, HINGE, SLIDE, Links, Model, Topology, record


class Subspace:
    """Motion vectors of all dofs in tree order, about their tree's origin."""

    angular: jax.Array  # (3, nv, N)
    linear: jax.Array  # (3, nv, N)
    tree_origin: jax.Array  # (3, ntree, N), relative to the origin


Subspace = record(Subspace)


@dataclass(frozen=True)
class _Poses:
    rotation: jax.Array  # (3, 3, n, N)
    position: jax.Array  # (3, n, N)


def link_poses(
    model: Model, q: jax.Array, kinematic_position: jax.Array, kinematic_quaternion: jax.Array
) -> tuple[Links, jax.Array, jax.Array]:
    """Links for collision and reports, and (rotation, position) of the joint links in tree order."""
    topology, tree = model.topology, structure(model.topology)
    n = q.shape[-1]
    levels: list[_Poses] = []
    origin = jnp.zeros((3, n), q.dtype)
    for depth, level in enumerate(tree.levels):
        if depth == 1 and tree.deep and rolled.possible(topology, tree):
            levels.append(_Poses(*rolled.poses(model, tree, levels[0].rotation, levels[0].position, q)))
            break
        if depth == 0:
            carriers = _root_parents(model, level.joints, kinematic_position, kinematic_quaternion)
            poses = _level_poses(model, level.joints, carriers, q)
            origin = fence(poses.position[:, level.joints.index(0)])
            poses = _Poses(poses.rotation, fence(poses.position - origin[:, None]))
        else:
            above = levels[-1]
            parents = _Poses(take(above.rotation, level.parents), take(above.position, level.parents))
            poses = _level_poses(model, level.joints, parents, q)
        levels.append(poses)
    identity = jnp.eye(3, dtype=q.dtype)[:, :, None, None]
    rotations = [p.rotation for p in levels]
    positions = [p.position for p in levels]
    rotation = concatenate(rotations, axis=-2) if levels else jnp.zeros((3, 3, 0, n), q.dtype)
    position = concatenate(positions, axis=-2) if levels else jnp.zeros((3, 0, n), q.dtype)
    others = [jnp.broadcast_to(identity, (3, 3, 1, n))]
    places = [-origin[:, None]]
    if topology.nkin:
        others.insert(0, quaternions.to_matrix(quaternions.normalize(kinematic_quaternion)))
        places.insert(0, kinematic_position - origin[:, None])
    links = Links(
        rotation=concatenate([take(rotation, tree.link_position), *others], axis=-2),
        position=concatenate([take(position, tree.link_position), *places], axis=-2),
        origin=origin,
    )
    return links, rotation, position


def _root_parents(
    model: Model, joints: tuple[int, ...], kinematic_position: jax.Array, kinematic_quaternion: jax.Array
) -> _Poses | None:
    """Absolute poses of what carries the roots: kinematic bodies or the world; None if all stand on the world.

    A jointed child follows the pose of a kinematic body; the body's velocity does not enter its motion, as in MuJoCo.
    """
    topology = model.topology
    bodies = [topology.joint_parent[j] - topology.njnt for j in joints]
    if all(b >= topology.nkin for b in bodies):
        return None
    n = kinematic_position.shape[-1]
    turn = quaternions.to_matrix(quaternions.normalize(kinematic_quaternion))
    identity = jnp.broadcast_to(jnp.eye(3, dtype=turn.dtype)[:, :, None, None], (3, 3, 1, n))
    order = tuple(min(b, topology.nkin) for b in bodies)
    zero = jnp.zeros((3, 1, n), turn.dtype)
    return _Poses(
        take(concatenate([turn, identity], axis=-2), order),
        take(concatenate([kinematic_position, zero], axis=-2), order),
    )


def _level_poses(model: Model, joints: tuple[int, ...], parents: _Poses | None, q: jax.Array) -> _Poses:
    """Poses of one level, given the poses of its parents item by item (None: the world, absolute positions)."""
    topology = model.topology
    parts = []
    for kind, pose in (("free", _free_poses), ("ball", _ball_poses), ("single", _single_poses)):
        chosen = joints_of_type(topology, joints, kind)
        if not chosen:
            continue
        items = tuple(joints.index(j) for j in chosen)
        above = None if parents is None else _Poses(take(parents.rotation, items), take(parents.position, items))
        parts.append(pose(model, chosen, above, q))
    return _Poses(concatenate([p.rotation for p in parts], axis=-2), concatenate([p.position for p in parts], axis=-2))


def _before_joint(model: Model, joints: tuple[int, ...], parents: _Poses | None) -> _Poses:
    """(R_pre, x_pre)."""
    frame, offset = take(model.joint_rotation, joints), take(model.joint_offset, joints)
    if parents is None:
        return _Poses(frame, offset)
    return _Poses(
        vectors.matmul(parents.rotation, frame), fence(parents.position + vectors.rotate(parents.rotation, offset))
    )


def _rows(q: jax.Array, start: tuple[int, ...], k: int) -> jax.Array:
    """Entry k of each joint's slice of q: (len(start), N)."""
    return take(q, tuple(s + k for s in start))


def _free_poses(model: Model, joints: tuple[int, ...], parents: _Poses | None, q: jax.Array) -> _Poses:
    start = tuple(model.topology.joint_qadr[j] for j in joints)
    position = jnp.stack([_rows(q, start, k) for k in range(3)])
    quat = jnp.stack([_rows(q, start, k) for k in range(3, 7)])
    return _Poses(quaternions.to_matrix(quaternions.normalize(quat)), fence(position))


def _ball_poses(model: Model, joints: tuple[int, ...], parents: _Poses | None, q: jax.Array) -> _Poses:
    before = _before_joint(model, joints, parents)
    start = tuple(model.topology.joint_qadr[j] for j in joints)
    quat = quaternions.normalize(jnp.stack([_rows(q, start, k) for k in range(4)]))
    reference = jnp.stack([_rows(model.joint_ref, start, k) for k in range(4)])
    conjugate = reference * jnp.asarray([1, -1, -1, -1], q.dtype)[:, None, None]
    turned = quaternions.to_matrix(quaternions.multiply(jnp.broadcast_to(conjugate, quat.shape), quat))
    rotation = vectors.matmul(before.rotation, turned)
    anchor = take(model.joint_anchor, joints)
    swing = vectors.rotate(before.rotation, anchor) - vectors.rotate(rotation, anchor)
    return _Poses(rotation, fence(before.position + swing))


def _single_poses(model: Model, joints: tuple[int, ...], parents: _Poses | None, q: jax.Array) -> _Poses:
    """Hinges and slides of one level together: Rot = A + sin B + cos C with constant A, B, C."""
    topology = model.topology
    start = tuple(topology.joint_qadr[j] for j in joints)
    shift = take(q, start) - take(model.joint_ref, start)
    before = _before_joint(model, joints, parents)
    axis, anchor = take(model.joint_axis, joints), take(model.joint_anchor, joints)
    types = {topology.joint_type[j] for j in joints}
    hinge = (
        None if types == {HINGE} else jnp.asarray([[float(topology.joint_type[j] == HINGE)] for j in joints], q.dtype)
    )
    rotation, position = rolled.move(before.rotation, before.position, axis, anchor, shift, hinge)
    rotation = jnp.broadcast_to(rotation, (3, 3, len(joints), q.shape[-1]))
    return _Poses(rotation, fence(jnp.broadcast_to(position, (3, len(joints), q.shape[-1]))))


def motion_subspace(model: Model, rotation: jax.Array, position: jax.Array) -> Subspace:
    """S of all dofs in tree order, from the link poses in tree order."""
    topology, tree = model.topology, structure(model.topology)
    n = position.shape[-1]
    tree_origin = take(position, tree.roots)
    angular, linear = [], []
    items = [(tree.link_order[link], dof) for link, dof in zip(tree.dof_link, tree.dof_order, strict=True)]
    for kind, joints, offsets in _runs_by_kind(topology, items):
        links = tuple(tree.link_position[j] for j in joints)
        turn = take(rotation, links)
        if kind == "translation":
            unit = jnp.eye(3, dtype=position.dtype)[:, jnp.asarray(offsets)][:, :, None]
            angular.append(jnp.zeros((3, len(joints), n), position.dtype))
            linear.append(jnp.broadcast_to(unit, (3, len(joints), n)))
            continue
        if kind == "slide":
            linear.append(vectors.rotate(turn, take(model.joint_axis, joints)))
            angular.append(jnp.zeros_like(linear[-1]))
            continue
        if kind == "hinge":
            axis = vectors.rotate(turn, take(model.joint_axis, joints))
        else:  # body-frame rotations of ball and free joints
            axis = concatenate([turn[:, offsets[k], k : k + 1] for k in range(len(joints))], axis=-2)
        angular.append(axis)
        if kind == "spin":
            linear.append(jnp.zeros_like(axis))  # a free root turns about its own position, its tree's origin
            continue
        anchor = take(position, links) + vectors.rotate(turn, take(model.joint_anchor, joints))
        arm = fence(anchor - take(tree_origin, tuple(tree.link_tree[link] for link in links)))
        linear.append(vectors.cross(arm, axis))
    if not angular:
        empty = jnp.zeros((3, 0, n), position.dtype)
        return Subspace(empty, empty, tree_origin)
    return Subspace(concatenate(angular, axis=-2), concatenate(linear, axis=-2), tree_origin)


def _runs_by_kind(
    topology: Topology, items: list[tuple[int, int]]
) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Split a (joint, dof) list into runs of one kind: (kind, joints, offsets of the dofs in their joints)."""
    runs: list[tuple[str, list[int], list[int]]] = []
    for joint, dof in items:
        offset = dof - topology.joint_dadr[joint]
        joint_type = topology.joint_type[joint]
        if joint_type == FREE:
            kind, offset = ("translation", offset) if offset < 3 else ("spin", offset - 3)
        else:
            kind = {BALL: "ball", SLIDE: "slide", HINGE: "hinge"}[joint_type]
        if not runs or runs[-1][0] != kind:
            runs.append((kind, [], []))
        runs[-1][1].append(joint)
        runs[-1][2].append(offset)
    return [(kind, tuple(joints), tuple(offsets)) for kind, joints, offsets in runs]
