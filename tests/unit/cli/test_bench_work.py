"""The speed comparison's work and arithmetic: controls, settled starts, MuJoCo's side, turns, summaries."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from rsim_jax.cli import bench_cases, bench_speed
from rsim_jax.cli.arguments import model_path
from rsim_jax.cli.bench_mujoco import MujocoRunner


@pytest.fixture(scope="module")
def hopper() -> bench_cases.Case:
    return bench_cases.prepare(model_path("hopper"), seed=3, most_worlds=6, threads=2)


def test_controls_fill_the_range_and_depend_on_the_seed_alone(hopper):
    table = hopper.controls(5)
    assert table.shape == (bench_cases.ROWS, 3, 5) and table.dtype == np.float32
    assert -1 <= table.min() < -0.98 and 0.98 < table.max() <= 1
    assert np.array_equal(table, bench_cases.control_table(hopper.mj, 5, 3))
    assert not np.array_equal(table, bench_cases.control_table(hopper.mj, 5, 4))


def test_an_actuator_without_limits_gets_controls_of_order_one():
    xml = """<mujoco><worldbody><body><joint name="j" axis="0 0 1"/><geom size=".1"/></body></worldbody>
      <actuator><motor joint="j"/><motor joint="j" ctrlrange="2 6"/></actuator></mujoco>"""
    table = bench_cases.control_table(mujoco.MjModel.from_xml_string(xml), 50, 0)
    assert table[:, 0].min() < -0.98 and table[:, 0].max() > 0.98
    assert table[:, 1].min() >= 2 and table[:, 1].max() <= 6


def test_worlds_start_settled_apart_and_repeat(hopper):
    q, qd = hopper.start(8)
    assert q.shape == (6, 8) and qd.shape == (6, 8)
    assert np.array_equal(q[:, 6:], q[:, :2]) and len(np.unique(q[1, :6])) == 6
    standing = hopper.mj.qpos0[1]
    assert (np.abs(q[1] - standing) > 0.01).all()  # 1.2 s under random torques: none still stands as it started


def test_mujoco_s_side_equals_single_steps(hopper):
    runner = MujocoRunner(hopper, 3, threads=2)
    runner.advance(5)
    runner.advance(2)
    q, qd = hopper.start(3)
    table = hopper.controls(3)
    for world in range(3):
        data = mujoco.MjData(hopper.mj)
        data.qpos[:], data.qvel[:] = q[:, world], qd[:, world]
        for step in range(7 * hopper.frame_skip):
            data.ctrl[:] = table[step // hopper.frame_skip, :, world]
            if step == 5 * hopper.frame_skip:
                data.qacc_warmstart[:] = 0  # a new call starts its solver cold
            mujoco.mj_step(hopper.mj, data)
        # MuJoCo's solver stops at a tolerance, so a start from another guess differs a little
        np.testing.assert_allclose(runner._state[world, 1:7], data.qpos, atol=1e-6)
    assert runner.finite() and 0 <= runner.contacts() < 5
    runner.close()


class Clockwork:
    """A runner that takes a known time per control period, on a clock of its own."""

    grain = 4

    def __init__(self, label: str, cost: float, clock: list[float], log: list[str]) -> None:
        self.label, self._cost, self._clock, self._log = label, cost, clock, log

    def advance(self, periods: int) -> None:
        self._clock[0] += periods * self._cost
        self._log.append(self.label)


def test_turns_alternate_and_rates_are_worlds_times_steps_over_time(monkeypatch):
    clock, log = [0.0], []
    monkeypatch.setattr(bench_speed.time, "perf_counter", lambda: clock[0])
    runners = [Clockwork("fast", 0.01, clock, log), Clockwork("slow", 0.04, clock, log)]
    fast, slow = bench_speed.alternate(runners, worlds=10, frame_skip=5, seconds=2.0, turns=4)
    assert log[-8:] == ["fast", "slow", "slow", "fast", "fast", "slow", "slow", "fast"]
    assert fast.rates == pytest.approx([10 * 5 / 0.01] * 4) and slow.median == pytest.approx(10 * 5 / 0.04)
    assert fast.spread == pytest.approx(0)
    assert bench_speed.ratios(fast, slow) == pytest.approx({"median": 4, "low": 4, "high": 4})


def test_turns_last_about_as_long_as_asked(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(bench_speed.time, "perf_counter", lambda: clock[0])
    assert bench_speed.calibrate(Clockwork("", 1e-3, clock, []), 2.0) == 2000
    assert bench_speed.calibrate(Clockwork("", 50.0, clock, []), 2.0) == 4


def test_residuals_are_summed_up_with_nan_as_a_failure():
    residual = np.concatenate([np.full(900, 1e-5), np.full(98, 5e-4), [2e-3, np.nan]]).reshape(10, 100)
    summary = bench_speed.residual_summary(residual, 1e-3)
    assert summary["share"] == pytest.approx(0.998) and summary["p50"] == 1e-5 and summary["p99"] == 5e-4
    assert summary["worst"] == np.inf
