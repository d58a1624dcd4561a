"""SimBenchmark's scenes: what was published, the digits that our integrators reproduce, what must be conserved."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import rsim_jax as rsim
from rsim_jax.cli import bench, simbenchmark
from rsim_jax.cli import simbenchmark_published as published
from rsim_jax.cli import simbenchmark_scenes as scenes

NAMED = {scenario.name: scenario for scenario in scenes.SCENARIOS}


def test_published_figures_are_whole_and_of_the_right_size():
    assert set(published.ERRORS) == set(published.SECONDS) == set(NAMED)
    for name, by_dt in published.ERRORS.items():
        assert all(len(row) == len(published.ENGINES) for row in by_dt.values())
        present = [[e is not None for e in row] for row in by_dt.values()]
        assert all(row == present[0] for row in present), "an engine is there at every step or at none"
        assert [t is not None for t in published.SECONDS[name]] == present[0]
        assert all(e is None or e > 0 for row in by_dt.values() for e in row)
        rai = [row[0] for _, row in sorted(by_dt.items())]
        assert name == "elastic 666" or rai == sorted(rai)  # chaos there beyond 4 ms
        assert published.DT in by_dt and set(NAMED[name].gates) <= set(NAMED[name].integrators)
    assert all(len(row) == len(published.ENGINES) for row in published.STANDING.values())
    speed = published.STANDING_STEPS / published.STANDING[1][0]
    assert speed == pytest.approx(122.6e3, rel=1e-3)  # the abstract's 122.6 kHz


@pytest.mark.parametrize(("dt", "digits"), [(1e-3, 2), (4e-3, 1), (1e-2, -1), (4e-2, -2), (1e-1, -3)])
def test_semi_implicit_bouncing_is_the_published_ode_column(dt, digits):
    row = simbenchmark.run_scenario(NAMED["bouncing"], dt, "semi_implicit")
    assert round(row["error"], digits) == published.ERRORS["bouncing"][dt][published.ENGINES.index("ODE")]


@pytest.mark.slow
def test_semi_implicit_bouncing_at_a_tenth_of_a_millisecond():
    assert round(simbenchmark.run_scenario(NAMED["bouncing"], 1e-4, "semi_implicit")["error"], 3) == 1.851


def test_trapezoid_bounces_for_ever():
    row = simbenchmark.run_scenario(NAMED["bouncing"], 1e-3, "trapezoid")
    assert row["error"] < 1e-10 and row["holds"] and row["status"] == "healthy"


def test_rolling_starts_and_goes_on_as_the_closed_form_says():
    """Box and balls accelerate along the force alone, and the balls with 2/7 of the box."""
    setup = scenes.rolling(1e-3, "trapezoid")
    box, ball = scenes.rolling_accelerations()
    assert (box, ball) == pytest.approx((0.7385, 0.2110), rel=1e-4) and ball == pytest.approx(2 / 7 * box, rel=1e-12)
    state, _, _ = simbenchmark._advance(setup.measure, setup.force, setup.model, setup.state, jnp.zeros((1, 1)), 50)
    heading = np.array(scenes.HEADING)
    velocity = np.asarray(state.qd).reshape(26, 6)[:, :3]
    for v, a in [(velocity[0], box), *((v, ball) for v in velocity[1:])]:
        assert np.abs(v - 0.05 * a * heading).max() < 1e-4 * 0.05 * a


def test_overlaps_of_a_pile_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.05, 0.4, (7, 3))
    q = np.concatenate([centres, np.tile([1.0, 0, 0, 0], (7, 1))], axis=1).reshape(-1, 1)
    state = rsim.make_state(scenes.bouncing(1e-3, "trapezoid").model, 1).replace(q=jnp.asarray(q))
    expected = sum(max(0, 0.1 - c[2]) ** 2 for c in centres)
    for i in range(7):
        expected += sum(max(0, 0.2 - np.linalg.norm(centres[i] - centres[j])) ** 2 for j in range(i))
    assert float(scenes.squared_penetration(state)[0]) == pytest.approx(expected, rel=1e-12)


def test_the_quadruped_has_the_masses_and_shapes_of_the_benchmark():
    model = mujoco.MjModel.from_xml_string(scenes.anymal_text())
    assert model.body_mass.sum() == pytest.approx(33.9467, abs=1e-4)
    assert sorted(set(model.body_mass[1:])) == pytest.approx([0.05, 0.1922685, 0.318, 1.1064, 1.51, 21.39])
    assert model.njnt == 13 and model.nv == 18
    base = model.geom("base")
    assert np.allclose(base.size, [0.2655, 0.116, 0.13]) and np.allclose(base.pos, [0, 0, 0.08])
    kinds = [(int(t), *size) for t, size in zip(model.geom_type, model.geom_size.round(6), strict=True)]
    counts = {kind: kinds.count(kind) for kind in kinds}
    assert sorted(counts.values()) == [1, 4, 4, 8]
    assert counts[(int(mujoco.mjtGeom.mjGEOM_CYLINDER), 0.04, 0.04, 0.0)] == 8
    assert scenes.anymal_text("none").count('contype="0" conaffinity="0"') == 1


def test_the_quadruped_stands_for_a_second_on_four_feet():
    setup = scenes.standing(5e-3, "semi_implicit")
    state, _, _ = simbenchmark._advance(setup.measure, setup.force, setup.model, setup.state, jnp.zeros((1, 1)), 200)
    report = rsim.contact_report(setup.model, state)
    touching = {int(b) for b in np.asarray(report.geom_b)[np.asarray(report.valid)]}
    feet = {setup.model.geom_id(f"anymal/{leg}_foot") for leg in ("LF", "RF", "LH", "RH")}
    assert touching == feet and 0.4 < float(state.q[2, 0]) < 0.56
    assert float(jnp.abs(state.qd).max()) < 0.05
    assert float(state.q[3, 0]) > 0.999


@pytest.mark.slow
def test_momentum_survives_a_hit():
    """The hit comes at 0.94 s; the first-order scheme loses momentum only by turning joints."""
    setup = scenes.momentum(1e-3, "trapezoid")
    state, _, _ = simbenchmark._advance(setup.measure, setup.force, setup.model, setup.state, jnp.zeros((1, 1)), 1000)
    linear, _ = rsim.momentum(setup.model, state)
    assert float(state.qd[19, 0]) < 4.0  # the ball has slowed down
    assert np.asarray(linear)[:, 0] == pytest.approx([0, 50, 0], abs=0.03)


def test_energy_of_the_falling_robot_is_that_published_for_raisim():
    """Our trapezoid rule is its scheme: equal to 1 % at 4 ms, though masses are rounded here."""
    row = simbenchmark.run_scenario(NAMED["ANYmal energy"], 4e-3, "trapezoid")
    assert row["error"] == pytest.approx(published.ERRORS["ANYmal energy"][4e-3][0], rel=0.02)


def test_command_prints_keeps_and_draws(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(simbenchmark, "SCENARIOS", (NAMED["bouncing"],))
    monkeypatch.setattr(simbenchmark, "STANDING_SIDES", ())
    picture = tmp_path / "sweep.png"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "_start_device", lambda args: {})
        status = bench.main(["--simbenchmark", "--picture", str(picture), "--json", str(tmp_path / "out.json")])
    out = capsys.readouterr().out
    assert status == 0 and "holds: <= 1e-06" in out and "RaiSim" in out
    assert picture.read_bytes().startswith(b"\x89PNG") and '"sweep"' in (tmp_path / "out.json").read_text()
