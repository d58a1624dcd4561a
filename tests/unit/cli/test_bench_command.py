"""`rsim bench` refuses what it cannot do, before any work."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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


@pytest.fixture
def stand_in(tmp_path):
    """Makes an interpreter that ignores its program and speaks the protocol, or breaks it."""

    def make(script: str) -> str:
        path = tmp_path / "peer"
        path.write_text(f"#!/bin/sh\necho some library greets you\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


def small_case() -> SimpleNamespace:
    start, controls = (np.zeros((2, 3)), np.zeros((2, 3))), np.zeros((64, 1, 3), np.float32)
    return SimpleNamespace(
        path=Path("model.xml"), frame_skip=2, start=lambda worlds: start, controls=lambda worlds: controls
    )


def test_a_peer_in_another_process_answers_turn_by_turn(stand_in):
    peer = bench_mjx.MjxRunner(small_case(), 3, "euler", stand_in("echo peer: 1.5 True\nread n\necho peer: 0.1 False"))
    assert (peer.label, peer.first_call, peer.finite()) == ("mjx euler", 1.5, True)
    peer.advance(4)
    assert not peer.finite()
    with pytest.raises(CommandError, match="mjx euler failed"):
        peer.advance(4)


def test_a_peer_that_fails_is_quoted(stand_in):
    with pytest.raises(CommandError, match="mjx tuned failed: NotImplementedError no such geom"):
        bench_mjx.MjxRunner(small_case(), 3, "tuned", stand_in("echo peer: error NotImplementedError no such geom"))
    with pytest.raises(CommandError, match="mjx tuned failed: its process ended"):
        bench_mjx.MjxRunner(small_case(), 3, "tuned", stand_in("exit 3"))


def test_figures_are_written_whole(tmp_path):
    bench._write(tmp_path / "out.json", {"speed": [1.5]})
    assert (tmp_path / "out.json").read_text() == '{\n "speed": [\n  1.5\n ]\n}\n'
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]
