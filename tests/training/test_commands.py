"""`rsim`, `rsim train` and `rsim eval`: exit statuses, one readable line for each mistake, nothing left behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rsim_jax.cli import eval as eval_command
from rsim_jax.cli import main, train


@pytest.fixture(autouse=True)
def _somewhere_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("command", "argv", "status", "words"),
    [
        (main, [], 2, []),
        (main, ["tran"], 2, ["no command 'tran'", "train"]),
        (main, ["view", "ant.xml"], 1, ["not available yet"]),
        (main, ["export", "run"], 1, ["not available yet"]),
        (train, [], 1, ["which task", "--help"]),
        (train, ["hoper"], 1, ["no task named 'hoper'", "hopper"]),
        (train, ["nothing.yaml"], 1, ["nothing.yaml"]),
        (train, ["hopper", "--ppo.num_env", "3"], 1, ["ppo.num_env", "num_envs"]),
        (train, ["hopper", "--task_params.mass", "3"], 1, ["mass"]),
        (train, ["hopper", "--dtype", "float16"], 1, ["float64"]),
        (train, ["--resume", "nowhere"], 1, ["no run folder nowhere"]),
        (train, ["--resume", "nowhere", "--seed", "1"], 1, ["--resume"]),
        (eval_command, [], 2, ["run"]),
        (eval_command, ["nowhere"], 1, ["no run folder nowhere"]),
        (eval_command, ["nowhere", "--in", "mars"], 2, ["mars", "gymnasium"]),
        (eval_command, ["nowhere", "--episodes", "0"], 2, ["episodes"]),
    ],
)
def test_mistakes(command, argv, status, words, capsys, tmp_path):
    assert command.main(argv) == status
    out, err = capsys.readouterr()
    assert err.count("\n") == (1 if words else 0)
    assert "Traceback" not in out + err
    assert all(word in err for word in words), err
    assert not list(tmp_path.iterdir())


def test_run_folder_that_cannot_be_made(capsys, tmp_path):
    (tmp_path / "runs").write_text("a file in the way")
    assert train.main(["inverted_pendulum"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "runs" in err
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize("command", [main, train, eval_command])
def test_help(command, capsys):
    try:
        status = command.main(["--help"])
    except SystemExit as exit_:  # argparse's way
        status = exit_.code
    assert status == 0
    assert "usage: rsim" in capsys.readouterr().out


def test_debug_shows_where(capsys, monkeypatch):
    def broken(command, rest):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(main, "_run", broken)
    for argv, traceback in ((["list"], False), (["list", "--debug"], True)):
        assert main.main(argv) == 1
        err = capsys.readouterr().err
        assert ("Traceback" in err) == traceback
        assert "unexpected RuntimeError: a fault of ours" in err


def test_interrupt(capsys, monkeypatch):
    def interrupted(command, rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_run", interrupted)
    assert main.main(["train", "hopper"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "rsim_jax", "fly"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "rsim: no command 'fly'; there are: " + ", ".join(main.COMMANDS) + "\n"
