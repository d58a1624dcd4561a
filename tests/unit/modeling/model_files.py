"""Where the models of these tests lie."""

from __future__ import annotations

from pathlib import Path

import gymnasium

MODELS = Path(__file__).parents[2] / "models"
GYMNASIUM = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
ALL = (
    *(
        f"{name}.xml"
        for name in (
            "inverted_pendulum", "inverted_double_pendulum", "hopper", "half_cheetah", "walker2d_v5", "ant", "humanoid",
            "reacher", "swimmer", "pusher_v5", "b02_defaults", "b03_fromto", "b09_ref", "b10_freejoint_defaults",
            "b14_nested_spin", "b24_masks", "b86_keyframe",
        )
    ),
    "b01_inertial_rpy.urdf",
    "b05_mimic.urdf",
)  # fmt: skip


def path(name: str) -> str:
    """The path of a model by file name; XML text stays what it is."""
    if "<" in name:
        return name
    found = [folder / name for folder in (MODELS, GYMNASIUM) if (folder / name).exists()]
    return str(found[0])
