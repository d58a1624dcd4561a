"""The scenes of SimBenchmark, with its positions, masses, materials, loads and measures of error.

Every measure looks at the state *before* each step, at t = 0, dt, ... T - dt, and a scene's error is the mean of what
it has seen. Rolling's truth, for a box of mass M under 25 solid balls of mass m, pushed by F:

    f1 = mu (M + 25 m) g,   f2 = (F - f1) / M / (3.5 / m + 25 / M),   a_box = (F - f1 - 25 f2) / M,   a_ball = f2 / m

Bouncing's 49 balls never meet, have no spin and fall from one height, so that they are one ball, 49 times: its energy
error counts 49 times. Robots in a row stand 2 m apart and never meet either: each is a world of its own.

Contacts are found where shapes overlap, as they were for the published figures, but for the pile without bounces, 666:
there the trapezoid rule, which moves by the mean velocity, would carry an impact at speed v another v dt / 2 deep,
where no error reduction ever lifts it. Our own way to meet an impact, speculative contacts, leaves nothing to correct.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import rsim_jax as rsim
from rsim_jax.structs import Model, State

G = 9.81
RADIUS, MASS = 0.1, 10.0  # m, kg: the balls of bouncing and of the two piles
COUNT, HEIGHT = 49, 5.0  # bouncing: balls, and where their centres start, m
SIDE, PITCH, NOISE = 6, 0.21, 1e-3  # the piles: balls along an edge, m between centres, m of noise
BOX_MASS, BALL_MASS, FORCE, HEADING = 10.0, 1.0, 150.0, (0.5, 0.8660254, 0.0)  # rolling: kg, kg, N, direction
STANCE = (0.03, 0.4, -0.8, -0.03, 0.4, -0.8, 0.03, -0.4, 0.8, -0.03, -0.4, 0.8)  # rad: LF, RF, LH, RH x HAA, HFE, KFE
LIFT_TIME, ALOFT, STANDING = 1.0, 2.0, 0.54  # s of lifting; m: where its base starts, in the air and on the ground
LOSSLESS = rsim.Material(friction=0, restitution=1, restitution_threshold=0)
KP, KD = 40.0, 1.0  # N m/rad, N m s/rad: the robot's explicit servo

Look = Callable[[Model, State], jax.Array]  # (M, N)
Measure = Callable[[Model, State, jax.Array], jax.Array]  # errors (M, N) of a state before a step, M = 1 but in piles
Force = Callable[[Model, State], jax.Array]


@dataclass(frozen=True)
class Setup:
    """A scene ready to run: what to step, from where, under what force, and what to look at.

    `measure` is given what `reference` says of the state when measuring begins, `skip` seconds after the start. Both
    and `force` are functions of the module, so that one compiled program serves every step length.
    """

    model: Model
    state: State
    measure: Measure
    reference: Look
    force: Force | None = None
    skip: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """One row of SimBenchmark's table; `build(dt, integrator)` makes it ready to run."""

    name: str
    unit: str
    build: Callable[..., Setup]
    seconds: float  # that count
    part: int  # which row of the measure is this scenario's error
    integrators: tuple[str, ...]
    gates: dict[str, float]  # largest error allowed at dt = 1e-3, by integrator
    steps: tuple[float, ...] = (4e-4, 1e-3, 4e-3, 1e-2)  # s: of the sweep over step lengths


def options(integrator: str, sweeps: int = 200, speculative: bool = False) -> rsim.Options:
    """No error reduction, and a solver that stops at 1e-10 m/s."""
    return rsim.Options(integrator=integrator, sweeps=sweeps, tolerance=1e-10, erp=0.0, speculative=speculative)


def _none(model: Model, state: State) -> jax.Array:
    return jnp.zeros((1, state.q.shape[-1]), state.q.dtype)


def rolling(dt: float, integrator: str) -> Setup:
    """A box pushed along the ground with 25 balls on it."""
    scene = rsim.Scene(timestep=dt)
    scene.add_ground(material="ground")
    scene.add_box((20.0, 20.0, 1.0), BOX_MASS, position=(0, 0, 0.5 - 2e-5), material="box")
    for i in range(25):
        place = (2 * (i % 5) - 4, 2 * (i // 5) - 4, 1.5 - 6e-5)
        scene.add_sphere(0.5, BALL_MASS, position=place, material="ball")
    for a, b, friction in (("ground", "box", 0.4), ("box", "ball", 0.8), ("ground", "ball", 0.5)):
        scene.set_material_pair(a, b, rsim.Material(friction=friction))
    model = scene.compile(options=options(integrator, sweeps=400), dtype=jnp.float64)
    return Setup(model, rsim.make_state(model, 1), _rolling_error, _none, _push)


def _push(model: Model, state: State) -> jax.Array:
    return jnp.zeros_like(state.qd).at[:3].set(FORCE * jnp.asarray(HEADING)[:, None])


def rolling_accelerations() -> tuple[float, float]:
    """(box, ball), m/s^2 along the force."""
    f1 = 0.4 * (BOX_MASS + 25 * BALL_MASS) * G
    f2 = (FORCE - f1) / BOX_MASS / (3.5 / BALL_MASS + 25 / BOX_MASS)
    return (FORCE - f1 - 25 * f2) / BOX_MASS, f2 / BALL_MASS


def _rolling_error(model: Model, state: State, reference: jax.Array) -> jax.Array:
    heading = jnp.asarray(HEADING)[:, None]
    accelerations = zip((0, 6), rolling_accelerations(), strict=True)  # dofs of the box, and of the first ball
    errors = [state.qd[i : i + 3] - a * state.time * heading for i, a in accelerations]
    return sum(jnp.sum(error**2, axis=0) for error in errors)[None]


def bouncing(dt: float, integrator: str) -> Setup:
    """A ball that bounces for ever."""
    scene = rsim.Scene(timestep=dt)
    scene.add_ground()
    scene.add_sphere(RADIUS, MASS, position=(0, 0, HEIGHT))
    scene.set_material_pair("default", "default", LOSSLESS)
    model = scene.compile(options=options(integrator), dtype=jnp.float64)
    return Setup(model, rsim.make_state(model, 1), _bouncing_error, _ball_energy)


def _bouncing_error(model: Model, state: State, start: jax.Array) -> jax.Array:
    return (COUNT * (_ball_energy(model, state) - start)) ** 2


def _ball_energy(model: Model, state: State) -> jax.Array:
    """(1, N) J of equal balls that do not spin."""
    velocity = state.qd.reshape(-1, 6, state.qd.shape[-1])[:, :3]
    return MASS * jnp.sum(0.5 * jnp.sum(velocity**2, axis=1) + G * state.q[2::7], axis=0)[None]


def pile(dt: float, integrator: str) -> Setup:
    """666: a cube of balls that falls apart."""
    return _balls(dt, options(integrator, speculative=True), RADIUS + 1e-3, rsim.Material(friction=0))


def elastic_pile(dt: float, integrator: str) -> Setup:
    """The same dropped from 1 m, without any loss."""
    return _balls(dt, options(integrator), RADIUS + 1.001, LOSSLESS)


def _balls(dt: float, options: rsim.Options, lowest: float, material: rsim.Material) -> Setup:
    scene = rsim.Scene(timestep=dt)
    scene.add_ground()
    grid = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    noise = NOISE * np.random.default_rng(42).uniform(size=grid.shape)
    for place in PITCH * grid + [0.0, 0.0, lowest] + noise:
        scene.add_sphere(RADIUS, MASS, position=place)
    scene.set_material_pair("default", "default", material)
    model = scene.compile(options=options, dtype=jnp.float64)
    return Setup(model, rsim.make_state(model, 1), _pile_errors, _ball_energy)


def _pile_errors(model: Model, state: State, start: jax.Array) -> jax.Array:
    """(2, N): m^2 of overlap for the pile, J^2 for the elastic one, in one program."""
    return jnp.concatenate([squared_penetration(state)[None], (_ball_energy(model, state) - start) ** 2])


def squared_penetration(state: State) -> jax.Array:
    """(N,) m^2: the squared overlaps of all pairs of balls, and of the balls with the ground."""
    x, y, z = (state.q[row::7] for row in range(3))
    squares = sum((part[:, None] - part[None]) ** 2 for part in (x, y, z))
    overlap = jnp.maximum(0, 2 * RADIUS - jnp.sqrt(squares)) * ~jnp.eye(len(x), dtype=bool)[..., None]
    return 0.5 * jnp.sum(overlap**2, axis=(0, 1)) + jnp.sum(jnp.maximum(0, RADIUS - z) ** 2, axis=0)


def anymal_text(meets: str = "all") -> str:
    """The robot's MJCF. Its shapes meet "all", its own too; "others" alone; or "none"."""
    folder = Path(find_spec("rsim_jax.envs").submodule_search_locations[0]) / "assets"
    bits = {"all": (1, 1), "others": (1, 0), "none": (0, 0)}[meets]
    text = (folder / "anymal.xml").read_text()
    return text.replace('contype="1" conaffinity="1"', 'contype="{}" conaffinity="{}"'.format(*bits))


def _aloft(dt: float, gravity: float, meets: str) -> rsim.Scene:
    """A scene with the robot 2 m up."""
    scene = rsim.Scene(timestep=dt, gravity=(0, 0, -gravity))
    scene.add_articulation(anymal_text(meets), position=(0, 0, ALOFT - STANDING))
    return scene


def _stance(model: Model, worlds: int = 1) -> State:
    state = rsim.make_state(model, worlds)
    return state.replace(q=state.q.at[7:19].set(jnp.asarray(STANCE)[:, None]))


def momentum(dt: float, integrator: str) -> Setup:
    """A ball hits the floating robot; (0, 50, 0) kg m/s of momentum stay."""
    scene = _aloft(dt, 0.0, meets="all")
    scene.add_sphere(0.2, 10.0, position=(0, -5, ALOFT), velocity=(0, 5, 0))
    model = scene.compile(options=options(integrator), dtype=jnp.float64)
    return Setup(model, _stance(model), _momentum_error, _none)


def _momentum_error(model: Model, state: State, reference: jax.Array) -> jax.Array:
    linear, _ = rsim.momentum(model, state)
    return jnp.sum((linear - jnp.asarray([0.0, 50.0, 0.0])[:, None]) ** 2, axis=0)[None]


def energy(dt: float, integrator: str) -> Setup:
    """The robot is lifted for a second with twice its weight, then falls; from there its energy stays."""
    model = _aloft(dt, G, meets="none").compile(options=options(integrator), dtype=jnp.float64)
    return Setup(model, _stance(model), _energy_error, _energy, _lift, LIFT_TIME)


def _energy(model: Model, state: State) -> jax.Array:
    return sum(rsim.energy(model, state))[None]


def _energy_error(model: Model, state: State, start: jax.Array) -> jax.Array:
    return (_energy(model, state) - start) ** 2


def _lift(model: Model, state: State) -> jax.Array:
    lift = jnp.where(state.time < LIFT_TIME - 0.25 * model.dt, 2 * G * jnp.sum(model.body_mass), 0)
    return jnp.zeros_like(state.qd).at[2].set(lift)


def standing(dt: float, integrator: str, robots: int = 1) -> Setup:
    """Robots on the ground under an explicit servo; the measure is how far a base sank, m."""
    scene = rsim.Scene(timestep=dt)
    scene.add_ground()
    scene.add_articulation(anymal_text("others"))  # no leg of a standing robot comes near another
    model = scene.compile(options=rsim.Options(integrator=integrator), dtype=jnp.float64)
    return Setup(model, _stance(model, robots), _sunk, _none, _servo)


def _sunk(model: Model, state: State, reference: jax.Array) -> jax.Array:
    return STANDING - state.q[2:3]


def _servo(model: Model, state: State) -> jax.Array:
    torque = KP * (jnp.asarray(STANCE)[:, None] - state.q[7:19]) - KD * state.qd[6:18]
    return jnp.concatenate([jnp.zeros_like(state.qd[:6]), torque])


ALL = ("trapezoid", "semi_implicit", "rk4")
SCENARIOS = (
    Scenario("rolling", "(m/s)^2", rolling, 4.0, 0, ALL[:2], {"trapezoid": 4.1e-7}),
    Scenario("bouncing", "J^2", bouncing, 20.0, 0, ALL[:2], {"trapezoid": 1e-6}),
    Scenario("666", "m^2", pile, 10.0, 0, ALL[:2], {"trapezoid": 1.35e-4}, (1e-3, 4e-3, 1e-2)),
    Scenario("elastic 666", "J^2", elastic_pile, 10.0, 1, ALL[:1], {"trapezoid": 8.4}, (1e-3, 4e-3, 1e-2)),
    Scenario("ANYmal momentum", "(kg m/s)^2", momentum, 10.0, 0, ALL, {"trapezoid": 4.7e-5}),
    Scenario("ANYmal energy", "J^2", energy, 2.0, 0, ALL, {"trapezoid": 1.2e-2, "rk4": 1e-12}),
)
