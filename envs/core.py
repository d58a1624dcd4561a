"""The functional core: a task turns an action into a new state, an observation, a reward and an end.

A task is a pytree: the model's leaves are data, every other field is static. `jax.jit` therefore compiles one program
for all tasks of one class with equal parameters. Everything here has the world axis last.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

import rsim_jax as rsim
from rsim_jax.envs.files import model_file
from rsim_jax.envs.placement import place
from rsim_jax.envs.randomization import Ranges, draw_leaves
from rsim_jax.lanes import blocks, quaternions
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import BALL, FREE, Model, State, record


class Outcome:
    """What one step of a task produced. Tasks fill it; `Task` completes it and guards it."""

    obs: Float[Array, "d N"]
    reward: Float[Array, " N"]
    terminated: Bool[Array, " N"]
    terms: dict[str, Float[Array, " N"]]  # reward terms and measurements, one number per world
    info: dict[str, Array]  # further arrays, world last


Outcome = record(Outcome)


class TaskState:
    """One moment of N worlds of a task."""

    physics: State
    key: Key[Array, " N"]  # each world's own stream of random numbers
    parameters: dict[str, Array]  # this episode's randomised model leaves, last axis N
    obs: Float[Array, "d N"]
    reward: Float[Array, " N"]
    terminated: Bool[Array, " N"]
    terms: dict[str, Float[Array, " N"]]
    info: dict[str, Array]  # `not_finite` (N,) bool and what the task adds

    def replace(self, **fields: Any) -> TaskState:
        """A copy with new fields."""
        return dataclasses.replace(self, **fields)


TaskState = record(TaskState)


def task_class(cls: type) -> type:
    """Frozen keyword-only dataclass and pytree: `model` is data, all other fields are static and hashable."""
    cls = dataclass(frozen=True, eq=False, kw_only=True)(cls)
    static = [f.name for f in dataclasses.fields(cls) if f.name != "model"]
    return jax.tree_util.register_dataclass(cls, ["model"], static)


@task_class
class Task:
    """Base of all tasks: subclasses give the model's starts and the outcome of a step.

    Attributes:
        model: the simulated robot; shared leaves, or per-world ones for a fixed number of worlds.
        xml_file: a file of Gymnasium's MuJoCo assets by name, or a path that starts with ".", "/" or "~".
        frame_skip: physics steps per action.
        randomize: ((leaf, low, high), ...): at every reset of a world each item of that model leaf is multiplied by a
            fresh factor, uniform in [low, high].
    """

    max_episode_steps: ClassVar[int | None] = None  # Gymnasium's time limit, applied by the batch layer
    reward_threshold: ClassVar[float | None] = None
    state_terms: ClassVar[tuple[str, ...]] = ()  # terms that describe the state and so exist after a reset too

    model: Model
    xml_file: str = ""
    frame_skip: int = 1
    randomize: Ranges = ()

    # What a task defines

    def initial(self, keys: Key[Array, " N"]) -> tuple[Float[Array, "nq N"], Float[Array, "nv N"]]:
        """Positions and velocities at the start of an episode, drawn from each world's key."""
        raise NotImplementedError

    def outcome(self, model: Model, before: State, after: State, action: Float[Array, "nu N"]) -> Outcome:
        """Observation, reward and end of the step that led from `before` to `after` under `action`.

        After a reset it is called with `before` = `after` and zero action; only `obs`, `info` and the terms named in
        `state_terms` are used then.
        """
        raise NotImplementedError

    # What everyone uses

    @classmethod
    def load(cls, *, options: Any = None, dtype: Any = jnp.float32, **params: Any) -> Task:
        """The task on its model file; `params` are the fields of the class.

        Args:
            options: `rsim.Options`, or a dict of its fields.
            dtype: float32 or float64 (name or type; float64 needs JAX's x64).

        Raises:
            TypeError: for a parameter that the task does not have; the message lists those it has.
        """
        fields = {f.name: f for f in dataclasses.fields(cls) if f.name != "model"}
        unknown = sorted(set(params) - set(fields))
        if unknown:
            known = ", ".join([*fields, "options", "dtype"])
            raise TypeError(f"{cls.__name__} has no parameter {', '.join(map(repr, unknown))}; it has: {known}")
        params = {name: _hashable(value) for name, value in params.items()}
        options = rsim.Options(**options) if isinstance(options, dict) else options
        path = model_file(params.get("xml_file", fields["xml_file"].default))
        return cls(model=rsim.load(path, options=options, dtype=jnp.dtype(dtype)), **params)

    @property
    def dt(self) -> float:
        """Time between actions, s."""
        return float(self.model.dt) * self.frame_skip

    @property
    def dtype(self) -> Any:
        return self.model.dtype

    @property
    def action_size(self) -> int:
        return self.model.nu

    @property
    def block_size(self) -> int:
        """Worlds that the simulator computes at a time."""
        return blocks.block_size(self.model.topology)

    @property
    def action_range(self) -> tuple[Float[Array, " nu"], Float[Array, " nu"]]:
        """Lowest and highest control of each actuator."""
        return self.model.actuator_ctrl_range[0, :, 0], self.model.actuator_ctrl_range[1, :, 0]

    @property
    def observation_size(self) -> int:
        return jax.eval_shape(lambda key: self.reset(key, 1), jax.random.key(0)).obs.shape[0]

    def reset(self, key: Key[Array, ""], num_worlds: int) -> TaskState:
        """Start an episode in every world; world i draws from fold_in(key, i) whatever the number of worlds."""
        return self.restart(world_keys(key, num_worlds))

    def restart(self, keys: Key[Array, " N"]) -> TaskState:
        """Start an episode in every world from its own key; the state keeps the rest of each stream."""
        return place(self._started(keys), keys.shape[0], self.block_size)

    @jax.jit
    def _started(self, keys: Key[Array, " N"]) -> TaskState:
        kept, starts, leaves = split_keys(keys, 3)
        parameters = draw_leaves(self.model, self.randomize, leaves)
        q, qd = self.initial(starts)
        physics = rsim.make_state(self.model, keys.shape[0]).replace(q=q, qd=qd)
        action = jnp.zeros((self.action_size, keys.shape[0]), self.dtype)
        return self._judged(physics, physics, action, kept, parameters, fresh=True)

    def step(self, state: TaskState, action: Float[Array, "nu N"]) -> TaskState:
        """`frame_skip` physics steps under one action, then the outcome.

        A world whose state or outcome stops being finite ends: it keeps its last finite pose, `terminated` and
        `info["not_finite"]` are true, its reward is 0.

        Outside of `jax.jit` the physics is a program of its own, one for all numbers of worlds.

        Raises:
            ValueError: for an action of the wrong shape.
        """
        worlds = state.reward.shape[0]
        if action.shape != (self.action_size, worlds):
            raise ValueError(f"action has shape {action.shape}, expected (nu, N) = {(self.action_size, worlds)}")
        action = jnp.asarray(action, self.dtype)
        ctrls = jnp.broadcast_to(action, (self.frame_skip, *action.shape))
        physics, _ = rsim.rollout(self._robot(state.parameters), state.physics, ctrls, output=_nothing)
        return self._judged(state.physics, physics, action, state.key, state.parameters, fresh=False)

    def _robot(self, parameters: dict[str, Array]) -> Model:
        """The model with this episode's leaves."""
        return self._randomized(parameters) if parameters else self.model

    @jax.jit
    def _randomized(self, parameters: dict[str, Array]) -> Model:
        return self.model.replace(**parameters)

    @functools.partial(jax.jit, static_argnames="fresh")
    def _judged(
        self, before: State, after: State, action: Array, key: Array, parameters: dict[str, Array], fresh: bool
    ) -> TaskState:
        """The guarded outcome as a state; `fresh` blanks what only a step can have."""
        outcome = self.outcome(self._robot(parameters), before, after, action)
        dtype, worlds = self.dtype, action.shape[1]
        terms = {name: _lane(value, dtype, worlds) for name, value in outcome.terms.items()}
        reward = _lane(outcome.reward, dtype, worlds)
        terminated = jnp.broadcast_to(outcome.terminated, (worlds,))
        bad = (after.status & rsim.Status.NOT_FINITE.value) != 0
        bad |= ~jnp.isfinite(reward) | ~jnp.all(jnp.isfinite(outcome.obs), axis=0)
        if fresh:
            reward, terminated, bad = jnp.zeros_like(reward), jnp.zeros_like(bad), jnp.zeros_like(bad)
            terms = {name: v if name in self.state_terms else jnp.zeros_like(v) for name, v in terms.items()}
        return TaskState(
            physics=after,
            key=key,
            parameters=parameters,
            obs=_finite(jnp.asarray(outcome.obs, dtype)),
            reward=jnp.where(bad, 0, reward),
            terminated=terminated | bad,
            terms={name: jnp.where(bad, 0, _finite(value)) for name, value in terms.items()},
            info={**outcome.info, "not_finite": bad},
        )


@functools.partial(jax.jit, static_argnames="num_worlds")
def world_keys(key: Key[Array, ""], num_worlds: int) -> Key[Array, " N"]:
    """World i's stream: fold_in(key, i)."""
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(num_worlds, dtype=jnp.uint32))


def uniform(keys: Key[Array, " N"], size: int, scale: float, dtype: Any) -> Float[Array, "size N"]:
    """Uniform in [-scale, scale), each world from its own key."""
    draw = jax.vmap(lambda key: jax.random.uniform(key, (size,), dtype, -scale, scale), out_axes=-1)
    return draw(keys)


def normal(keys: Key[Array, " N"], size: int, scale: float, dtype: Any) -> Float[Array, "size N"]:
    """Normal with mean 0 and standard deviation `scale`, each world from its own key."""
    return scale * jax.vmap(lambda key: jax.random.normal(key, (size,), dtype), out_axes=-1)(keys)


def free_start(model: Model, keys: Key[Array, " N"], scale: float) -> Float[Array, "nq N"]:
    """The model's default pose plus uniform noise in [-scale, scale) on every entry, quaternions made unit again."""
    q = model.default_q + uniform(keys, model.nq, scale, model.dtype)
    for kind, start in zip(model.topology.joint_type, model.topology.joint_qadr, strict=True):
        if kind in (FREE, BALL):
            w = start + (3 if kind == FREE else 0)
            q = concatenate([q[:w], quaternions.normalize(q[w : w + 4]), q[w + 4 :]])
    return q


def split_keys(keys: Key[Array, " N"], count: int = 2) -> tuple[Key[Array, " N"], ...]:
    """`count` independent keys per world."""
    split = jax.vmap(lambda key: jax.random.split(key, count), out_axes=-1)(keys)
    return tuple(split[i] for i in range(count))


def _nothing(state: State) -> tuple[()]:
    """Of the substeps nothing is kept; one function object, so that the roll-out is traced once."""
    return ()


def _hashable(value: Any) -> Any:
    """Lists, as JSON and YAML give them, become tuples: static fields must be hashable."""
    return tuple(_hashable(v) for v in value) if isinstance(value, (list, tuple)) else value


def _lane(value: Any, dtype: Any, worlds: int) -> Array:
    """One number per world, strongly typed."""
    return jnp.broadcast_to(jnp.asarray(value, dtype), (worlds,))


def _finite(value: Array) -> Array:
    return jnp.where(jnp.isfinite(value), value, 0)
