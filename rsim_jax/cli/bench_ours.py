"""Our side of the speed comparison: timed roll-outs, and the quality of what they computed."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import rsim_jax as rsim
from rsim_jax import structs
from rsim_jax.cli.bench_cases import ROWS, Case

if TYPE_CHECKING:
    from rsim_jax.structs import Model, State

RESIDUAL_LIMIT = 1e-3  # m/s, at which the solver's status bit is set too


class OursRunner:
    """Advances N worlds of a case with `rsim.rollout`, one compiled program per number of worlds."""

    label = "rsim_jax"
    grain = 8  # control periods per call of the compiled roll-out; divides ROWS

    def __init__(self, case: Case, model: Model, worlds: int) -> None:
        self._case, self.model, self.worlds = case, model, worlds
        q, qd = (jnp.asarray(x, model.dtype) for x in case.start(worlds))
        self.state = rsim.make_state(model, worlds).replace(q=q, qd=qd)
        table = case.controls(worlds)
        self._slices = [jnp.asarray(table[i : i + self.grain], model.dtype) for i in range(0, ROWS, self.grain)]
        self._call = 0
        self._program = jax.jit(_periods, static_argnums=3).lower(model, self.state, self._slices[0], case.frame_skip)
        self._program = self._program.compile()

    def advance(self, periods: int) -> None:
        """Runs that many control periods of `frame_skip` steps in every world, a multiple of `grain`."""
        for _ in range(periods // self.grain):
            self.state = self._program(self.model, self.state, self._slices[self._call % len(self._slices)])
            self._call += 1
        jax.block_until_ready(self.state)

    def finite(self) -> bool:
        return bool(jnp.isfinite(self.state.q).all() & jnp.isfinite(self.state.qd).all())

    def program_bytes(self) -> int | None:
        """Bytes of arguments, results and intermediate arrays of the compiled roll-out; None where JAX cannot say."""
        usage = self._program.memory_analysis()
        if usage is None:
            return None
        return usage.argument_size_in_bytes + usage.output_size_in_bytes + usage.temp_size_in_bytes

    def quality(self, steps: int) -> dict[str, Any]:
        """Runs `steps` more steps one by one and looks at each: residuals, overflow, contacts, health.

        Returns:
            `residual` (steps, N) in m/s, largest of the three kinds; `overflow` and `not_finite` (steps, N) bool;
            `contacts`, the mean number per world.
        """
        look = jax.jit(_look)
        table, state, seen = self._case.controls(self.worlds), self.state, []
        for k in range(steps):
            ctrl = jnp.asarray(table[k // self._case.frame_skip % ROWS], self.model.dtype)
            state = rsim.step(self.model, state.replace(status=jnp.zeros_like(state.status)), ctrl)
            seen.append(jax.device_get(look(self.model, state)))
        residual, status, contacts = (np.stack(x) for x in zip(*seen, strict=True))
        return {
            "residual": residual,
            "overflow": (status & int(rsim.Status.CONTACT_OVERFLOW)) != 0,
            "not_finite": (status & int(rsim.Status.NOT_FINITE)) != 0,
            "contacts": float(contacts.mean()),
        }


def _periods(model: Model, state: State, rows: jax.Array, frame_skip: int) -> State:
    """`frame_skip` steps under each of the controls rows (T, nu, N)."""
    return rsim.rollout(model, state, jnp.repeat(rows, frame_skip, axis=0), output=lambda s: ())[0]


def _look(model: Model, state: State) -> tuple[jax.Array, jax.Array, jax.Array]:
    contact_rows = np.flatnonzero(np.asarray(state.rows.kind) == structs.CONTACT)
    contacts = jnp.sum(state.rows.active[contact_rows], axis=0)
    return jnp.max(rsim.solver_residual(model, state), axis=0), state.status, contacts


def state_bytes(model: Model) -> int:
    """Bytes of state per world, by shape alone: what two worlds need more than one."""

    def size(worlds: int) -> int:
        leaves = jax.tree.leaves(jax.eval_shape(lambda: rsim.make_state(model, worlds)))
        return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves)

    return size(2) - size(1)


def first_step_seconds(model: Model, worlds: int) -> dict[str, float]:
    """Seconds until the first step is done: with an empty compilation cache, and again with the one that left."""
    from jax.experimental.compilation_cache import compilation_cache

    state = rsim.make_state(model, worlds)
    ctrl = jnp.zeros((model.nu, worlds), model.dtype)
    jax.block_until_ready((state, ctrl))
    settings = (
        "jax_compilation_cache_dir",
        "jax_enable_compilation_cache",
        "jax_persistent_cache_min_compile_time_secs",
    )
    before, taken = {name: getattr(jax.config, name) for name in settings}, {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, value in zip(settings, (folder, True, 0.0), strict=True):
                jax.config.update(name, value)
            compilation_cache.reset_cache()
            for label in ("cold", "cached"):
                jax.clear_caches()
                begin = time.perf_counter()
                jax.block_until_ready(rsim.step(model, state, ctrl))
                taken[label] = time.perf_counter() - begin
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
    return taken
