"""Reinforcement-learning tasks on the simulator."""

if __name__ != "rsim_jax.envs":
    raise ImportError("import rsim_jax.envs, not the checkout's folder envs")
