"""Importing the simulator changes nothing and brings nothing that only training needs."""

from __future__ import annotations

import os
import subprocess
import sys

GRAPHICS = ("MUJOCO_GL", "PYOPENGL_PLATFORM")  # set by rendering tests of this process; MuJoCo imports OpenGL for them


def run(code: str, **variables: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name not in GRAPHICS}
    done = subprocess.run(
        [sys.executable, "-c", code], env=inherited | variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_import_brings_no_learning_library():
    code = """
import sys, rsim_jax
heavy = {"gymnasium", "flax", "optax", "orbax", "matplotlib", "imageio", "imageio_ffmpeg", "OpenGL", "tyro"}
print(sorted(heavy & {name.split(".")[0] for name in sys.modules}))"""
    assert run(code) == "[]"


def test_import_changes_no_jax_setting_and_starts_no_device():
    code = """
import os, jax
before = dict(jax.config.values)
import rsim_jax
assert dict(jax.config.values) == before
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"  # heeded only if no device has been started
print(jax.device_count("cpu"))"""
    assert run(code, JAX_PLATFORMS="cpu", XLA_FLAGS="") == "3"


def test_importing_the_tasks_brings_no_trainer():
    code = """
import sys, rsim_jax.envs
print(sorted({"flax", "optax", "orbax"} & {name.split(".")[0] for name in sys.modules}))"""
    assert run(code) == "[]"
