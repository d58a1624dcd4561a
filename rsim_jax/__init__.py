"""rsim_jax: batched rigid-body simulation with exact Coulomb contact, for reinforcement learning on JAX."""
