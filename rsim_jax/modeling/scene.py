"""`Scene`: a world put together from shapes and robots, compiled like a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import jax.numpy as jnp
import mujoco
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling import checks
from rsim_jax.modeling.compile import compile_model
from rsim_jax.modeling.hulls import mesh_hull
from rsim_jax.modeling.load import compile_spec, one_line, read_spec, source_name
from rsim_jax.modeling.material import Material, PenaltyContact, Soil
from rsim_jax.modeling.options import Options
from rsim_jax.modeling.refuse import Refusals
from rsim_jax.modeling.scene_leaves import BodyStart, GeomSurface, with_starts, with_surfaces
from rsim_jax.structs import Model

Vector = Sequence[float]
_GEOM = mujoco.mjtGeom


@dataclass(frozen=True)
class _Placement:
    """The arguments that every single body takes."""

    position: Vector
    quaternion: Vector
    velocity: Vector
    angular_velocity: Vector
    inertia: Any
    material: str
    kinematic: bool
    surface_velocity: Vector
    name: str | None


class Scene:
    """Builds a model body by body; every method raises ModelError naming the thing, the value and the remedy.

    Keyword arguments of single bodies (sphere, box, capsule, cylinder, mesh), which all return the body id:

    - position: of the body frame, which is the centre of mass (but see `add_mesh`), m; quaternion: (w, x, y, z).
    - velocity, angular_velocity: at the start, m/s and rad/s in world axes.
    - inertia: three principal moments along the body axes or a 3x3 tensor, kg m^2; None: of a homogeneous body.
    - material: name that `set_material_pair` uses.
    - kinematic: moved by the user alone; its mass does not matter.
    - surface_velocity: of the surface relative to the body, m/s in world axes.
    - name: for `model.body_id`.

    Args:
        timestep: s.
        gravity: m/s^2, world axes.
    """

    def __init__(self, timestep: float = 0.002, gravity: Vector = (0.0, 0.0, -9.81)) -> None:
        self._spec = mujoco.MjSpec()
        self._spec.modelname = "scene"
        self._spec.option.timestep = checks.number("scene", "timestep", timestep, low=0, above=True)
        self._spec.option.gravity = checks.vector("scene", "gravity", gravity, 3)
        self._nbody = 1
        self._surfaces: list[GeomSurface] = []
        self._starts: list[BodyStart] = []
        self._materials: dict[frozenset[str], Material] = {}
        self._ignore: set[str] = set()
        self._names: set[str] = {"world"}
        self._prefixes: set[str] = set()

    def add_ground(self, height: float = 0.0, material: str = "default", surface_velocity: Vector = (0, 0, 0)) -> None:
        """An infinite plane, z up, at `height` (m); surface_velocity (m/s, world axes) makes it a conveyor belt."""
        height = checks.number("ground", "height", height)
        geom = self._spec.worldbody.add_geom(type=_GEOM.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, height])
        self._add_surface("ground", geom, material, surface_velocity)

    def add_sphere(
        self,
        radius: float,
        mass: float,
        position: Vector = (0, 0, 0),
        quaternion: Vector = (1, 0, 0, 0),
        velocity: Vector = (0, 0, 0),
        angular_velocity: Vector = (0, 0, 0),
        inertia: Any = None,
        material: str = "default",
        kinematic: bool = False,
        surface_velocity: Vector = (0, 0, 0),
        name: str | None = None,
    ) -> int:
        """A sphere of `radius` (m) and `mass` (kg). Returns the body id."""
        placement = _Placement(
            position, quaternion, velocity, angular_velocity, inertia, material, kinematic, surface_velocity, name
        )
        owner = self._owner("sphere", name)
        size = [checks.number(owner, "radius", radius, low=0, above=True)]
        return self._add_body(owner, _GEOM.mjGEOM_SPHERE, size, mass, placement)

    def add_box(
        self,
        size: Vector,
        mass: float,
        position: Vector = (0, 0, 0),
        quaternion: Vector = (1, 0, 0, 0),
        velocity: Vector = (0, 0, 0),
        angular_velocity: Vector = (0, 0, 0),
        inertia: Any = None,
        material: str = "default",
        kinematic: bool = False,
        surface_velocity: Vector = (0, 0, 0),
        name: str | None = None,
    ) -> int:
        """A box with full edge lengths `size` (x, y, z) in m and `mass` (kg). Returns the body id."""
        placement = _Placement(
            position, quaternion, velocity, angular_velocity, inertia, material, kinematic, surface_velocity, name
        )
        owner = self._owner("box", name)
        halves = checks.vector(owner, "size", size, 3, positive=True) / 2
        return self._add_body(owner, _GEOM.mjGEOM_BOX, halves, mass, placement)

    def add_capsule(
        self,
        radius: float,
        length: float,
        mass: float,
        position: Vector = (0, 0, 0),
        quaternion: Vector = (1, 0, 0, 0),
        velocity: Vector = (0, 0, 0),
        angular_velocity: Vector = (0, 0, 0),
        inertia: Any = None,
        material: str = "default",
        kinematic: bool = False,
        surface_velocity: Vector = (0, 0, 0),
        name: str | None = None,
    ) -> int:
        """A capsule along z; `length` (m) is that of its cylindrical part. Returns the body id."""
        placement = _Placement(
            position, quaternion, velocity, angular_velocity, inertia, material, kinematic, surface_velocity, name
        )
        return self._add_round("capsule", _GEOM.mjGEOM_CAPSULE, radius, length, mass, placement)

    def add_cylinder(
        self,
        radius: float,
        length: float,
        mass: float,
        position: Vector = (0, 0, 0),
        quaternion: Vector = (1, 0, 0, 0),
        velocity: Vector = (0, 0, 0),
        angular_velocity: Vector = (0, 0, 0),
        inertia: Any = None,
        material: str = "default",
        kinematic: bool = False,
        surface_velocity: Vector = (0, 0, 0),
        name: str | None = None,
    ) -> int:
        """A cylinder along z of `radius` and `length` (m). Returns the body id."""
        placement = _Placement(
            position, quaternion, velocity, angular_velocity, inertia, material, kinematic, surface_velocity, name
        )
        return self._add_round("cylinder", _GEOM.mjGEOM_CYLINDER, radius, length, mass, placement)

    def add_articulation(
        self,
        source: str | os.PathLike[str],
        position: Vector = (0, 0, 0),
        quaternion: Vector = (1, 0, 0, 0),
        floating_base: bool | None = None,
        material: str | None = None,
        name: str | None = None,
        *,
        package_dirs: Iterable[str | os.PathLike[str]] = (),
        ignore: Iterable[str] = (),
    ) -> int:
        """Everything in an MJCF or URDF file, moved to a pose; its timestep, gravity and other options do not count.

        Args:
            source: path or XML text, as for `load`.
            position: added to the positions in the file, m.
            quaternion: (w, x, y, z).
            floating_base: as for `load`.
            material: of all its geoms; None keeps the friction of the file.
            name: prefix of its names ("name/torso"); None takes the model's name, numbered when it repeats.
            package_dirs: as for `load`.
            ignore: as for `load`; holds for the whole scene.

        Returns:
            The id of its first body.
        """
        owner = f"articulation {source_name(source)}"
        self._ignore.update((ignore,) if isinstance(ignore, str) else ignore)
        refusals = Refusals(source_name(source), self._ignore)
        place = {
            "pos": checks.vector(owner, "position", position, 3),
            "quat": checks.unit_quaternion(owner, "quaternion", quaternion),
        }
        robot = read_spec(source, floating_base=floating_base, package_dirs=package_dirs, refusals=refusals)
        prefix = self._prefix(owner, name, robot.modelname)
        world, count = self._spec.worldbody, len(robot.bodies) - 1
        geoms, bodies = len(world.geoms), len(world.bodies)
        for field in (f for f in dir(robot.option) if not f.startswith("_")):
            setattr(robot.option, field, getattr(self._spec.option, field))  # MuJoCo warns of every difference
        try:
            self._spec.attach(robot, prefix=prefix, frame=world.add_frame(**place))
        except (ValueError, mujoco.FatalError) as error:
            raise ModelError(f"{owner}: {one_line(error)}") from error
        added = [*world.geoms[geoms:], *(g for body in world.bodies[bodies:] for g in body.find_all("geom"))]
        for geom in added:
            self._add_surface(owner, geom, material, (0, 0, 0))
        first, self._nbody = self._nbody, self._nbody + count
        return first

    def set_material_pair(self, a: str, b: str, material: Material) -> None:
        """Contact parameters between two materials, in either order; a pair that is not set is `Material()`."""
        for value in (a, b):
            if not isinstance(value, str):
                raise ModelError(f"set_material_pair: {value!r}: give the names of two materials")
        if not isinstance(material, Material):
            raise ModelError(f"set_material_pair({a!r}, {b!r}): {material!r}: give an rsim_jax.Material")
        self._materials[frozenset((a, b))] = material

    def add_mesh(
        self,
        vertices_or_path: Any,
        mass: float,
        position: Vector = (0, 0, 0),
        quaternion: Vector = (1, 0, 0, 0),
        velocity: Vector = (0, 0, 0),
        angular_velocity: Vector = (0, 0, 0),
        inertia: Any = None,
        material: str = "default",
        kinematic: bool = False,
        surface_velocity: Vector = (0, 0, 0),
        name: str | None = None,
    ) -> int:
        """The convex hull of points, of `mass` (kg).

        The body frame is the one in which the points are given: position, quaternion and velocity are of its origin,
        wherever in the body that is. The centre of mass is the centroid of the hull, about which `inertia` is.

        Args:
            vertices_or_path: (n, 3) m, or the path of an .obj or .stl file.
            mass: kg.
            position, quaternion, velocity, angular_velocity, inertia, material, kinematic, surface_velocity, name: as
                for the other bodies.

        Returns:
            The body id.
        """
        placement = _Placement(
            position, quaternion, velocity, angular_velocity, inertia, material, kinematic, surface_velocity, name
        )
        owner = self._owner("mesh", name)
        hull = mesh_hull(owner, vertices_or_path)
        mesh = self._spec.add_mesh(name=f"{owner} {self._nbody}", uservert=hull.vertices.ravel().tolist())
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        return self._add_body(owner, _GEOM.mjGEOM_MESH, [], mass, placement, mesh.name, hull.centroid)

    def add_heightfield(self, heights: Any, size_x: float, size_y: float, material: str = "default") -> None:
        """Terrain that does not move, centred at the origin, cells cut from (-x, -y) to (+x, +y).

        Args:
            heights: (ny, nx) m at the samples, which reach from edge to edge; row 0 at -y, column 0 at -x.
            size_x, size_y: full lengths along x and y, m.
            material: name that `set_material_pair` uses.
        """
        owner = f"heightfield {len(self._spec.hfields)}"
        z = checks.grid(owner, "heights", heights)
        size = [
            checks.number(owner, name, v, low=0, above=True) for name, v in (("size_x", size_x), ("size_y", size_y))
        ]
        low, range_ = float(z.min()), float(np.ptp(z))
        field = self._spec.add_hfield(
            name=owner,
            nrow=z.shape[0],
            ncol=z.shape[1],
            size=[size[0] / 2, size[1] / 2, range_ or 1.0, 0.1 * max(size)],
            userdata=((z - low) / (range_ or 1.0)).ravel().tolist(),
        )
        geom = self._spec.worldbody.add_geom(type=_GEOM.mjGEOM_HFIELD, hfieldname=field.name, pos=[0, 0, low])
        self._add_surface(owner, geom, material, (0, 0, 0))

    def add_pin(self, body_a: int, body_b: int, anchor_a: Vector, anchor_b: Vector) -> NoReturn:
        """A ball joint between two bodies. Not available yet."""
        _not_available("add_pin", "write the joint into an MJCF file and use add_articulation")

    def add_wire(
        self,
        body_a: int,
        body_b: int,
        anchor_a: Vector,
        anchor_b: Vector,
        length: float,
        kind: str = "stiff",
        resist: str = "stretch",
        stiffness: float | None = None,
        damping: float = 0.0,
    ) -> NoReturn:
        """A wire between two bodies. Not available yet."""
        _not_available("add_wire", "apply a force with apply_force")

    def set_contact_model(self, a: str | int, b: str | int, model: PenaltyContact | Soil) -> NoReturn:
        """Compliant contact of a pair. Not available yet."""
        _not_available("set_contact_model", "leave it out: contacts are rigid")

    def compile(self, *, options: Options | None = None, dtype: Any = jnp.float32, ignore: Iterable[str] = ()) -> Model:
        """The model of this scene.

        Args:
            options: solver and integrator options.
            ignore: kinds of unsupported elements to drop knowingly, as for `load`.
            dtype: jnp.float32, or jnp.float64 with JAX's x64 mode.
        """
        if options is not None and not isinstance(options, Options):
            raise ModelError(f"scene: options={options!r}: give an rsim_jax.Options")
        ignored = {*self._ignore, *((ignore,) if isinstance(ignore, str) else ignore)}
        compiled = compile_spec(self._spec, "scene")
        model = compile_model(compiled, Refusals("scene", sorted(ignored)), options, dtype)
        return with_starts(with_surfaces(model, self._surfaces, self._materials), self._starts)

    def _owner(self, kind: str, name: str | None) -> str:
        if name is not None and (not isinstance(name, str) or not name):
            raise ModelError(f"{kind}: name = {name!r}: give a string or None")
        return f'{kind} "{name}"' if name else f"{kind} (body {self._nbody})"

    def _prefix(self, owner: str, name: str | None, model_name: str) -> str:
        if name is not None and (not isinstance(name, str) or not name or f"{name}/" in self._prefixes):
            raise ModelError(f"{owner}: name = {name!r}: give a string that no other articulation has")
        base = name or model_name or "articulation"
        numbers = ("", *(f"_{k}" for k in range(2, len(self._prefixes) + 2)))
        prefix = next(p for p in (f"{base}{n}/" for n in numbers) if p not in self._prefixes)
        self._prefixes.add(prefix)
        return prefix

    def _add_round(
        self, kind: str, shape: mujoco.mjtGeom, radius: float, length: float, mass: float, placement: _Placement
    ) -> int:
        owner = self._owner(kind, placement.name)
        radius = checks.number(owner, "radius", radius, low=0, above=True)
        length = checks.number(owner, "length", length, low=0, above=True)
        return self._add_body(owner, shape, [radius, length / 2], mass, placement)

    def _add_body(
        self,
        owner: str,
        shape: mujoco.mjtGeom,
        size: Sequence[float],
        mass: float,
        placement: _Placement,
        mesh: str = "",
        centre: Vector = (0, 0, 0),
    ) -> int:
        mass = checks.number(owner, "mass", mass, low=0, above=True)
        position = checks.vector(owner, "position", placement.position, 3)
        quaternion = checks.unit_quaternion(owner, "quaternion", placement.quaternion)
        velocity = checks.vector(owner, "velocity", placement.velocity, 3)
        angular = checks.vector(owner, "angular_velocity", placement.angular_velocity, 3)
        principal = None if placement.inertia is None else checks.inertia(owner, placement.inertia)
        surface_velocity = checks.vector(owner, "surface_velocity", placement.surface_velocity, 3)
        _check_material(owner, placement.material)
        if placement.name in self._names:
            raise ModelError(f"{owner}: the name is taken; give another")
        body = self._spec.worldbody.add_body(pos=position, quat=quaternion, mocap=bool(placement.kinematic))
        if placement.name:
            body.name = placement.name
            self._names.add(placement.name)
        if not placement.kinematic:
            body.add_freejoint()
        geom = body.add_geom(type=shape, size=np.resize([*size, 0, 0, 0], 3), mass=mass, meshname=mesh)
        if principal is not None:
            turn = np.zeros(4)
            mujoco.mju_mat2Quat(turn, principal[1].ravel())
            body.explicitinertial, body.mass = True, mass
            body.inertia, body.ipos, body.iquat = principal[0], centre, turn
        self._starts.append(BodyStart(body, quaternion, velocity, angular))
        self._add_surface(owner, geom, placement.material, surface_velocity)
        self._nbody += 1
        return self._nbody - 1

    def _add_surface(self, owner: str, geom: mujoco.MjsGeom, material: str | None, surface_velocity: Vector) -> None:
        if material is not None:
            _check_material(owner, material)
        velocity = checks.vector(owner, "surface_velocity", surface_velocity, 3)
        self._surfaces.append(GeomSurface(geom, material, velocity))


def _check_material(owner: str, material: object) -> None:
    if not isinstance(material, str) or not material:
        raise ModelError(f"{owner}: material = {material!r}: give a name")


def _not_available(method: str, instead: str) -> NoReturn:
    raise ModelError(f"Scene.{method} is not available yet: {instead}")
