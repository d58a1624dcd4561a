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

from rsim_jax.collision import detect, detect_penalty, listing, pair_table, select, select_listed
from rsim_jax.contact import approach, elimination, loops, penalty, problem, reports, wires
from rsim_jax.contact.anchors import Motions
from rsim_jax.contact.frames import frame
from rsim_jax.contact.residual import residuals, worst
from rsim_jax.contact.rows import (
    Slot,
    Turning,
    along,
    angular_jacobian,
    angular_row,
    contact_jacobian,
    contact_row,
    pair_angular_row,
    pair_row,
)
from rsim_jax.contact.solve import solve_rows
from rsim_jax.contact.system import velocities, velocity_change
from rsim_jax.dynamics import tree_blocks
from rsim_jax.dynamics.algebra import algebra
from rsim_jax.dynamics.assembly import Body, FreeMotion, body_velocities, link_reference
from rsim_jax.dynamics.bias import joint_forces
from rsim_jax.dynamics.free import free_motion
from rsim_jax.dynamics.integrate import advance, advance_kinematic, normalize
from rsim_jax.dynamics.kinematics import link_poses, motion_subspace
from rsim_jax.dynamics.structure import structure
from rsim_jax.errors import Status
from rsim_jax.lanes import blocks, vectors, windows
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.slots import scan_slots
from rsim_jax.lanes.tree import take, total
from rsim_jax.structs import (
    ContactRows,
    Contacts,
    Links,
    LinkVelocity,
    Model,
    PenaltyContacts,
    PointPairContactInfo,
    State,
    record,
)

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
    padded = blocks.padded_count(count, blocks.block_size(model.topology))
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
    padded = blocks.padded_count(count, blocks.block_size(model.topology))
    shared, worlds = _pad(_without_keyframes(model), (state, ctrls), count, padded)
    return _cut(_rollout_blocks(shared, *worlds, output, force_fn), count)


@partial(jax.jit, static_argnums=(3,))
def _step_blocks(model: Model, state: State, ctrl: jax.Array, force_fn: Force | None) -> State:
    def one_block(model: Model, worlds: tuple[State, jax.Array]) -> State:
        return advance_block(model, *worlds, force_fn)

    return blocks.map_blocks(one_block, model, (state, ctrl), blocks.block_size(model.topology))


@partial(jax.jit, static_argnums=(3, 4))
def _rollout_blocks(model: Model, state: State, ctrls: jax.Array, output: Callable, force_fn: Force | None):
    def one_block(model: Model, worlds: tuple[State, jax.Array]):
        def body(state: State, ctrl: jax.Array):
            state = advance_block(model, state, ctrl, force_fn)
            return state, output(state)

        return lax.scan(body, *worlds)

    return blocks.map_blocks(one_block, model, (state, ctrls), blocks.block_size(model.topology))


def advance_block(model: Model, state: State, ctrl: jax.Array, force_fn: Force | None = None) -> State:
    """The step of one block of worlds: free motion, contacts, rows, impulses, positions."""
    state = _sane(model, state)
    motion = free_motion(model, state, ctrl, partial(outside_force, model, force_fn))
    motion, loop = close_loops(model, state, motion)
    contacts, carried = find_contacts(model, state, motion)
    system, built, start = build_rows(model, state, motion, contacts, carried, loop)
    impulses = solve_rows(system, start, model.topology.sweeps, model.topology.slip_rule)
    change = velocity_change(system, impulses)
    row_velocities = velocities(system, change)
    motion = _add(model, motion, change)
    rows = problem.report_rows(model, contacts, system, built.limit, impulses, row_velocities, built.wires)
    if loop is not None:
        closing = loops.impulses(loop.basis, built.shares, impulses)
        end = loops.velocity(loop.equations, take(motion.u, structure(model.topology).dof_order))
        rows = problem.with_loops(model, rows, loop.equations, closing, end)
    residual = residuals(system, impulses, *row_velocities)
    return finish(model, state, motion, rows, residual, contacts.overflow)


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


def find_penalties(model: Model, links: Links, velocity: LinkVelocity) -> PenaltyContacts:
    """The compliant contacts of a pose and velocity."""
    topology = pair_table.penalty_topology(model.topology)
    owners, pairs = pair_table.candidate_links(topology), pair_table.candidate_pairs(topology)
    return penalty.penalty_contacts(model, detect_penalty(model, links), links.origin, velocity, owners, pairs)


def find_contacts(model: Model, state: State, motion: FreeMotion) -> tuple[Contacts, jax.Array]:
    """The selected contacts, and the velocity that prescribed surfaces bring to them (3, K, N)."""
    topology = model.topology
    velocity = link_velocities(model, state, motion.body, motion.u)
    if topology.scattered:
        return select_listed(model, motion.body.links, velocity, model.dt, topology.speculative)
    candidates = detect(model, motion.body.links)
    links = pair_table.candidate_links(topology)
    speed = approach.normal_velocity(candidates, velocity, links, topology.world)
    urgency, reach = approach.reachable(candidates, speed, model.dt, topology.speculative)
    contacts = select(model, candidates, urgency, reach)
    kinematic = range(topology.njnt, topology.world)
    carried = contacts.surface_velocity
    if len(kinematic):
        carried = fence(carried + approach.carried_velocity(contacts, velocity, links, kinematic))
    return contacts, carried


def link_velocities(model: Model, state: State, body: Body, u: jax.Array) -> LinkVelocity:
    """Velocity field of joint links, kinematic links and the world, u (nv, N) in public order."""
    angular, linear = body_velocities(model, body, u)
    n = u.shape[-1]
    still = jnp.zeros((3, 1, n), u.dtype)
    origin = body.links.origin[:, None]
    return LinkVelocity(
        angular=concatenate([angular, state.kinematic_angular_velocity, still], axis=1),
        linear=concatenate([linear, state.kinematic_velocity, still], axis=1),
        reference=concatenate([link_reference(model, body), state.kinematic_position - origin, still], axis=1),
    )


class Loop:
    """The loop equations of a step, once eliminated."""

    equations: loops.Loops
    basis: elimination.Basis


Loop = record(Loop)


def close_loops(model: Model, state: State, motion: FreeMotion) -> tuple[FreeMotion, Loop | None]:
    """The free motion that keeps pins, welds, equalities and rods, and their equations; None where there are none."""
    if model.topology.nloop == 0:
        return motion, None
    body, tree = motion.body, structure(model.topology)
    equations = loops.loop_equations(model, state, _motions(model, body), body.links)
    wish = fence(equations.target - loops.velocity(equations, take(motion.u, tree.dof_order)))
    basis = elimination.eliminate(algebra(tree).whiten(tree, body.factor, equations.jacobian), wish)
    return _add(model, motion, elimination.change(basis)), Loop(equations, basis)


def _motions(model: Model, body: Body) -> Motions:
    tree, subspace = structure(model.topology), body.subspace
    return Motions(subspace.angular, subspace.linear, take(subspace.tree_origin, tree.dof_tree), dofs=tree.dof_order)


def _add(model: Model, motion: FreeMotion, change: jax.Array) -> FreeMotion:
    """The motion after a whitened change of velocity; positions move by half of it under the trapezoid rule."""
    tree = structure(model.topology)
    if model.topology.scattered:
        change = tree_blocks.collect(model.topology, change)
    delta = take(algebra(tree).unwhiten(tree, motion.body.factor, change), tree.dof_position)
    moves = 0.5 * delta if model.topology.integrator == "trapezoid" else delta
    return dataclasses.replace(motion, u=fence(motion.u + delta), rate=fence(motion.rate + moves))


class Built:
    """What rows know beyond the system."""

    limit: tuple[jax.Array, jax.Array]  # sign and gap of the limit rows
    wires: wires.WireRows | None
    shares: loops.LoopShares | None


Built = record(Built)


class Made:
    """Rows as they are made: packed contact rows, what the one-dimensional ones whiten to, and where they act."""

    contact: jax.Array  # (K, ..., N)
    impact: jax.Array  # (K, N)
    angular: jax.Array | None  # (K, ..., N) of rolling and spinning friction
    trees: problem.RowTrees
    scalar: jax.Array  # (S, width, N)
    wires: wires.WireRows | None = None
    shares: jax.Array | None = None  # (K, 3, E, N) of the loop space


Made = record(Made)


def build_rows(
    model: Model, state: State, motion: FreeMotion, contacts: Contacts, carried: jax.Array, loop: Loop | None = None
):
    """(RowSystem, Built, Impulses to start from)."""
    axes, used = frame(contacts.normal), problem.used_slots(contacts)
    if model.topology.scattered:
        made = _scattered_rows(model, state, motion, contacts, axes, carried)
    else:
        made = _dense_rows(model, state, motion, contacts, axes, carried, loop)
    basis = None if loop is None else loop.basis
    system, sign, gap, shares = problem.row_system(
        model, state, made.contact, made.angular, made.trees, used, made.scalar, motion.u, made.wires, basis
    )
    begin = problem.warm_start(model, state, contacts, axes, made.impact, sign, motion.body.links.origin)
    taken = None if loop is None else loops.LoopShares(made.shares, shares)
    return system, Built((sign, gap), made.wires, taken), begin


def _dense_rows(
    model: Model, state: State, motion: FreeMotion, contacts: Contacts, axes, carried: jax.Array, loop: Loop | None
) -> Made:
    """Rows with a column for every dof."""
    body, tree = motion.body, structure(model.topology)
    subspace, n = body.subspace, state.q.shape[-1]
    side = jnp.take(contacts.side, jnp.asarray(tree.dof_order), axis=0) if model.nv else contacts.side
    start, free = take(state.qd, tree.dof_order), take(motion.u, tree.dof_order)

    def whiten(jacobian: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """(Y, its share of the loop space)."""
        whitened = algebra(tree).whiten(tree, body.factor, jacobian)
        return (whitened, None) if loop is None else elimination.keep_clear(loop.basis, whitened)

    def contact(carry: None, slot: Slot) -> tuple[None, tuple[jax.Array | None, ...]]:
        jacobian = contact_jacobian(slot, subspace.angular, subspace.linear, subspace.tree_origin, tree.dof_tree)
        whitened, shares = whiten(jacobian)
        row, impact = contact_row(model, slot, whitened, along(jacobian, start), along(jacobian, free))
        if slot.turning is None:
            return carry, (row, impact, None, shares)
        jacobian = angular_jacobian(slot, subspace.angular)
        whitened, more = whiten(jacobian)
        shares = None if shares is None else concatenate([shares, more])
        return carry, (row, impact, angular_row(slot, whitened, along(jacobian, free)), shares)

    slots = problem.contact_slots(contacts, axes, side, carried, _turning(model, state, body, contacts))
    rows, impact, angular, shares = scan_slots(problem.used_slots(contacts), contact, None, slots)[1]
    scalars, wire = problem.unit_rows(model, tree.dof_order, n), None
    if model.topology.swept_wires:
        wire = wires.wire_rows(model, state, _motions(model, body), body.links, start, free)
        scalars = concatenate([scalars, wire.jacobian])
    no_trees = problem.RowTrees(jnp.zeros((contacts.gap.shape[0], 0, n), jnp.int32), 0, ())
    whitened = algebra(tree).whiten(tree, body.factor, scalars)
    return Made(rows, impact, angular, no_trees, whitened, wire, shares)


def _scattered_rows(
    model: Model, state: State, motion: FreeMotion, contacts: Contacts, axes, carried: jax.Array
) -> Made:
    """Rows with columns for the two trees that they touch."""
    topology, body = model.topology, motion.body
    fields = [link_velocities(model, state, body, u) for u in (state.qd, motion.u)]
    blocks = tree_blocks.link_blocks(topology, body, *fields)
    links, trees = tree_blocks.slot_links(topology, contacts.links)
    count = tree_blocks.tree_layout(topology).count

    def contact(carry: None, xs: tuple[Slot, jax.Array, jax.Array]) -> tuple[None, tuple[jax.Array | None, ...]]:
        slot, pair, owners = xs
        together = (pair[0] < topology.njnt) & (pair[1] < topology.njnt) & (owners[1] == count)
        view = tree_blocks.view(blocks, pair)
        y, start, free = pair_row(slot, view, together)
        angular = None if slot.turning is None else angular_row(slot, *pair_angular_row(slot, view, together))
        return carry, (*contact_row(model, slot, y, start, free), angular)

    slots = problem.contact_slots(contacts, axes, contacts.side, carried, _turning(model, state, body, contacts))
    rows, impact, angular = scan_slots(problem.used_slots(contacts), contact, None, (slots, links, trees))[1]
    whitened, scalar = tree_blocks.unit_rows(blocks, topology, problem.scalar_dofs(model))
    return Made(rows, impact, angular, problem.RowTrees(trees, count, scalar), whitened)


def _turning(model: Model, state: State, body: Body, contacts: Contacts) -> Turning | None:
    """Bounds of rolling and spinning friction, and the spin that prescribed bodies bring."""
    topology = model.topology
    if not topology.angular_friction:
        return None
    n = contacts.gap.shape[-1]
    owner = jnp.asarray([*topology.geom_link, topology.world], jnp.int32)
    links = owner[_contact_geoms(model, contacts.index)[:, : topology.max_contacts]]
    joints = slice(0, topology.njnt)
    centre = body.links.position[:, joints] + vectors.rotate(body.links.rotation[:, :, joints], model.link_com)
    others = jnp.zeros((3, topology.nlink - topology.njnt, n), centre.dtype)
    centres = windows.windows(concatenate([centre, others], axis=1))
    reach = [vectors.safe_norm(fence(contacts.point - windows.read(centres, link))) for link in links]
    rolling, spinning, of_a, of_b = contacts.turning
    lever = fence(jnp.where(of_a + of_b > 0, of_a * reach[0] + of_b * reach[1], 1))
    still = [jnp.zeros((3, count, n), centre.dtype) for count in (topology.njnt, 1)]
    spins = windows.windows(concatenate([still[0], state.kinematic_angular_velocity, still[1]], axis=1))
    spin = fence(windows.read(spins, links[1]) - windows.read(spins, links[0]))
    return Turning(*fence((rolling * lever, spinning * lever)), jnp.swapaxes(spin, 0, 1))


def finish(
    model: Model,
    state: State,
    motion: FreeMotion,
    rows: ContactRows,
    residual: jax.Array,
    overflow: jax.Array,
) -> State:
    """Move with the step's final motion, set status bits; worlds that are not finite stay where they were."""
    qd = motion.u
    if motion.penalty is not None:
        rows = penalty_rows(model, state, motion, qd, rows)
    q = advance(model, state.q, motion.rate, model.dt)
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
    return reports.step_report(model, state, _contact_geoms(model, state.rows.index[: model.topology.max_contacts]))


def _contact_geoms(model: Model, index: jax.Array) -> jax.Array:
    """Geoms a and b (2, slots, N) of report slots: contacts by ContactRows.index, then the compliant candidates."""
    topology, index = model.topology, jnp.maximum(index, 0)
    if topology.scattered:
        rigid = jnp.stack(listing.geoms(topology, index))
    else:
        table = jnp.asarray([*pair_table.candidate_geoms(topology), (0, 0)], jnp.int32)
        rigid = jnp.moveaxis(table[index], -1, 0)
    compliant = pair_table.candidate_geoms(pair_table.penalty_topology(topology))
    fixed = jnp.asarray(compliant, jnp.int32).reshape(-1, 2).T[..., None]
    return jnp.concatenate([rigid, jnp.broadcast_to(fixed, (2, len(compliant), index.shape[-1]))], axis=1)


@jax.jit
def detect_contacts(model: Model, state: State) -> PointPairContactInfo:
    """The same record for the state's own pose, without a step: touching shapes only, forces and speeds zero."""
    q = normalize(model, state.q)
    links, rotation, position = link_poses(model, q, state.kinematic_position, state.kinematic_quaternion)
    if model.topology.scattered:
        contacts, _ = select_listed(model, links, None, model.dt, speculative=False)
    else:
        candidates = detect(model, links)
        contacts = select(model, candidates, candidates.gap, candidates.gap <= 0)
    compliant = None
    if model.topology.npenalty:
        body = Body(links, motion_subspace(model, rotation, position), None)
        compliant = find_penalties(model, links, link_velocities(model, state, body, state.qd))
    return reports.pose_report(model, contacts, compliant, links.origin, _contact_geoms(model, contacts.index))


@jax.jit
def net_contact_force(model: Model, state: State) -> jax.Array:
    """Sum of the last step's contact forces on every body (3, nbody, N), world axes, N."""
    return reports.net_force(model, contact_report(model, state))


def solver_residual(model: Model, state: State) -> jax.Array:
    """(3, N) m/s: normal, cone and dissipation residual of the last step's rows, see `contact/residual.py`."""
    del model
    return state.residual


@jax.jit
def wire_tension(model: Model, state: State) -> jax.Array:
    """(nwire, N) tension of every wire in the last step, N; positive pulls, negative pushes."""
    impulse = state.rows.impulse[2]
    found = [sign * impulse[row] for row, sign in problem.wire_rows_of(model.topology)]
    return jnp.stack(found) / model.dt if found else impulse[:0]


@partial(jax.jit, static_argnums=(2, 3))
def _pad(model: Model, worlds: Any, count: int, total: int) -> tuple[Model, Any]:
    size = blocks.block_size(model.topology)
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
