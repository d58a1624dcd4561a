"""Running mean and variance of observations and of discounted returns.

Batches are merged with Chan's form of Welford's update, written with means instead of sums, so that float32 keeps its
digits after billions of samples: w = m / (n + m), mean += w d, var = (1-w) var + w var_batch + w (1-w) d^2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rsim_jax.structs import record

CLIP = 10.0  # normalised values beyond this are outliers (a fall, a blow) that should not move the networks
EPSILON = 1e-8  # a component that never changes has variance 0
COUNT_MAX = 2**30  # beyond it old samples fade slowly; keeps the int32 count from overflowing


class Moments:
    """Mean and variance of what was seen so far; `count` samples of it."""

    mean: Float[Array, "*shape"]
    var: Float[Array, "*shape"]
    count: Int[Array, ""]


Moments = record(Moments)


def fresh(shape: tuple[int, ...], dtype: jnp.dtype) -> Moments:
    """Moments of nothing: mean 0, variance 1, count 0."""
    return Moments(jnp.zeros(shape, dtype), jnp.ones(shape, dtype), jnp.zeros((), jnp.int32))


def merge(moments: Moments, samples: Float[Array, "*batch *shape"]) -> Moments:
    """Moments after also seeing `samples`, whose leading axes run over samples."""
    axes = tuple(range(samples.ndim - moments.mean.ndim))
    added = samples.size // moments.mean.size
    batch_mean = jnp.mean(samples, axes)
    batch_var = jnp.mean((samples - batch_mean) ** 2, axes)
    total = (moments.count + added).astype(samples.dtype)
    weight = jnp.asarray(added, samples.dtype) / total
    shift = batch_mean - moments.mean
    var = (1 - weight) * moments.var + weight * batch_var + weight * (1 - weight) * shift**2
    count = jnp.minimum(moments.count + added, COUNT_MAX).astype(jnp.int32)
    return Moments(moments.mean + weight * shift, var, count)


def normalize(moments: Moments, x: Float[Array, "*batch *shape"]) -> Float[Array, "*batch *shape"]:
    """(x - mean) / spread, clipped to +-10."""
    return jnp.clip((x - moments.mean) * jax.lax.rsqrt(moments.var + EPSILON), -CLIP, CLIP)


def rescale(moments: Moments, x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """x / spread, clipped to +-10: the sign and the zero of a reward keep their meaning."""
    return jnp.clip(x * jax.lax.rsqrt(moments.var + EPSILON), -CLIP, CLIP)


def discounted_returns(
    start: Float[Array, " N"], reward: Float[Array, "T N"], done: Array, gamma: float
) -> tuple[Float[Array, " N"], Float[Array, "T N"]]:
    """Discounted sum of past rewards of the current episode at every step, and its value to go on from."""

    def later(total: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        total = total * gamma + step[0]
        return jnp.where(step[1], jnp.zeros_like(total), total), total

    return jax.lax.scan(later, start, (reward, done))
