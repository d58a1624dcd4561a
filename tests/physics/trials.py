"""Many variants of one scene as the worlds of one program: build, vary, run, look."""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np

import rsim_jax as rsim

G = 9.81
PIECE = 50  # steps of one compiled run; longer ones repeat it, so that all durations share a program
EXACT = {"float64": rsim.Options(sweeps=300, tolerance=1e-11), "float32": rsim.Options(sweeps=60)}


def moment(state):
    """What is kept of every step."""
    rows = state.rows
    contacts = jnp.asarray([kind == 0 for kind in rows.kind])[:, None]
    return state.q, state.qd, jnp.sum(jnp.where(contacts, rows.impulse[2], 0), axis=0)


@dataclasses.dataclass(frozen=True)
class History:
    """Steps on the first axis, worlds on the last; `load` is the sum of normal impulses / dt."""

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    load: np.ndarray
    state: rsim.State


def run(model, state, seconds, every=1, ctrl=None):
    """Run for at least `seconds` at a constant ctrl (nu, N); keeps every `every`-th step (of each piece)."""
    dt = float(model.dt)
    shape = (PIECE, model.nu, state.q.shape[-1])
    ctrls = jnp.broadcast_to(
        jnp.zeros(shape[1:], model.dtype) if ctrl is None else jnp.asarray(ctrl, model.dtype), shape
    )
    pieces = -(-round(seconds / dt) // PIECE)
    kept = []
    for _ in range(pieces):
        state, seen = rsim.rollout(model, state, ctrls, output=moment)
        kept.append([np.asarray(x)[every - 1 :: every] for x in seen])
    q, qd, impulse = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    per_piece = dt * (np.arange(PIECE)[every - 1 :: every] + 1)
    time = np.concatenate([per_piece + k * PIECE * dt for k in range(pieces)])
    return History(time, q, qd, impulse / dt, state)


def at(history, seconds):
    """Index of the kept step nearest to a time."""
    return int(np.argmin(np.abs(history.time - seconds)))


def tilted(degrees):
    """Gravity (3, N) of slopes that fall towards +x: the plane stays level and gravity leans."""
    angle = np.radians(np.asarray(degrees, float))
    return np.stack([G * np.sin(angle), 0 * angle, -G * np.cos(angle)])


@functools.cache
def block_on_plane(dtype):
    """A 1 kg block, 0.2 x 0.2 x 0.1, at rest on the ground."""
    scene = rsim.Scene(timestep=0.001)
    scene.add_ground()
    scene.add_box((0.2, 0.2, 0.1), 1.0, position=(0, 0, 0.05))
    return scene.compile(options=EXACT[dtype], dtype=dtype)


@functools.cache
def ball_on_plane(dtype, integrator="semi_implicit"):
    """A 1 kg solid ball of radius 0.1 at rest on the ground."""
    scene = rsim.Scene(timestep=0.001)
    scene.add_ground()
    scene.add_sphere(0.1, 1.0, position=(0, 0, 0.1))
    return scene.compile(options=dataclasses.replace(EXACT[dtype], integrator=integrator), dtype=dtype)


def worlds(model, count, dt=None, *, velocity=None, spin=None, height=None, **leaves):
    """(model, state) of `count` worlds; leaves given or not, the same set is per world, so programs are shared.

    velocity (3, N) and spin (3, N, body axes) of the only free body; height (N,) is added to its z.
    """
    defaults = {
        "gravity": np.array([0, 0, -G]),
        "pair_friction": np.array([0.5]),
        "pair_static_friction": leaves.get("pair_friction", np.array([0.5])),
        "pair_restitution": np.array([0.0]),
        "pair_restitution_threshold": np.array([0.0]),
        "body_inertia": np.asarray(model.body_inertia),
        "body_mass": np.asarray(model.body_mass),
        "geom_size": np.asarray(model.geom_size),
    }
    varied = {}
    for name, default in defaults.items():
        shape = getattr(model, name).shape[:-1]
        value = np.asarray(leaves.get(name, default), float)
        if value.ndim == 1 and value.shape[0] in (1, count) and shape == (1,):
            value = value[None]  # one value per world of the only pair
        if value.ndim == len(shape):
            value = value[..., None]
        varied[name] = jnp.asarray(np.broadcast_to(value, (*shape, count)), model.dtype)
    if dt is not None:
        varied["dt"] = jnp.asarray(dt, model.dtype)
    model = model.replace(**varied)
    state = rsim.make_state(model, count)
    q, qd = np.array(state.q), np.array(state.qd)
    if velocity is not None:
        qd[:3] = velocity
    if spin is not None:
        qd[3:6] = spin
    if height is not None:
        q[2] += height
    return model, state.replace(q=jnp.asarray(q, model.dtype), qd=jnp.asarray(qd, model.dtype))
