"""Choice of the OpenGL backend, with the libraries' answers replaced."""

from __future__ import annotations

import os

import pytest

from rsim_jax.render import backend


@pytest.fixture
def choose(monkeypatch):
    """choose() with given probe results and variables, uncached."""

    def run(probes: dict[str, str | None], **variables: str) -> str:
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(backend, "_PROBES", {k: (lambda v=v: v) for k, v in probes.items()})
        return backend.choose.__wrapped__()

    return run


def test_egl_first_then_osmesa_when_there_is_no_display(choose):
    assert choose({"egl": None, "osmesa": None, "glfw": None}) == "egl"
    assert choose({"egl": "no library", "osmesa": None, "glfw": None}) == "osmesa"
    assert os.environ["MUJOCO_GL"] == os.environ["PYOPENGL_PLATFORM"] == "osmesa"


def test_window_only_with_a_display_and_only_if_it_answers(choose):
    assert choose({"egl": None, "osmesa": None, "glfw": None}, DISPLAY=":0") == "glfw"
    assert "PYOPENGL_PLATFORM" not in os.environ
    assert choose({"egl": None, "osmesa": None, "glfw": "no answer"}, DISPLAY=":9") == "egl"


def test_nothing_there_names_every_backend_and_its_package(choose):
    with pytest.raises(backend.RenderError) as error:
        choose({"egl": "not found", "osmesa": "not installed", "glfw": None})
    text = str(error.value)
    assert "egl: not found" in text and "libegl1" in text
    assert "osmesa: not installed" in text and "libosmesa6" in text
    assert "glfw" not in text and "\n" not in text


def test_the_user_s_choice_is_obeyed(choose):
    assert choose({"egl": None, "osmesa": None, "glfw": None}, MUJOCO_GL="osmesa") == "osmesa"
    with pytest.raises(backend.RenderError, match="egl: broken"):
        choose({"egl": "broken", "osmesa": None, "glfw": None}, MUJOCO_GL="egl")
    with pytest.raises(backend.RenderError, match="switches rendering off"):
        choose({"egl": None}, MUJOCO_GL="off")
    with pytest.raises(backend.RenderError, match="MUJOCO_GL=vulkan is unknown"):
        choose({"egl": None}, MUJOCO_GL="vulkan")
    assert choose({"egl": None, "osmesa": None}, PYOPENGL_PLATFORM="osmesa") == "osmesa"
