"""`Scene`: a world put together from shapes and robots, compiled like a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NoReturn

import jax.numpy as jnp
import mujoco
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling import checks
from rsim_jax.modeling.compile import compile_model
from rsim_jax.modeling.constraints import WIRE_KINDS, WIRE_RESISTS, Constraints, Pin, Wire
from rsim_jax.modeling.hulls import mesh_hull
from rsim_jax.modeling.load import compile_spec, one_line, read_spec, source_name
from rsim_jax.modeling.material import Material, PenaltyContact, Soil
from rsim_jax.modeling.options import Options
from rsim_jax.modeling.penalty import chosen_geoms, penalty_models, with_penalty
from rsim_jax.modeling.refuse import Refusals
from rsim_jax.modeling.scene_leaves import BodyStart, GeomSurface, with_starts, with_surfaces
from rsim_jax.modeling.stiffness import check_step
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
        self._contact_models: list[tuple[str | int, str | int, tuple[PenaltyContact, ...]]] = []
        self._ignore: set[str] = set()
        self._names: set[str] = {"world"}
        self._prefixes: set[str] = set()
        self._velocity_limits: dict[str, float] = {}
        self._constraints = Constraints()

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
        robot, limits = read_spec(source, floating_base=floating_base, package_dirs=package_dirs, refusals=refusals)
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
        self._velocity_limits.update({prefix + joint: limit for joint, limit in limits.items()})
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

    def add_pin(self, body_a: int, body_b: int, anchor_a: Vector, anchor_b: Vector) -> int:
        """A ball joint: the two anchors stay together, exactly and whatever pushes.

        Args:
            body_a: body id; 0 is the world, kinematic bodies may take part.
            body_b: the other body.
            anchor_a: m, in the frame of body a.
            anchor_b: m, in the frame of body b.

        Returns:
            The number of the pin: `state.rows.index` of its row.
        """
        owner = f"pin {len(self._constraints.pins)} (body {body_a} and body {body_b})"
        self._constraints.pins.append(Pin(*self._ends(owner, (body_a, body_b), (anchor_a, anchor_b))))
        return len(self._constraints.pins) - 1

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
    ) -> int:
        """A wire between two anchors.

        Args:
            body_a: body id; 0 is the world, kinematic bodies may take part.
            body_b: the other body.
            anchor_a: m, in the frame of body a.
            anchor_b: m, in the frame of body b.
            length: at rest, m.
            kind: "stiff": cannot go beyond its length; "compliant": a spring with a damper, implicit and stable at any
                stiffness; "custom": the tension that `set_wire_tension` gives it, zero at first.
            resist: "stretch" | "compression" | "both": which changes of length the wire opposes.
            stiffness: N/m, of a compliant wire.
            damping: N s/m, of a compliant wire.

        Returns:
            The number of the wire, for `set_wire_tension` and `wire_tension`.
        """
        owner = f"wire {len(self._constraints.wires)} (body {body_a} and body {body_b})"
        ends = self._ends(owner, (body_a, body_b), (anchor_a, anchor_b))
        for name, value, choices in (("kind", kind, WIRE_KINDS), ("resist", resist, WIRE_RESISTS)):
            if value not in choices:
                raise ModelError(f"{owner}: {name} = {value!r}: give one of {', '.join(map(repr, choices))}")
        length = checks.number(owner, "length", length, low=0)
        damping = checks.number(owner, "damping", damping, low=0)
        if kind == "compliant" and stiffness is None:
            raise ModelError(f"{owner}: stiffness is missing: give a compliant wire its stiffness, N/m")
        stiffness = 0.0 if stiffness is None else checks.number(owner, "stiffness", stiffness, low=0)
        if kind != "compliant" and (stiffness or damping):
            raise ModelError(f"{owner}: stiffness or damping of a {kind} wire: leave them out or give kind='compliant'")
        self._constraints.wires.append(Wire(*ends, length, kind, resist, stiffness, damping))
        return len(self._constraints.wires) - 1

    def _ends(self, owner: str, bodies: tuple[int, int], anchors: tuple[Vector, Vector]) -> tuple[Any, Any]:
        """Bodies and anchors, once they are in order."""
        for body in bodies:
            if isinstance(body, bool) or not isinstance(body, Integral) or not 0 <= body < self._nbody:
                raise ModelError(
                    f"{owner}: body {body!r} does not exist: give an id from 0 (the world) to {self._nbody - 1}"
                )
        if bodies[0] == bodies[1]:
            raise ModelError(f"{owner}: both ends are on the same body: give two bodies")
        points = tuple(checks.vector(owner, f"anchor_{x}", p, 3) for x, p in zip("ab", anchors, strict=True))
        return tuple(int(body) for body in bodies), points

    def set_contact_model(
        self, a: str | int, b: str | int, model: PenaltyContact | Sequence[PenaltyContact] | Soil
    ) -> None:
        """Compliant contact between two materials or geoms, in either order, instead of rigid contact.

        A pair of geoms has the model of the last call that names it and whose `bodies` include one of its two.

        Args:
            a: name of a material, or id of a geom of the compiled scene; a ground comes first, then bodies in order.
            b: the same.
            model: a `PenaltyContact`; of several the first acts, and `model.replace(pair_penalty_model=...)` chooses
                another by its number, pair by pair and world by world. Models are numbered in the order of the calls.
        """
        if isinstance(model, Soil):
            _not_available("set_contact_model with a Soil", "use a PenaltyContact")
        for value in (a, b):
            if not isinstance(value, str | int | np.integer) or isinstance(value, bool):
                raise ModelError(f"set_contact_model: {value!r}: give the name of a material or the id of a geom")
        self._contact_models.append((a, b, penalty_models(f"set_contact_model({a!r}, {b!r})", model)))

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
        model = compile_model(
            compiled,
            Refusals("scene", sorted(ignored)),
            options,
            dtype,
            velocity_limits=self._velocity_limits,
            added=self._constraints,
        )
        model = with_starts(with_surfaces(model, self._surfaces, self._materials), self._starts)
        return self._with_contact_models(model)

    def _with_contact_models(self, model: Model) -> Model:
        used: dict[int, PenaltyContact] = {}
        for a, b, penalties in self._contact_models:
            owner = f"scene: set_contact_model({a!r}, {b!r})"
            first, second = (self._geoms_of(model, owner, value) for value in (a, b))
            model, numbers = with_penalty(model, owner, first, second, penalties)
            if numbers is not None:
                used.update(zip(numbers, penalties, strict=True))
            elif not isinstance(a, str) or not isinstance(b, str):
                raise ModelError(f"{owner}: these geoms never collide: name two of which one can move")
        check_step(model, used)
        return model

    def _geoms_of(self, model: Model, owner: str, name: str | int) -> set[int]:
        """The geoms of a material, or one geom."""
        if not isinstance(name, str):
            return chosen_geoms(model, owner, name)
        found = {s.geom.id for s in self._surfaces if s.material == name}
        if not found:
            known = sorted({s.material for s in self._surfaces if s.material})
            raise ModelError(f"{owner}: no geom has the material {name!r}; there are: {', '.join(known) or 'none'}")
        return found

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
