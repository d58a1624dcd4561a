"""MuJoCo XLA as a peer: a program for the interpreter of another environment, driven by `bench_mjx.py`.

It imports nothing of ours. It reads a model file and an .npz with the settled states and controls, says
"peer: SECONDS True" once compiled, then answers each line "PERIODS" with "peer: SECONDS FINITE", or "peer: error TEXT".
Libraries print to the same stream; only lines that begin with "peer:" count.
"""

from __future__ import annotations

import sys


def serve(model_file: str, work_file: str, preset: str) -> None:
    """Runs in the peer's interpreter: one MJX batch, advanced on request."""
    import time

    import jax
    import jax.numpy as jnp
    import mujoco
    import numpy as np
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_path(model_file)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS or preset == "tuned":
        model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON  # MJX has no PGS
    if preset == "tuned":  # what MJX's own benchmark models use
        model.opt.iterations, model.opt.ls_iterations = 1, 4
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    work = np.load(work_file)
    table, skip = jnp.asarray(work["controls"]), int(work["frame_skip"])
    device_model, blank = mjx.put_model(model), mjx.make_data(model)
    fill = jax.vmap(lambda q, qd: blank.replace(qpos=q, qvel=qd))
    data = fill(jnp.asarray(work["q"], jnp.float32), jnp.asarray(work["qd"], jnp.float32))
    data = jax.tree.map(
        lambda x: jnp.asarray(np.asarray(x)), data
    )  # no weak types, else the second call compiles again
    step = jax.vmap(mjx.step, in_axes=(None, 0))

    @jax.jit
    def many(data, first, steps):
        def body(i, data):
            ctrl = jax.lax.dynamic_index_in_dim(table, i // skip % table.shape[0], 0, keepdims=False)
            return step(device_model, data.replace(ctrl=ctrl))

        return jax.lax.fori_loop(first, first + steps, body, data)

    done = 0
    begin = time.perf_counter()
    data = jax.block_until_ready(many(data, jnp.int32(0), jnp.int32(skip)))
    print("peer:", time.perf_counter() - begin, True, flush=True)
    for line in sys.stdin:
        steps = int(line) * skip
        begin = time.perf_counter()
        data = jax.block_until_ready(many(data, jnp.int32(done), jnp.int32(steps)))
        print("peer:", time.perf_counter() - begin, bool(jnp.isfinite(data.qpos).all()), flush=True)
        done += steps


if __name__ == "__main__":
    try:
        serve(*sys.argv[1:])
    except Exception as error:  # the other side reads one line and reports it
        print("peer: error", type(error).__name__, str(error).replace("\n", " ")[:300], flush=True)
