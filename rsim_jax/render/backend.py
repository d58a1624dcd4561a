"""Which OpenGL draws: the window system where there is a display, else EGL, else OSMesa, else a clear error.

MuJoCo picks its OpenGL from MUJOCO_GL when it is imported and falls back to a window, which fails on a server. Here
the choice is made when the first renderer is, by trying the libraries themselves, so it does not matter who imported
MuJoCo earlier. PyOpenGL binds to one library per process and cannot be rebound, hence the probes use ctypes alone.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

_PACKAGES = {  # Debian packages that bring each library and a software driver for it
    "egl": "libegl1 libgl1-mesa-dri",
    "osmesa": "libosmesa6",
    "glfw": "libglfw3",
}
_OFF = ("0", "off", "false", "disable", "disabled")
_ANY = ("", "1", "on", "true", "enable", "enabled")


class RenderError(RuntimeError):
    """No picture can be drawn; the message says what is missing."""


@functools.cache
def choose() -> str:
    """Name of the OpenGL backend of this process: "glfw", "egl" or "osmesa".

    MUJOCO_GL, when set, is obeyed. The choice is written to MUJOCO_GL and PYOPENGL_PLATFORM for this process and its
    children, so that MuJoCo's own renderer agrees when it is imported later.

    Raises:
        RenderError: when no backend works; names each one tried, why it failed and the Debian package.
    """
    wanted = os.environ.get("MUJOCO_GL", "").strip().lower()
    if wanted in _OFF:
        raise RenderError(f"MUJOCO_GL={wanted} switches rendering off: unset it, or set it to egl or osmesa")
    names = _candidates() if wanted in _ANY else ("glfw" if wanted == "glx" else wanted,)
    failures = []
    for name in names:
        if name not in _PROBES:
            raise RenderError(f"MUJOCO_GL={wanted} is unknown: use egl, osmesa or glfw, or unset it")
        failure = _bound_elsewhere(name) or _PROBES[name]()
        if failure is None:
            _publish(name)
            return name
        failures.append(f"{name}: {failure} (Debian: apt-get install {_PACKAGES[name]})")
    raise RenderError("no OpenGL to render with; " + "; ".join(failures))


def make_context(width: int, height: int) -> Any:
    """A MuJoCo OpenGL context of the chosen backend, not yet current.

    Raises:
        RenderError: when the backend is missing or refuses a context.
    """
    name = choose()
    try:
        return importlib.import_module(f"mujoco.{name}").GLContext(width, height)
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise RenderError(
            f"OpenGL backend {name} cannot make a context ({error}): apt-get install {_PACKAGES[name]},"
            " or choose another with MUJOCO_GL=egl or osmesa"
        ) from error


def _candidates() -> tuple[str, ...]:
    if sys.platform != "linux":
        return ("glfw",)
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return ("glfw", "egl", "osmesa") if has_display else ("egl", "osmesa")


def _publish(name: str) -> None:
    os.environ["MUJOCO_GL"] = name
    if name != "glfw":
        os.environ["PYOPENGL_PLATFORM"] = name


def _bound_elsewhere(name: str) -> str | None:
    platform = os.environ.get("PYOPENGL_PLATFORM", "").strip().lower()
    if name != "glfw" and platform not in ("", name):
        return f"PYOPENGL_PLATFORM is already {platform}"
    return None


def _probe_egl() -> str | None:
    """Opens a display of the first EGL device that has a driver; None when that works."""
    try:
        egl = ctypes.CDLL("libEGL.so.1")
    except OSError as error:
        return str(error)
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    egl.eglGetProcAddress.argtypes = [ctypes.c_char_p]
    egl.eglInitialize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    query, display_of = (egl.eglGetProcAddress(f) for f in (b"eglQueryDevicesEXT", b"eglGetPlatformDisplayEXT"))
    if not query or not display_of:
        return "libEGL.so.1 cannot open a device without a display"
    count = ctypes.c_int(0)
    devices = (ctypes.c_void_p * 32)()
    query = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(query)
    display_of = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(display_of)
    if not query(len(devices), devices, ctypes.byref(count)) or count.value == 0:
        return "libEGL.so.1 finds no device with a driver"
    platform_device = 0x313F  # EGL_PLATFORM_DEVICE_EXT
    for device in devices[: count.value]:
        display = display_of(platform_device, device, None)
        if display and egl.eglInitialize(display, None, None):
            return None  # left open: MuJoCo initialises the same display and ends it at exit
    return "libEGL.so.1 has devices, but none can be initialised"


def _probe_osmesa() -> str | None:
    library = ctypes.util.find_library("OSMesa")
    if library is None:
        return "libOSMesa is not installed"
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return None


def _probe_glfw() -> str | None:
    """Whether a window system answers; MuJoCo's window stays hidden."""
    try:
        import glfw
    except ImportError as error:
        return str(error)
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if glfw.init():
            return None
    return str(caught[-1].message) if caught else "no window system answers"


_PROBES: dict[str, Callable[[], str | None]] = {"egl": _probe_egl, "osmesa": _probe_osmesa, "glfw": _probe_glfw}
