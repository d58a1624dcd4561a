"""The step: the list of stages, and the only place that chains them.

Public entry points check shapes, pad the worlds to whole blocks and run the compiled block program; see
`lanes/blocks.py` for why. Each is jitted on its own, so one program per model and number of blocks serves every N.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.collision import detect, detect_penalty, pair_table, select
from rsim_jax.contact import approach, penalty, problem, reports
from rsim_jax.contact.frames import frame
from rsim_jax.contact.residual import residuals, worst
from rsim_jax.contact.rows import Slot, contact_jacobian, contact_row
from rsim_jax.contact.solve import solve_rows
from rsim_jax.contact.system import scan_slots, velocities, velocity_change
from rsim_jax.dynamics.algebra import algebra
from rsim_jax.dynamics.assembly import Body, FreeMotion, body_velocities, link_reference
from rsim_jax.dynamics.bias import joint_forces
from rsim_jax.dynamics.free import free_motion
from rsim_jax.dynamics.integrate import advance, advance_kinematic, normalize
from rsim_jax.dynamics.kinematics import link_poses, motion_subspace
from rsim_jax.dynamics.structure import structure
from rsim_jax.errors import Status
from rsim_jax.lanes import blocks
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take, total
from rsim_jax.structs import ContactRows, Contacts, Links, Model, PenaltyContacts, PointPairContactInfo, State

Force = Callable[[Model, State], jax.Array]
CONVERGED = 1e-3  # m/s: residual above which the not-converged bit is set, whatever the tolerance


def step(model: Model, state: State, ctrl: jax.Array | None = None, *, force_fn: Force | None = None) -> State:
    """One step of model.dt in every world.

    Args:
        model: the scene.
        state: N worlds.
        ctrl: (nu, N) actuator controls, zero when None.
        force_fn: (model, state) -> (nv, N) generalised force, called in every derivative evaluation with the q, qd and
            time of that evaluation.

    Raises:
        ValueError: for a control or state of the wrong shape.
    """
    state, count = _checked_state(model, state)
    ctrl = _check_ctrl(model, ctrl, (model.nu, count), state.q.dtype)
    padded = blocks.padded_count(count, blocks.block_size(model.nv))
    shared, worlds = _pad(_without_keyframes(model), (state, ctrl), count, padded)
    return _cut(_step_blocks(shared, *worlds, force_fn), count)


def rollout(
    model: Model,
    state: State,
    ctrls: jax.Array | None = None,
    *,
    steps: int | None = None,
    output: Callable[[State], Any] = lambda s: s.q,
    force_fn: Force | None = None,
) -> tuple[State, Any]:
    """Many steps in one program: the state after the last, and output(state) after each, stacked on a first axis.

    Args:
        model: the scene.
        state: N worlds.
        ctrls: (T, nu, N) controls, zero when None.
        steps: T; needed when ctrls is None.
        output: what to keep of every state: a pytree of arrays with the worlds last. Pass the same function object
            again, or the program is traced again.
        force_fn: as in `step`.

    Raises:
        ValueError: for a wrong shape, or neither ctrls nor steps.
    """
    state, count = _checked_state(model, state)
    if ctrls is None and steps is None:
        raise ValueError("rollout needs ctrls (T, nu, N) or steps")
    length = steps if ctrls is None else jnp.shape(ctrls)[0]
    if steps is not None and steps != length:
        raise ValueError(f"steps is {steps} but ctrls has {length} steps")
    ctrls = _check_ctrl(model, ctrls, (length, model.nu, count), state.q.dtype)
    padded = blocks.padded_count(count, blocks.block_size(model.nv))
    shared, worlds = _pad(_without_keyframes(model), (state, ctrls), count, padded)
    return _cut(_rollout_blocks(shared, *worlds, output, force_fn), count)


@partial(jax.jit, static_argnums=(3,))
def _step_blocks(model: Model, state: State, ctrl: jax.Array, force_fn: Force | None) -> State:
    def one_block(model: Model, worlds: tuple[State, jax.Array]) -> State:
        return advance_block(model, *worlds, force_fn)

    return blocks.map_blocks(one_block, model, (state, ctrl), blocks.block_size(model.nv))


@partial(jax.jit, static_argnums=(3, 4))
def _rollout_blocks(model: Model, state: State, ctrls: jax.Array, output: Callable, force_fn: Force | None):
    def one_block(model: Model, worlds: tuple[State, jax.Array]):
        def body(state: State, ctrl: jax.Array):
            state = advance_block(model, state, ctrl, force_fn)
            return state, output(state)

        return lax.scan(body, *worlds)

    return blocks.map_blocks(one_block, model, (state, ctrls), blocks.block_size(model.nv))


def advance_block(model: Model, state: State, ctrl: jax.Array, force_fn: Force | None = None) -> State:
    """The step of one block of worlds: free motion, contacts, rows, impulses, positions."""
    state = _sane(model, state)
    motion = free_motion(model, state, ctrl, partial(outside_force, model, force_fn))
    contacts, carried = find_contacts(model, state, motion)
    system, limit, start = build_rows(model, state, motion, contacts, carried)
    impulses = solve_rows(system, start, model.topology.sweeps, model.topology.slip_rule)
    change = velocity_change(system, impulses)
    row_velocities = velocities(system, change)
    rows = problem.report_rows(model, contacts, system, limit, impulses, row_velocities)
    residual = residuals(system, impulses, *row_velocities)
    return finish(model, state, motion, change, rows, residual, contacts.overflow)


def outside_force(
    model: Model, force_fn: Force | None, state: State, body: Body
) -> tuple[jax.Array, PenaltyContacts | None]:
    """Generalised force (nv, N) of the user and of compliant contacts in one derivative evaluation."""
    force = state.force if force_fn is None else state.force + force_fn(model, state)
    if not model.topology.npenalty:
        return force, None
    velocity = link_velocities(model, state, body, state.qd)
    contacts = find_penalties(model, body.links, velocity)
    links = pair_table.candidate_links(pair_table.penalty_topology(model.topology))
    on_links = penalty.link_forces(contacts, velocity.reference, links, model.njnt)
    tree = structure(model.topology)
    tau = joint_forces(tree, body.subspace, tuple(take(part, tree.link_order) for part in on_links))
    return force + take(tau, tree.dof_position), contacts


def find_penalties(model: Model, links: Links, velocity: approach.LinkVelocity) -> PenaltyContacts:
    """The compliant contacts of a pose and velocity."""
    topology = pair_table.penalty_topology(model.topology)
    owners, pairs = pair_table.candidate_links(topology), pair_table.candidate_pairs(topology)
    return penalty.penalty_contacts(model, detect_penalty(model, links), links.origin, velocity, owners, pairs)


def find_contacts(model: Model, state: State, motion: FreeMotion) -> tuple[Contacts, jax.Array]:
    """The selected contacts, and the velocity that prescribed surfaces bring to them (3, K, N)."""
    topology = model.topology
    candidates = detect(model, motion.body.links)
    links = pair_table.candidate_links(topology)
    velocity = link_velocities(model, state, motion.body, motion.u)
    speed = approach.normal_velocity(candidates, velocity, links, topology.world)
    urgency, reach = approach.reachable(candidates, speed, model.dt, topology.speculative)
    contacts = select(model, candidates, urgency, reach)
    kinematic = range(topology.njnt, topology.world)
    carried = contacts.surface_velocity
    if len(kinematic):
        carried = fence(carried + approach.carried_velocity(contacts, velocity, links, kinematic))
    return contacts, carried


def link_velocities(model: Model, state: State, body: Body, u: jax.Array) -> approach.LinkVelocity:
    """Velocity field of joint links, kinematic links and the world, u (nv, N) in public order."""
    angular, linear = body_velocities(model, body, u)
    n = u.shape[-1]
    still = jnp.zeros((3, 1, n), u.dtype)
    origin = body.links.origin[:, None]
    return approach.LinkVelocity(
        angular=concatenate([angular, state.kinematic_angular_velocity, still], axis=1),
        linear=concatenate([linear, state.kinematic_velocity, still], axis=1),
        reference=concatenate([link_reference(model, body), state.kinematic_position - origin, still], axis=1),
    )


def build_rows(model: Model, state: State, motion: FreeMotion, contacts: Contacts, carried: jax.Array):
    """(RowSystem, (sign, gap) of the limit rows, Impulses to start from)."""
    body, tree = motion.body, structure(model.topology)
    subspace, n = body.subspace, state.q.shape[-1]
    axes = frame(contacts.normal)
    side = jnp.take(contacts.side, jnp.asarray(tree.dof_order), axis=0) if model.nv else contacts.side
    start, free = take(state.qd, tree.dof_order), take(motion.u, tree.dof_order)

    def contact(carry: None, slot: Slot) -> tuple[None, tuple[jax.Array, jax.Array]]:
        jacobian = contact_jacobian(slot, subspace.angular, subspace.linear, subspace.tree_origin, tree.dof_tree)
        return carry, contact_row(model, slot, jacobian, algebra(tree).whiten(tree, body.factor, jacobian), start, free)

    used = problem.used_slots(contacts)
    slots = problem.contact_slots(contacts, axes, side, carried)
    rows, impact = scan_slots(used, contact, None, slots)[1]
    whitened_dofs = algebra(tree).whiten(tree, body.factor, problem.unit_rows(model, tree.dof_order, n))
    system, sign, gap = problem.row_system(model, state, rows, used, whitened_dofs, motion.u)
    begin = problem.warm_start(model, state, contacts, axes, impact, sign, body.links.origin)
    return system, (sign, gap), begin


def finish(
    model: Model,
    state: State,
    motion: FreeMotion,
    change: jax.Array,
    rows: ContactRows,
    residual: jax.Array,
    overflow: jax.Array,
) -> State:
    """Add the impulses to the free velocity, move, set status bits; worlds that are not finite stay where they were."""
    tree = structure(model.topology)
    delta = take(algebra(tree).unwhiten(tree, motion.body.factor, change), tree.dof_position)
    qd = fence(motion.u + delta)
    if motion.penalty is not None:
        rows = penalty_rows(model, state, motion, qd, rows)
    moves = 0.5 * delta if model.topology.integrator == "trapezoid" else delta
    q = advance(model, state.q, fence(motion.rate + moves), model.dt)
    finite = _finite(q, qd, residual, rows.velocity, rows.impulse) & (state.status & Status.NOT_FINITE == 0)
    limit = jnp.maximum(model.tolerance, CONVERGED).astype(q.dtype)
    converged = worst([residual]) <= limit
    flags = (
        jnp.where(overflow, int(Status.CONTACT_OVERFLOW), 0)
        | jnp.where(converged, 0, int(Status.SOLVER_NOT_CONVERGED))
        | jnp.where(finite, 0, int(Status.NOT_FINITE))
    )
    steps = state.steps + finite.astype(jnp.int32)
    kinematic = advance_kinematic(model, state, model.dt)
    moved = dataclasses.replace(
        state,
        q=q,
        qd=qd,
        steps=steps,
        time=state.time_start + steps.astype(q.dtype) * model.dt,
        origin=motion.body.links.origin,
        rows=rows,
        residual=residual,
        **kinematic,
    )
    kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, state)
    return dataclasses.replace(
        kept,
        status=state.status | jnp.where(finite, flags, int(Status.NOT_FINITE)).astype(jnp.int32),
        force=jnp.zeros_like(state.force),
    )


def penalty_rows(model: Model, state: State, motion: FreeMotion, qd: jax.Array, rows: ContactRows) -> ContactRows:
    """The rows with those of the compliant contacts, whose velocities are of the end of the step as for all rows."""
    topology = pair_table.penalty_topology(model.topology)
    links, pairs = pair_table.candidate_links(topology), pair_table.candidate_pairs(topology)
    velocity = link_velocities(model, state, motion.body, qd)
    relative = penalty.relative_velocity(model, motion.penalty.point, velocity, links, pairs)
    friction = take(model.pair_penalty_mu, pairs)
    return penalty.with_penalty_rows(model, rows, motion.penalty, relative, friction)


def _finite(*arrays: jax.Array) -> jax.Array:
    """(N,) whether all entries are finite: x - x is 0 for finite x and NaN otherwise."""
    flat = [x.reshape(-1, x.shape[-1]) for x in arrays]
    return fence(sum(total(x - x) for x in flat if x.shape[0]) == 0)


def _sane(model: Model, state: State) -> State:
    """Unit quaternions; zeros for entries that are not finite, so that a frozen world is always finite."""
    good = _finite(state.q, state.qd)
    status = state.status | jnp.where(good, 0, int(Status.NOT_FINITE)).astype(jnp.int32)
    q = jnp.where(jnp.isfinite(state.q), state.q, 0)
    qd = jnp.where(jnp.isfinite(state.qd), state.qd, 0)
    return state.replace(q=normalize(model, q), qd=qd, status=status)


@jax.jit
def contact_report(model: Model, state: State) -> PointPairContactInfo:
    """The last step's contacts, see `structs.PointPairContactInfo`; all invalid before the first step."""
    return reports.step_report(model, state, *_candidate_geoms(model))


def _candidate_geoms(model: Model) -> tuple[reports.Geoms, reports.Geoms]:
    """Of the candidates for rows and of those with compliant contact."""
    compliant = pair_table.penalty_topology(model.topology)
    return pair_table.candidate_geoms(model.topology), pair_table.candidate_geoms(compliant)


@jax.jit
def detect_contacts(model: Model, state: State) -> PointPairContactInfo:
    """The same record for the state's own pose, without a step: touching shapes only, forces and speeds zero."""
    q = normalize(model, state.q)
    links, rotation, position = link_poses(model, q, state.kinematic_position, state.kinematic_quaternion)
    candidates = detect(model, links)
    contacts = select(model, candidates, candidates.gap, candidates.gap <= 0)
    compliant = None
    if model.topology.npenalty:
        body = Body(links, motion_subspace(model, rotation, position), None)
        compliant = find_penalties(model, links, link_velocities(model, state, body, state.qd))
    return reports.pose_report(model, contacts, compliant, links.origin, *_candidate_geoms(model))


@jax.jit
def net_contact_force(model: Model, state: State) -> jax.Array:
    """Sum of the last step's contact forces on every body (3, nbody, N), world axes, N."""
    return reports.net_force(model, contact_report(model, state))


def solver_residual(model: Model, state: State) -> jax.Array:
    """(3, N) m/s: normal, cone and dissipation residual of the last step's rows, see `contact/residual.py`."""
    del model
    return state.residual


def wire_tension(model: Model, state: State) -> jax.Array:
    """(nwire, N) tension of every wire, N; scenes have no wires yet, so nwire is 0."""
    return jnp.zeros((0, state.q.shape[-1]), model.dtype)


@partial(jax.jit, static_argnums=(2, 3))
def _pad(model: Model, worlds: Any, count: int, total: int) -> tuple[Model, Any]:
    size = blocks.block_size(model.nv)
    model = jax.tree.map(lambda x: blocks.pad(x, total) if blocks.per_world(x, count) else x, model)
    worlds = jax.tree.map(lambda x: blocks.pad(x, total), worlds)
    return jax.tree.map(lambda x: blocks.spread(x, total, size), (model, worlds))


@partial(jax.jit, static_argnums=(1,))
def _cut(result: Any, count: int) -> Any:
    return jax.tree.map(lambda x: x[..., :count], result)


def _without_keyframes(model: Model) -> Model:
    """Keyframes have their own last axis and no part in the step."""
    empty = {name: jnp.zeros((0,), model.dtype) for name in ("key_time", "key_q", "key_qd", "key_ctrl")}
    return dataclasses.replace(model, **empty)


def _checked_state(model: Model, state: State) -> tuple[State, int]:
    """The state with q and qd in the model's precision, and its number of worlds."""
    if state.q.ndim != 2 or state.q.shape[0] != model.nq:
        raise ValueError(f"state.q has shape {state.q.shape}; expected ({model.nq}, N)")
    count = state.q.shape[1]
    if state.qd.shape != (model.nv, count):
        raise ValueError(f"state.qd has shape {state.qd.shape}; expected ({model.nv}, {count})")
    return state.replace(q=state.q.astype(model.dtype), qd=state.qd.astype(model.dtype)), count


def _check_ctrl(model: Model, ctrl: jax.Array | None, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    if ctrl is None:
        return jnp.zeros(shape, dtype)
    if jnp.shape(ctrl) != shape:
        raise ValueError(f"ctrl has shape {jnp.shape(ctrl)}; expected {shape}")
    return jnp.asarray(ctrl, dtype)
