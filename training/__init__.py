"""Training of policies, fully on device."""

if __name__ != "rsim_jax.training":
    raise ImportError("import rsim_jax.training, not the checkout's folder training")
