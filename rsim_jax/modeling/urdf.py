"""URDF before MuJoCo's parser sees it: mesh paths, masses that make sense, features that would be lost silently.

MuJoCo then reads links, joints, effort limits (clamped actuator torque), joint damping and friction. Mimic joints and
velocity limits, which it does not know, come along as plain values. Safety controllers describe a motor driver, not the
robot, and have no effect.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling.refuse import Refusals

_MESH_FORMATS = (".stl", ".obj", ".msh")
# Keep every link as a body, keep the paths that we resolved, invent no mass for links without <inertial>.
_COMPILER = {"fusestatic": "false", "strippath": "false", "inertiafromgeom": "false", "meshdir": ""}
_TRIANGLE_SLACK = 1e-6  # relative; written digits are rounded
_SINGLE = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Mimic:
    """q[joint] = multiplier q[lead] + offset."""

    joint: str
    lead: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Urdf:
    """Text for MuJoCo's parser, and what it would drop."""

    text: str
    mimics: list[Mimic]
    velocity_limits: dict[str, float]  # m/s or rad/s by joint


def prepare_urdf(
    text: str,
    folder: Path,
    *,
    floating_base: bool,
    package_dirs: Iterable[str | Path] = (),
    refusals: Refusals,
) -> Urdf:
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
    mimics, mimic_faults = _read_mimics(robot, refusals)
    limits, limit_faults = _read_velocity_limits(robot)
    faults += mimic_faults + limit_faults
    if faults:
        raise ModelError("\n".join(f"{refusals.source}: {fault}" for fault in faults))
    _set_compiler(robot)
    return Urdf(ET.tostring(robot, encoding="unicode"), mimics, limits)


def _read_mimics(robot: ET.Element, refusals: Refusals) -> tuple[list[Mimic], list[str]]:
    """Takes the <mimic> elements out of the tree."""
    kinds = {joint.get("name"): joint.get("type") for joint in robot.findall("joint")}
    mimics, faults = [], []
    for joint in robot.findall("joint"):
        element = joint.find("mimic")
        if element is None:
            continue
        joint.remove(element)
        name, lead = joint.get("name"), element.get("joint")
        owner = f'joint "{name}": mimic of joint "{lead}"'
        try:
            multiplier, offset = (float(element.get(k, d)) for k, d in (("multiplier", "1"), ("offset", "0")))
        except ValueError as error:
            faults.append(f"{owner}: {error}; give numbers")
            continue
        if lead not in kinds or lead == name:
            faults.append(f"{owner}: there is no other joint of that name; correct it")
        elif not np.isfinite([multiplier, offset]).all():
            faults.append(f"{owner}: multiplier {multiplier:g}, offset {offset:g}; give finite numbers")
        elif any(kinds[j] not in _SINGLE for j in (name, lead)):
            value = f'mimic of joint "{lead}" is not simulated for joints that do not turn or slide about one axis'
            refusals.add("mimic", f'joint "{name}"', value, "remove <mimic>")
        else:
            mimics.append(Mimic(name, lead, multiplier, offset))
    return mimics, faults


def _read_velocity_limits(robot: ET.Element) -> tuple[dict[str, float], list[str]]:
    """Joints with <limit velocity>; zero, the parser's default, means none."""
    limits, faults = {}, []
    for joint in robot.findall("joint"):
        element = joint.find("limit")
        if element is None or "velocity" not in element.attrib or joint.get("type") not in _SINGLE:
            continue
        try:
            value = float(element.get("velocity"))
        except ValueError:
            value = np.nan
        if not value >= 0:
            faults.append(f'joint "{joint.get("name")}": velocity limit {element.get("velocity")}; give a number >= 0')
        elif 0 < value < np.inf:
            limits[joint.get("name")] = value
    return limits, faults


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
