"""Set JAX up for this machine. Importing the package changes nothing; calling `configure` does."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import jax
import jaxlib

VECTOR_FLAG = "--xla_cpu_prefer_vector_width=512"
# Worlds are spread over devices, one per core. Splitting single small kernels over a thread pool on top of that costs
# more than the kernels themselves: a step of the ant takes 10 us a world with it and 6 us without.
SERIAL_FLAG = "--xla_cpu_multi_thread_eigen=false"
# Kernels are compiled in this many pieces at once; XLA's own choice of 32 costs 15 % more on two cores.
PIECES_FLAG = "--xla_cpu_parallel_codegen_split_count"


def configure(devices: int | None = None, cache: bool | str = True) -> None:
    """Prepare JAX before it starts: one CPU device per core, wide vectors, a persistent compilation cache.

    Args:
        devices: CPU devices; default one per available core. Worlds are spread over them.
        cache: True for a folder under the user's cache directory, a path for another one, False for none.

    Raises:
        ValueError: for devices < 1.
        RuntimeError: when JAX has already started with other settings.
    """
    wanted = devices if devices is not None else len(os.sched_getaffinity(0))
    if wanted < 1:
        raise ValueError(f"devices is {devices}; at least one is needed")
    if _started():
        if jax.default_backend() == "cpu" and jax.local_device_count() != wanted:
            raise RuntimeError(
                f"JAX has already started with {jax.local_device_count()} CPU device(s); call rsim_jax.configure() "
                "before anything that touches a JAX array"
            )
    else:
        jax.config.update("jax_num_cpu_devices", wanted)
        pieces = f"{PIECES_FLAG}={2 * len(os.sched_getaffinity(0))}"
        for flag in [SERIAL_FLAG, pieces, *([VECTOR_FLAG] if _has_avx512() else [])]:
            if flag.split("=")[0] not in os.environ.get("XLA_FLAGS", ""):
                os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
    if cache:
        folder = Path(cache) if isinstance(cache, str) else cache_folder()
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def cache_folder() -> Path:
    """Folder of compiled programs, one per versions and processor: a program of another machine is never loaded."""
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    key = f"{jax.__version__} {jaxlib.__version__} {platform.machine()} {_processor()}"
    return base / "rsim_jax" / hashlib.sha256(key.encode()).hexdigest()[:16]


def _started() -> bool:
    from jax._src import xla_bridge  # no public question tells whether a backend exists without creating one

    return xla_bridge.backends_are_initialized()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags")
    return "|".join(next((line for line in lines if line.startswith(key)), "") for key in wanted)


def _has_avx512() -> bool:
    return "avx512f" in _processor()
