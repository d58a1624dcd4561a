"""Every option accepts its values and refuses the rest by name."""

from __future__ import annotations

import pytest

from rsim_jax.errors import ModelError
from rsim_jax.modeling import Options


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("max_contacts", [None, 0, 12], [-1, 1.5, True, "many"]),
        ("sweeps", [1, 50], [0, -3, 2.0, None]),
        ("tolerance", [0, 1e-4], [-1e-4, float("nan"), float("inf"), None]),
        ("erp", [0, 3.0], [-0.1, float("nan"), "1"]),
        ("manifold_points", [4, 6, 8], [3, 9, 4.0, True, None]),
        ("slop", [0.0, 1e-3], [-1e-5, float("inf")]),
        ("max_correction", [0.0, 10], [-1, float("nan")]),
        ("slip_rule", ["coulomb", "energy"], ["drake", None, 1]),
        ("warm_start", [True, False], [1, "yes", None]),
        ("speculative", [True, False], [0, "no"]),
        ("limit_restitution", [0, 1, 0.3], [-0.1, 1.1, float("nan")]),
        ("integrator", ["semi_implicit", "trapezoid", "rk4"], ["euler", "RK4", None]),
    ],
)
def test_each_option_is_checked(name, good, bad):
    for value in good:
        assert getattr(Options(**{name: value}), name) == value
    for value in bad:
        with pytest.raises(ModelError, match=f"Options.{name} = "):
            Options(**{name: value})
