"""`rsim bench` refuses what it cannot do, before any work."""

from __future__ import annotations

import sys

import pytest

from rsim_jax.cli import bench, bench_mjx
from rsim_jax.cli.arguments import CommandError


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--model", "unicorn"], "no model 'unicorn'"),
        (["--worlds", "0"], "'0' must be a whole number of at least 1"),
        (["--worlds", "64,-1"], "'-1' must be"),
        (["--peers", "mujoco,bullet"], "unknown peer 'bullet'; there are: mujoco, mjx"),
        (["--device", "tpu"], "invalid choice: 'tpu'"),
        (["--seconds", "0"], "must be a number of seconds above 0"),
        (["--sweeps", "none"], "must be a whole number"),
        (["--stages", "--validation"], "choose one of"),
        (["--json", "/nowhere/at/all/out.json"], "there is no such folder"),
        (["--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_bad_arguments_are_one_line_and_a_status(capsys, argv, words):
    assert bench.main(argv) in (1, 2)
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("rsim bench: ") and words in err


def test_a_missing_peer_is_named_with_the_remedy(tmp_path):
    with pytest.raises(CommandError, match=r"/nowhere/python does not run: No such file"):
        bench_mjx.find_python("/nowhere/python")
    bare = tmp_path / "python"
    bare.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'print(False)'\n")
    bare.chmod(0o755)
    with pytest.raises(CommandError, match=r"mjx is not installed in .*pip install mujoco-mjx there"):
        bench_mjx.find_python(str(bare))


def test_figures_are_written_whole(tmp_path):
    bench._write(tmp_path / "out.json", {"speed": [1.5]})
    assert (tmp_path / "out.json").read_text() == '{\n "speed": [\n  1.5\n ]\n}\n'
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]
