"""The update as a program: compiles once, learns, stops where asked, shares work between devices."""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import point_mass
import pytest

from rsim_jax.training import normalizer, ppo
from rsim_jax.training.evaluate import evaluate
from rsim_jax.training.policy import of_state
from rsim_jax.training.tasks import make_trainer


def weakness(tree):
    return [(leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in jax.tree.leaves(tree)]


@functools.cache
def compiled(normalize=True, target_kl=None):
    """Trainer and its update as a jitted function of state and task, shared by the tests below."""
    flags = {"normalize_observations": normalize, "normalize_rewards": normalize, "target_kl": target_kl}
    trainer = make_trainer(point_mass.config(learning_rate=2e-3, **flags), point_mass.batched())
    return trainer, trainer.program(trainer.start(), donate=False)


def test_one_compilation():
    """The start, the update's own output and resets in between all fit one compiled program."""
    trainer, program = compiled()
    state = start = trainer.start()
    for _ in range(5):  # 80 steps, episodes of 50
        state, _ = program(state, trainer.task)
        assert weakness(state) == weakness(start)
    assert program._cache_size() == 1
    assert weakness(start) == weakness(trainer.template())


def test_learns():
    trainer, program = compiled()
    state = trainer.start()
    before = evaluate(of_state(trainer, state), trainer.task, 32, 0)
    for _ in range(40):
        state = dataclasses.replace(state, updates=state.updates % 20)  # two runs of the learning-rate schedule
        state, metrics = program(state, trainer.task)
    after = evaluate(of_state(trainer, state), trainer.task, 32, 0)
    assert before.mean < 42 < 46.5 < after.mean
    assert np.isfinite([float(value) for name, value in metrics.items() if "episode" not in name]).all()
    assert int(state.updates) == 20
    assert int(state.obs_moments.count) == 40 * 1024


@pytest.mark.parametrize(("limit", "passes"), [(1e-9, 1), (1e9, 4)])
def test_target_kl_stops_the_passes(limit, passes):
    """With a tiny limit only the first pass is made, as the optimiser's count of steps shows."""
    trainer, program = compiled(target_kl=limit)
    state, _ = program(trainer.start(), trainer.task)
    assert int(state.optimizer[1].count) == 4 * passes


@pytest.mark.parametrize(("anneal", "expected"), [(True, 0.75e-3), (False, 1e-3)])
def test_learning_rate(anneal, expected):
    settings = dataclasses.replace(point_mass.config().ppo, learning_rate=1e-3, anneal_learning_rate=anneal)
    assert float(ppo.learning_rate(settings, np.int32(5), 20)) == pytest.approx(expected)


@pytest.mark.parametrize("on", [True, False])
def test_reward_normalisation(on):
    """Rewards a thousand times larger leave what is learned unchanged, unless they are taken as they are."""
    trainer, program = compiled(normalize=on)
    tasks = [point_mass.batched(reward_scale=scale) for scale in (1.0, 1024.0)]
    small, large = (float(program(trainer.start(), task)[1]["value_loss"]) for task in tasks)
    assert large / small == pytest.approx(1.0, rel=1e-3) if on else large / small > 1e5


@pytest.mark.parametrize("on", [True, False])
def test_observation_normalisation(on):
    """Other statistics make another policy, unless observations are taken as they are."""
    trainer, program = compiled(normalize=on)
    moments = normalizer.Moments(jnp.array([1.0, 2.0], "float32"), jnp.array([4.0, 9.0], "float32"), jnp.int32(10**6))
    start = trainer.start()
    shifted = dataclasses.replace(start, obs_moments=moments)
    first, second = (program(trainer.place(state), trainer.task)[0].params for state in (start, shifted))
    equal = jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b), first, second))
    assert equal != on


def test_two_devices_learn_too(tmp_path):
    """The same run over two forced host devices: parameters equal on both, and it learns."""
    script = tmp_path / "two.py"
    script.write_text(TWO_DEVICES)
    # kernels serial, as `rsim_jax.configure` has them, and threads to spare: an all-reduce that waits in one thread of
    # XLA's pool for a device whose kernels wait for that very thread never ends
    flags = "--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false"
    here = {"XLA_FLAGS": flags, "NPROC": "8", "PYTHONPATH": str(Path(__file__).parent), "JAX_PLATFORMS": "cpu"}
    env = {**os.environ, **here}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["2", "True", "True"]


TWO_DEVICES = """
import jax, numpy as np, point_mass
from rsim_jax.training import ppo
from rsim_jax.training.evaluate import evaluate
from rsim_jax.training.policy import of_state

config = point_mass.config(total_steps=40 * 1024, learning_rate=2e-3)
trainer = ppo.build(config, point_mass.batched(), jax.local_devices())
state = trainer.start()
update = trainer.compile(state)
for _ in range(config.num_updates):
    state, metrics = update(state)
copies = [[np.asarray(s.data) for s in leaf.addressable_shards] for leaf in jax.tree.leaves(state.params)]
print(len(state.returns.addressable_shards), all(np.array_equal(a, b) for a, b in copies))
print(evaluate(of_state(trainer, state), trainer.task, 32, 0).mean > 46.5)
"""
