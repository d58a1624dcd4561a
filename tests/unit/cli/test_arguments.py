"""Command-line habits: strict arguments, one line per mistake, exit statuses, tables."""

from __future__ import annotations

import argparse

import pytest

from rsim_jax.cli.arguments import CommandError, Parser, model_path, positive, positive_list, run, seconds
from rsim_jax.cli.table import table
from rsim_jax.errors import ModelError
from rsim_jax.render import RenderError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CommandError("no"), 1),
        (ModelError("no"), 1),
        (RenderError("no"), 1),
        (OSError("no"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_what_a_user_can_put_right_is_one_line_and_a_status(capsys, error, status):
    def work():
        raise error

    assert run("demo", work) == status
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("rsim demo: ") and err.count("\n") == 1


def test_our_own_mistakes_keep_their_traceback():
    with pytest.raises(ZeroDivisionError):
        run("demo", lambda: 1 / 0)
    assert run("demo", lambda: None) == 0


@pytest.mark.parametrize("argv", [["--verb"], ["--number", "0"], ["--number", "1.5"], ["extra"], ["--num", "1"]])
def test_wrong_options_are_refused_in_one_line(capsys, argv):
    def work():
        parser = Parser("demo", "A demonstration.")
        parser.add_argument("--number", type=positive)
        parser.add_argument("--verbose", action="store_true")
        parser.parse_args(argv)

    assert run("demo", work) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "see rsim demo --help" in err


def test_numbers_are_checked():
    assert positive_list("1, 64,1024") == (1, 64, 1024)
    assert seconds("0.5") == 0.5
    for kind, text in (
        (positive, "-1"),
        (positive_list, "4,0"),
        (positive_list, ""),
        (seconds, "nan"),
        (seconds, "inf"),
    ):
        with pytest.raises(argparse.ArgumentTypeError):
            kind(text)


def test_models_by_name_or_path(tmp_path):
    assert model_path("ant").name == "ant.xml" and model_path("ant.xml") == model_path("ant")
    own = tmp_path / "robot.urdf"
    own.write_text("<robot/>")
    assert model_path(str(own)) == own
    for wrong in ("unicorn", "../ant", str(tmp_path / "none.xml"), str(tmp_path), ""):
        with pytest.raises(CommandError, match=r"ant, half_cheetah.*humanoid"):
            model_path(wrong)


def test_table_aligns_and_marks_what_is_missing():
    text = table(("name", "count", "share"), [("a", 12345, 0.25), ("long name", 7, None)])
    assert text.splitlines() == [
        "name        count  share",
        "---------  ------  -----",
        "a          12,345   0.25",
        "long name       7      -",
    ]
    assert table(("x", "y"), [(123456.7, True)]).splitlines()[-1].split() == ["123,457", "yes"]
