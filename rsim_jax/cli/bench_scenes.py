"""Small scenes whose answer is known for rigid bodies with Coulomb friction, and how to read it off a trajectory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

G, MU = 9.81, 0.5
SPEED = 2.0  # m/s, of what slides
DROP = 0.5  # m
SLOPE = np.deg2rad(20.0)
HEADINGS = 16
HEAVY = 100.0  # kg on 1 kg

Trajectory = tuple[np.ndarray, np.ndarray]  # q (T, nq, N) and qd (T, nv, N), the start included
Start = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Scene:
    """One scene: `start(qpos0)` gives q (nq, N) and qd (nv, N); `figures` maps a name to (exact value, measure)."""

    name: str
    body: str  # MJCF of what moves
    timestep: float
    seconds: float
    every: int  # steps between the moments of the trajectory
    start: Callable[[np.ndarray, int], Start]
    figures: dict[str, tuple[float, Callable[[Trajectory], float]]]
    gravity: tuple[float, float, float] = (0.0, 0.0, -G)

    def xml(self, cone: str) -> str:
        """The scene as MJCF; `cone` matters to MuJoCo alone."""
        gravity = " ".join(f"{x:.12g}" for x in self.gravity)
        return f"""<mujoco><option timestep="{self.timestep}" gravity="{gravity}" cone="{cone}" integrator="Euler"/>
          <default><geom friction="{MU} 0 0" condim="3"/></default>
          <worldbody><geom type="plane" size="50 50 1"/>{self.body}</worldbody></mujoco>"""


BLOCK = '<body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .1 .05" mass="1"/></body>'
BALL = '<body pos="0 0 {height}"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>'
STACK = """<body pos="0 0 .1"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="1"/></body>
  <body pos="0 0 .3"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="{heavy}"/></body>"""


def _at_rest(qpos0: np.ndarray, nv: int) -> Start:
    return qpos0[:, None], np.zeros((nv, 1))


def _headings(qpos0: np.ndarray, nv: int) -> Start:
    """The same block turned and pushed in HEADINGS directions."""
    angle = 2 * np.pi * np.arange(HEADINGS) / HEADINGS
    q, qd = np.repeat(qpos0[:, None], HEADINGS, axis=1), np.zeros((nv, HEADINGS))
    q[3], q[6] = np.cos(angle / 2), np.sin(angle / 2)
    qd[0], qd[1] = SPEED * np.cos(angle), SPEED * np.sin(angle)
    return q, qd


def _sliding(qpos0: np.ndarray, nv: int) -> Start:
    q, qd = _at_rest(qpos0, nv)
    qd[0] = SPEED
    return q, qd


def _stop_distances(trajectory: Trajectory) -> np.ndarray:
    q = trajectory[0]
    return np.hypot(q[-1, 0] - q[0, 0], q[-1, 1] - q[0, 1])


def _off_course(trajectory: Trajectory) -> float:
    angle = 2 * np.pi * np.arange(HEADINGS) / HEADINGS
    end = trajectory[0][-1]
    return float(np.abs(end[1] * np.cos(angle) - end[0] * np.sin(angle)).max())


def _spread(values: np.ndarray) -> float:
    return float((values.max() - values.min()) / values.mean())


def _rebound(trajectory: Trajectory) -> float:
    """Fastest upward speed over fastest downward speed."""
    speed = trajectory[1][:, 2, 0]
    return float(max(0.0, speed.max()) / -speed.min())


def _creep(trajectory: Trajectory) -> float:
    """Mean speed down the slope, without the first second."""
    x = trajectory[0][:, 0, 0]
    settled = len(x) // 60
    return float((x[-1] - x[settled]) / 59.0)


SCENES = (
    Scene(
        "block sliding in 16 headings",
        BLOCK,
        0.001,
        0.6,
        600,
        _headings,
        {
            "shortest stop distance, m": (SPEED**2 / (2 * MU * G), lambda t: float(_stop_distances(t).min())),
            "longest stop distance, m": (SPEED**2 / (2 * MU * G), lambda t: float(_stop_distances(t).max())),
            "spread of stop distances": (0.0, lambda t: _spread(_stop_distances(t))),
            "farthest off course, m": (0.0, _off_course),
        },
    ),
    Scene(
        "block at rest on a slope of 20 degrees, 60 s",
        BLOCK,
        0.002,
        60.0,
        500,
        _at_rest,
        {
            "creep, m/s": (0.0, _creep),
            "way down after 60 s, m": (0.0, lambda t: float(t[0][-1, 0, 0])),
        },
        gravity=(G * np.sin(SLOPE), 0.0, -G * np.cos(SLOPE)),
    ),
    Scene(
        "ball sliding until it rolls",
        BALL.format(height=0.1),
        0.001,
        0.5,
        500,
        _sliding,
        {"final speed, m/s": (5 / 7 * SPEED, lambda t: float(t[1][-1, 0, 0]))},
    ),
    Scene(
        "ball dropped 0.5 m, no restitution asked for",
        BALL.format(height=0.1 + DROP),
        0.001,
        0.5,
        1,
        _at_rest,
        {
            "deepest penetration, m": (0.0, lambda t: float(max(0.0, 0.1 - t[0][:, 2, 0].min()))),
            "rebound speed over impact speed": (0.0, _rebound),
        },
    ),
    Scene(
        "100 kg resting on 1 kg",
        STACK.format(heavy=HEAVY),
        0.001,
        2.0,
        10,
        _at_rest,
        {"farthest from where it was put, m": (0.0, lambda t: float(np.abs(t[0]).max()))},
    ),
)
