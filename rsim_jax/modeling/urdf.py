"""URDF before MuJoCo's parser sees it: mesh paths, masses that make sense, features that would be lost silently.

MuJoCo then reads links, joints, effort limits (clamped actuator torque), joint damping and friction. Velocity limits
and safety controllers describe a motor driver, not the robot, and have no effect.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling.refuse import Refusals

_MESH_FORMATS = (".stl", ".obj", ".msh")
# Keep every link as a body, keep the paths that we resolved, invent no mass for links without <inertial>.
_COMPILER = {"fusestatic": "false", "strippath": "false", "inertiafromgeom": "false", "meshdir": ""}
_TRIANGLE_SLACK = 1e-6  # relative; written digits are rounded


def prepare_urdf(
    text: str,
    folder: Path,
    *,
    floating_base: bool,
    package_dirs: Iterable[str | Path] = (),
    refusals: Refusals,
) -> str:
    """The same robot, ready for MuJoCo's URDF parser.

    Args:
        text: content of the file.
        folder: where it lies; relative mesh paths start here, and packages are searched here and upwards.
        floating_base: whether the root link moves, and so needs a mass.
        package_dirs: folders searched for packages first.

    Raises:
        ModelError: naming every faulty link, joint or mesh.
    """
    if "<xacro:" in text:
        raise ModelError(f"{refusals.source}: contains xacro macros; expand it first with `xacro file > robot.urdf`")
    try:
        robot = ET.fromstring(text)
    except ET.ParseError as error:
        raise ModelError(f"{refusals.source}: not well-formed XML: {error}") from error
    faults = [*_inertia_faults(robot), *_massless_faults(robot, floating_base)]
    faults += _resolve_meshes(robot, folder, [Path(d) for d in package_dirs])
    for joint in robot.findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            value = f'mimic of joint "{mimic.get("joint")}" is not simulated'
            refusals.add("mimic", f'joint "{joint.get("name")}"', value, "remove <mimic> and drive it by a controller")
            joint.remove(mimic)
    if faults:
        raise ModelError("\n".join(f"{refusals.source}: {fault}" for fault in faults))
    _set_compiler(robot)
    return ET.tostring(robot, encoding="unicode")


def _set_compiler(robot: ET.Element) -> None:
    extension = robot.find("mujoco")
    if extension is None:
        extension = ET.SubElement(robot, "mujoco")
    compiler = extension.find("compiler")
    if compiler is None:
        compiler = ET.SubElement(extension, "compiler")
    compiler.attrib.update(_COMPILER)


def _inertia_faults(robot: ET.Element) -> Iterator[str]:
    """Links whose mass or inertia no body can have."""
    for link in robot.findall("link"):
        inertial = link.find("inertial")
        if inertial is None:
            continue
        name, mass, tensor = f'link "{link.get("name")}"', _mass(link), inertial.find("inertia")
        if mass is None or not np.isfinite(mass) or mass < 0:
            yield f"{name}: mass {mass}; give a finite mass of at least 0"
        if tensor is None:
            yield f"{name}: <inertial> without <inertia>; add ixx, iyy, izz, ixy, ixz, iyz"
            continue
        try:
            xx, yy, zz, xy, xz, yz = (float(tensor.get(k, "0")) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
        except ValueError as error:
            yield f"{name}: inertia {error}; give numbers"
            continue
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if not np.all(np.isfinite(matrix)):
            yield f"{name}: inertia is not finite; give finite numbers"
            continue
        a, b, c = np.linalg.eigvalsh(matrix)  # ascending
        shown = f"principal moments {a:.4g}, {b:.4g}, {c:.4g} kg m^2"
        if a < -_TRIANGLE_SLACK * abs(c):
            yield f"{name}: {shown}: a moment of inertia cannot be negative"
        elif a + b < c * (1 - _TRIANGLE_SLACK):
            yield f"{name}: {shown}: the sum of two must not be below the third; correct the tensor"


def _massless_faults(robot: ET.Element, floating_base: bool) -> Iterator[str]:
    """Links that move, rigidly connected ones taken together, and have no mass."""
    links = {link.get("name"): link for link in robot.findall("link")}
    joint_of = {j.find("child").get("link"): j for j in robot.findall("joint") if j.find("child") is not None}
    total: dict[str, float] = {}
    for name, link in links.items():
        carrier, steps = name, 0
        while carrier in joint_of and joint_of[carrier].get("type") == "fixed" and steps <= len(links):
            carrier, steps = joint_of[carrier].find("parent").get("link"), steps + 1
        total[carrier] = total.get(carrier, 0.0) + (_mass(link) or 0.0)
    for name, mass in total.items():
        moves = name in joint_of or floating_base
        if moves and mass == 0:
            yield f'link "{name}": it moves but has no mass; add an <inertial> to it or to a link fixed to it'


def _mass(link: ET.Element) -> float | None:
    element = link.find("inertial/mass")
    try:
        return None if element is None else float(element.get("value", "nan"))
    except ValueError:
        return float("nan")


def _resolve_meshes(robot: ET.Element, folder: Path, package_dirs: list[Path]) -> Iterator[str]:
    """Make collision mesh paths absolute; visuals that cannot be read are dropped, they have no physical effect."""
    compiler = robot.find("mujoco/compiler")
    meshdir = None if compiler is None or "meshdir" not in compiler.attrib else folder / compiler.get("meshdir")
    for link in robot.findall("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            mesh = shape.find("geometry/mesh")
            if mesh is None:
                continue
            address = mesh.get("filename", "")
            path = _find(address, folder, package_dirs, meshdir)
            if path is not None and path.suffix.lower() in _MESH_FORMATS:
                mesh.set("filename", str(path))
            elif shape.tag == "visual":
                link.remove(shape)
            elif path is None:
                yield f'link "{link.get("name")}": mesh {address} not found; give its folder in package_dirs'
            else:
                formats = ", ".join(_MESH_FORMATS)
                yield f'link "{link.get("name")}": mesh {address}: format not readable; convert it to one of {formats}'


def _find(address: str, folder: Path, package_dirs: list[Path], meshdir: Path | None) -> Path | None:
    """The file behind a mesh address; with MuJoCo's meshdir extension its last part alone counts as well."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        places = [folder / address]
    elif scheme == "file":
        places = [Path(rest)]
    else:
        package, _, inside = rest.partition("/")
        roots = [*package_dirs, folder, *folder.parents]
        places = [root / package / inside for root in roots]
        places += [root / inside for root in roots if root.name == package]
    if meshdir is not None:
        places += [meshdir / address, meshdir / Path(rest or address).name]
    return next((place.resolve() for place in places if place.is_file()), None)
