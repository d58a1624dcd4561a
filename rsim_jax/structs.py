"""Read first: every record that the stages exchange.

Layout rule: component first, item next, world last, for example `(3, nbody, N)`. A leaf whose world axis has length
1 is shared by all worlds; one of length N differs per world. SI units, radians, quaternions (w, x, y, z).

Two words that MuJoCo does not use:

*link*: what one joint moves. A body with three hinges is a chain of three links, the last of which carries the body.
   Links are numbered by joint (0 ... njnt-1), then kinematic bodies (njnt ... njnt+nkin-1), then the world (the last).
*origin*: a point per world that moves with the first tree. Positions inside the engine are relative to it, in world
   axes, so that float32 gives the same step at the world's origin and a kilometre away.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Bool, Float, Int

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3  # joint types, numbered as MuJoCo does
POSITION_WIDTHS, VELOCITY_WIDTHS = (7, 4, 1, 1), (6, 3, 1, 1)  # entries in q and qd by joint type
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)  # geom types, numbered as MuJoCo does

DENSE_MARGIN = 24  # dofs beyond those of two trees up to which a dense row costs less than one that finds its trees
CONTACT, JOINT_LIMIT, JOINT_FRICTION, EQUALITY, PIN, WIRE, PENALTY = range(7)  # ContactRows.kind


def record(cls: type, static: tuple[str, ...] = ()) -> type:
    """Frozen dataclass registered as a pytree; the fields named in `static` are hashable metadata."""
    cls = dataclass(frozen=True)(cls)
    names = [f.name for f in dataclasses.fields(cls)]
    return jax.tree_util.register_dataclass(cls, [n for n in names if n not in static], list(static))


@dataclass(frozen=True)
class Topology:
    """What changes the compiled program: counts, parents, types, capacities, names. Hashable: ints, strings, tuples."""

    # bodies, as in the file; body 0 is the world
    body_names: tuple[str, ...]
    body_parent: tuple[int, ...]
    body_link: tuple[int, ...]  # the link that carries each body
    # joints = links
    joint_names: tuple[str, ...]
    joint_type: tuple[int, ...]
    joint_body: tuple[int, ...]
    joint_parent: tuple[int, ...]  # parent link; nlink - 1 (the world) for roots
    joint_limited: tuple[bool, ...]  # hinge and slide only; ball limits are refused at load
    dof_friction: tuple[bool, ...]  # per dof: has a joint-friction row
    nkin: int  # kinematic (mocap) bodies
    kinematic_body: tuple[int, ...]  # body of each
    # geoms
    geom_names: tuple[str, ...]
    geom_type: tuple[int, ...]
    geom_body: tuple[int, ...]
    # candidate pairs: (geom a, geom b) with a < b, sorted by family of shapes (see collision/pair_table.py)
    pair_geoms: tuple[tuple[int, int], ...]
    # actuators
    actuator_names: tuple[str, ...]
    actuator_dof: tuple[int, ...]  # the dof each acts on
    # other names
    site_names: tuple[str, ...]
    site_link: tuple[int, ...]
    keyframe_names: tuple[str, ...]
    # capacities and options that shape the program
    max_contacts: int
    sweeps: int
    slip_rule: str  # "coulomb" | "energy"
    warm_start: bool
    speculative: bool
    integrator: str  # "semi_implicit" | "trapezoid" | "rk4"
    source: str  # file name, for messages
    manifold_points: int = 4  # candidates of a pair of flat faces
    angular_friction: bool = False  # whether any pair resists rolling or spinning
    # shapes given by tables: hull and height field of every geom, -1 where it has none
    geom_hull: tuple[int, ...] = ()
    geom_field: tuple[int, ...] = ()
    field_shape: tuple[tuple[int, int], ...] = ()  # rows (along y) and columns (along x) of every field
    # of every pair, if there are fields: cells along x and y that cover its shape's points, and all of the shape
    pair_cells: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    field_digest: str = ""  # of all heights in the file
    joint_sprung: tuple[bool, ...] = ()  # ball and free joints with a spring (hinges and slides may always have one)
    joint_velocity_limited: tuple[bool, ...] = ()  # hinge and slide only: has a limit row even without a range
    # pins hold two points together, welds (a pin that also holds the rotation) two frames: bodies (a, b)
    pin_bodies: tuple[tuple[int, int], ...] = ()
    pin_welds: tuple[bool, ...] = ()
    equality_joints: tuple[tuple[int, int], ...] = ()  # (joint, the joint it follows or -1)
    # wires between a point of body a and one of body b
    wire_names: tuple[str, ...] = ()
    wire_bodies: tuple[tuple[int, int], ...] = ()
    wire_kind: tuple[str, ...] = ()  # "stiff" | "compliant" | "custom"
    wire_resist: tuple[str, ...] = ()  # "stretch" | "compression" | "both"
    # pairs with compliant contact (see contact/penalty.py): like pair_geoms, of which they are not part
    penalty_pairs: tuple[tuple[int, int], ...] = ()
    penalty_candidates: int = 0  # contact points of all of them, one report slot each
    penalty_laws: tuple[Any, ...] = ()  # per penalty model: the user's function, None for the law of contact/penalty.py
    penalty_bodies: tuple[tuple[int, ...] | None, ...] = ()  # per penalty model: the bodies it acts on, None for all

    def __post_init__(self) -> None:
        if not self.joint_velocity_limited:
            object.__setattr__(self, "joint_velocity_limited", (False,) * len(self.joint_type))
        if not self.joint_sprung:
            object.__setattr__(self, "joint_sprung", (False,) * len(self.joint_type))

    @property
    def nbody(self) -> int:
        return len(self.body_names)

    @property
    def njnt(self) -> int:
        return len(self.joint_type)

    @property
    def nlink(self) -> int:
        """Joint links, kinematic links and the world."""
        return self.njnt + self.nkin + 1

    @property
    def world(self) -> int:
        """Index of the world link."""
        return self.nlink - 1

    @property
    def ngeom(self) -> int:
        return len(self.geom_type)

    @functools.cached_property
    def scattered(self) -> bool:
        """Whether rows are kept by tree and pairs listed world by world, as dense rows would mostly hold zeros.

        Never with loops and wires, whose rows join trees, or with shapes given by tables.
        """
        tables = {self.geom_type[g] for pair in self.pair_geoms for g in pair} & {HFIELD, ELLIPSOID, MESH}
        if self.nloop or self.nwire or tables:
            return False
        root: list[int] = []
        widths: dict[int, int] = {}
        for joint, parent in enumerate(self.joint_parent):
            root.append(joint if parent >= self.njnt else root[parent])
            widths[root[-1]] = widths.get(root[-1], 0) + VELOCITY_WIDTHS[self.joint_type[joint]]
        return len(widths) > 1 and self.nv > 2 * max(widths.values()) + DENSE_MARGIN

    @property
    def npair(self) -> int:
        return len(self.pair_geoms)

    @property
    def npenalty(self) -> int:
        return len(self.penalty_pairs)

    @property
    def nheight(self) -> int:
        """Samples of all height fields."""
        return sum(rows * columns for rows, columns in self.field_shape)

    @property
    def nu(self) -> int:
        return len(self.actuator_dof)

    @property
    def joint_qadr(self) -> tuple[int, ...]:
        """First entry of each joint in q."""
        return _starts(self.joint_type, POSITION_WIDTHS)[:-1]

    @property
    def joint_dadr(self) -> tuple[int, ...]:
        """First entry of each joint in qd."""
        return _starts(self.joint_type, VELOCITY_WIDTHS)[:-1]

    @property
    def nq(self) -> int:
        return _starts(self.joint_type, POSITION_WIDTHS)[-1]

    @property
    def nv(self) -> int:
        return _starts(self.joint_type, VELOCITY_WIDTHS)[-1]

    @property
    def geom_link(self) -> tuple[int, ...]:
        return tuple(self.body_link[b] for b in self.geom_body)

    @property
    def limited_joints(self) -> tuple[int, ...]:
        """Joints with a limit row: of position, velocity or both."""
        limits = zip(self.joint_limited, self.joint_velocity_limited, strict=True)
        return tuple(j for j, limited in enumerate(limits) if any(limited))

    @property
    def friction_dofs(self) -> tuple[int, ...]:
        return tuple(i for i, has in enumerate(self.dof_friction) if has)

    @property
    def npin(self) -> int:
        return len(self.pin_bodies)

    @property
    def nequality(self) -> int:
        return len(self.equality_joints)

    @property
    def nwire(self) -> int:
        return len(self.wire_kind)

    @property
    def welds(self) -> tuple[int, ...]:
        """The pins that are welds."""
        return tuple(p for p, weld in enumerate(self.pin_welds) if weld)

    @property
    def rods(self) -> tuple[int, ...]:
        """Wires that hold their length both ways: loop constraints like pins."""
        kinds = enumerate(zip(self.wire_kind, self.wire_resist, strict=True))
        return tuple(w for w, kind in kinds if kind == ("stiff", "both"))

    @property
    def swept_wires(self) -> tuple[int, ...]:
        """Wires with a row in the sweep: all that are no rods."""
        return tuple(w for w in range(self.nwire) if w not in self.rods)

    @property
    def nloop(self) -> int:
        """Scalar loop equations: three a pin, three more a weld, one an equality or rod."""
        return 3 * (self.npin + len(self.welds)) + self.nequality + len(self.rods)


def _starts(types: tuple[int, ...], widths: tuple[int, ...]) -> tuple[int, ...]:
    starts = [0]
    for joint_type in types:
        starts.append(starts[-1] + widths[joint_type])
    return tuple(starts)


class Model:
    """Everything about the scene that does not change with time: one static `topology`, the rest are leaves.

    Public leaves may be given per world by `replace`; W is 1 or N. See `modeling/derive.py` for the derived ones.
    """

    topology: Topology
    dt: Float[Array, ""]  # s
    gravity: Float[Array, "3 W"]  # m/s^2, world axes
    # bodies (inertial properties in each body's own frame)
    body_mass: Float[Array, "nbody W"]
    body_com: Float[Array, "3 nbody W"]
    body_inertia: Float[Array, "6 nbody W"]  # about the centre of mass, body axes: xx yy zz xy xz yz
    body_offset: Float[Array, "3 nbody 1"]  # pose of the body frame in its link frame
    body_rotation: Float[Array, "3 3 nbody 1"]
    # joints: a link's frame before its joint moves is (joint_rotation, joint_offset) in the parent link; the joint
    # turns about joint_anchor or slides along joint_axis, both in the link's own frame; q = joint_ref is that pose
    joint_offset: Float[Array, "3 njnt 1"]
    joint_rotation: Float[Array, "3 3 njnt 1"]
    joint_anchor: Float[Array, "3 njnt 1"]
    joint_axis: Float[Array, "3 njnt 1"]
    joint_ref: Float[Array, "nq 1"]
    joint_spring_ref: Float[Array, "nq 1"]
    joint_stiffness: Float[Array, "nv W"]  # one value per dof (a joint's dofs share it)
    joint_damping: Float[Array, "nv W"]
    joint_armature: Float[Array, "nv W"]
    joint_friction: Float[Array, "nv W"]  # dry friction force or torque
    joint_range: Float[Array, "2 njnt W"]
    joint_margin: Float[Array, "njnt 1"]  # distance from the limit at which it acts
    joint_force_range: Float[Array, "2 nv 1"]  # limit on the sum of actuator forces, +-inf when unlimited
    joint_velocity_limit: Float[Array, "nv W"]  # m/s or rad/s, inf when unlimited
    # actuators: force = gain ctrl + bias . (1, length, velocity), length = gear q
    actuator_gain: Float[Array, "nu W"]
    actuator_bias: Float[Array, "3 nu W"]
    actuator_gear: Float[Array, "nu 1"]
    actuator_ctrl_range: Float[Array, "2 nu 1"]  # +-inf when unlimited
    actuator_force_range: Float[Array, "2 nu 1"]
    # geoms (pose in the link frame)
    geom_size: Float[Array, "3 ngeom W"]  # MuJoCo's meaning per type
    geom_friction: Float[Array, "3 ngeom W"]  # sliding, spinning (m), rolling (m)
    geom_offset: Float[Array, "3 ngeom 1"]
    geom_rotation: Float[Array, "3 3 ngeom 1"]
    geom_surface_velocity: Float[Array, "3 ngeom 1"]  # world axes, m/s
    # tables of shapes, see modeling/hulls.py; shorter hulls are filled up with copies
    hull_vertices: Float[Array, "3 nvertex nhull 1"]  # in the geom's frame
    hull_normals: Float[Array, "3 nface nhull 1"]
    hull_offsets: Float[Array, "nface nhull 1"]  # normal . x on the face
    hull_polygons: Float[Array, "3 ncorner nface nhull 1"]  # anticlockwise about the normal
    hull_edges: Float[Array, "3 4 nedge nhull 1"]  # unit direction, a point, normals of the two faces
    hull_extent: Float[Array, "nhull 1"]  # distance of the farthest vertex
    field_height: Float[Array, "nheight W"]  # m in the geom's frame, field by field, row by row (y), x fastest
    field_half_size: Float[Array, "2 nfield 1"]  # along x and y
    # candidate pairs
    pair_friction: Float[Array, "npair W"]
    pair_restitution: Float[Array, "npair W"]
    pair_restitution_threshold: Float[Array, "npair W"]  # m/s
    pair_static_friction: Float[Array, "npair W"]
    pair_static_friction_velocity: Float[Array, "npair W"]  # m/s
    pair_rolling_friction: Float[Array, "npair W"]
    pair_spinning_friction: Float[Array, "npair W"]
    # weights of the distances from the contact to the centres of mass of A and B, by which rolling and spinning
    # coefficients are multiplied; both 0: the coefficients are lengths
    pair_lever: Float[Array, "2 npair 1"]
    pair_margin: Float[Array, "npair 1"]  # the surfaces touch this far apart (MJCF margin - gap), m
    # which pairs take their friction from the two geoms (1) or carry their own (0); who wins by priority
    pair_from_geoms: Int[Array, "npair 1"]  # 0 own value, 1 element-wise max, 2 geom a alone, 3 geom b alone
    # loops and wires: anchors in the link frames of the two bodies
    pin_anchor: Float[Array, "3 2 npin 1"]
    pin_rotation: Float[Array, "3 3 npin 1"]  # of link b in link a, held by welds
    equality_coefficients: Float[Array, "5 nequality 1"]  # q - ref = sum of c_k (q of the followed joint - its ref)^k
    wire_anchor: Float[Array, "3 2 nwire 1"]
    wire_length: Float[Array, "nwire W"]  # m, at rest
    wire_stiffness: Float[Array, "nwire W"]  # N/m, compliant wires
    wire_damping: Float[Array, "nwire W"]  # N s/m
    # pairs with compliant contact: which penalty model acts, and its numbers
    pair_penalty_model: Int[Array, "npenalty W"]
    pair_penalty_kp: Float[Array, "npenalty W"]  # N/m^n
    pair_penalty_kc: Float[Array, "npenalty W"]  # N s/m^(n + 1)
    pair_penalty_n: Float[Array, "npenalty W"]
    pair_penalty_mu: Float[Array, "npenalty W"]
    pair_penalty_v_lin: Float[Array, "npenalty W"]  # m/s
    penalty_margin: Float[Array, "npenalty 1"]  # as pair_margin
    penalty_numbers: Float[Array, "5 nmodel 1"]  # kp, kc, n, mu, v_lin of every penalty model
    # sites and keyframes
    site_offset: Float[Array, "3 nsite 1"]
    site_rotation: Float[Array, "3 3 nsite 1"]
    key_time: Float[Array, " nkey"]
    key_q: Float[Array, "nq nkey"]
    key_qd: Float[Array, "nv nkey"]
    key_ctrl: Float[Array, "nu nkey"]
    default_q: Float[Array, "nq 1"]
    default_qd: Float[Array, "nv 1"]
    kinematic_position: Float[Array, "3 nkin 1"]  # default poses and velocities of kinematic bodies, world axes
    kinematic_quaternion: Float[Array, "4 nkin 1"]
    kinematic_default_velocity: Float[Array, "3 nkin 1"]  # m/s
    kinematic_default_angular_velocity: Float[Array, "3 nkin 1"]  # rad/s
    # solver options that are numbers
    tolerance: Float[Array, ""]  # m/s
    erp: Float[Array, ""]
    slop: Float[Array, ""]  # m
    max_correction: Float[Array, ""]  # m/s
    limit_restitution: Float[Array, ""]
    # derived by modeling/derive.py: inertial properties per link, welded bodies merged
    link_mass: Float[Array, "njnt W"]
    link_com: Float[Array, "3 njnt W"]
    link_inertia: Float[Array, "6 njnt W"]  # about the link's centre of mass, link axes: xx yy zz xy xz yz

    # counts and look-ups that users ask for
    @property
    def nq(self) -> int:
        return self.topology.nq

    @property
    def nv(self) -> int:
        return self.topology.nv

    @property
    def nu(self) -> int:
        return self.topology.nu

    @property
    def nbody(self) -> int:
        return self.topology.nbody

    @property
    def ngeom(self) -> int:
        return self.topology.ngeom

    @property
    def njnt(self) -> int:
        return self.topology.njnt

    @property
    def dtype(self) -> Any:
        return self.body_mass.dtype

    def body_id(self, name: str) -> int:
        """Index of a body by name; ValueError lists the names when there is none."""
        return _index("body", self.topology.body_names, name)

    def joint_id(self, name: str) -> int:
        return _index("joint", self.topology.joint_names, name)

    def geom_id(self, name: str) -> int:
        return _index("geom", self.topology.geom_names, name)

    def actuator_id(self, name: str) -> int:
        return _index("actuator", self.topology.actuator_names, name)

    def site_id(self, name: str) -> int:
        return _index("site", self.topology.site_names, name)

    def wire_id(self, name: str) -> int:
        return _index("wire", self.topology.wire_names, name)

    def replace(self, **leaves: Any) -> Model:
        """A copy with new public leaves, shared (last axis 1) or per world (last axis N); derived ones follow.

        Raises:
            ModelError: for a name that is not a public leaf, or a value of the wrong shape.
        """
        from rsim_jax.modeling.derive import replace_leaves  # load-time code, imported only when used

        return replace_leaves(self, leaves)


def _index(what: str, names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise ValueError(f"no {what} named {name!r}; there are: {', '.join(n for n in names if n) or 'none'}")
    return names.index(name)


Model = record(Model, static=("topology",))


class ContactRows:
    """All rows of the last step: max_contacts contacts, joint limits, joint friction, wires, loops, penalty contacts.

    Contact rows use the contact frame (x, y, z = normal from A to B), see `contact/frames.py`; one-dimensional rows
    use component z. A wire's normal is the direction in which a positive impulse pushes body B: towards A if it
    pulls. Loops are one PIN row a pin (world axes), a second one for the rotation of each weld, one EQUALITY row a
    joint equality and one WIRE row a rod; their gap is the size of the error, their target is not kept. Geometry is
    of the start of the step, impulses and velocities of its end. Inactive rows are zero with index -1. What the next
    step needs for its warm start is read from here. A penalty contact, one row for each candidate of the pairs that
    have one, is no row of the solver: its impulse is dt times its mean force.
    """

    kind: tuple[int, ...]  # static: CONTACT, JOINT_LIMIT, JOINT_FRICTION, EQUALITY, PIN, WIRE or PENALTY of every row
    index: Int[Array, "R N"]  # candidate (contacts), joint (limit), dof (friction), own number (rest); or -1
    active: Bool[Array, "R N"]
    point: Float[Array, "3 R N"]  # midpoint of the witness points, relative to the origin of its step
    normal: Float[Array, "3 R N"]  # world axes, from A to B
    gap: Float[Array, "R N"]  # m or rad, < 0 penetrating
    target: Float[Array, "R N"]  # post-step velocity b asked for along z
    friction: Float[Array, "R N"]  # effective coefficient; impulse bound tau dt for joint friction
    impulse: Float[Array, "3 R N"]  # on B, N s (or N m s)
    velocity: Float[Array, "3 R N"]  # B relative to A after the step
    # torque impulse of rolling and spinning friction on B, contact frame, N m s; empty where no pair has any
    angular_impulse: Float[Array, "3 turning N"]


ContactRows = record(ContactRows, static=("kind",))


class State:
    """One moment of N worlds."""

    q: Float[Array, "nq N"]
    qd: Float[Array, "nv N"]
    time: Float[Array, " N"]  # s, = time_start + steps dt
    time_start: Float[Array, " N"]
    steps: Int[Array, " N"]
    status: Int[Array, " N"]  # Status bits, sticky until reset
    origin: Float[Array, "3 N"]  # the origin of the last step, to which rows.point refers
    rows: ContactRows
    residual: Float[Array, "3 N"]  # m/s, of the last step's row solution: normal, cone, dissipation
    force: Float[Array, "nv N"]  # generalised force applied by the user to the next step only
    kinematic_position: Float[Array, "3 nkin N"]
    kinematic_quaternion: Float[Array, "4 nkin N"]
    kinematic_velocity: Float[Array, "3 nkin N"]
    kinematic_angular_velocity: Float[Array, "3 nkin N"]
    wire_force: Float[Array, "nwire N"]  # N, tension of custom wires, positive pulls; kept until changed

    def replace(self, **fields: Any) -> State:
        """A copy with new fields, for example `state.replace(q=...)`; the next step uses them."""
        return dataclasses.replace(self, **fields)


State = record(State)


class Links:
    """Poses and velocities of all links: joint links, kinematic links, the world (index `Topology.world`, last)."""

    rotation: Float[Array, "3 3 nlink N"]  # link axes in world axes (columns)
    position: Float[Array, "3 nlink N"]  # relative to origin
    origin: Float[Array, "3 N"]  # world position of the origin


Links = record(Links)


class LinkVelocity:
    """Velocity field of every link: at point p it is linear + angular x (p - reference); world axes."""

    angular: Float[Array, "3 nlink N"]
    linear: Float[Array, "3 nlink N"]
    reference: Float[Array, "3 nlink N"]  # relative to the origin


LinkVelocity = record(LinkVelocity)


class Candidates:
    """Closest points of every candidate (pair, feature); C of them, ordered by pair, then feature."""

    point: Float[Array, "3 C N"]  # midpoint of the witness points, relative to origin
    normal: Float[Array, "3 C N"]  # unit, from geom a to geom b, world axes
    gap: Float[Array, "C N"]  # signed distance less the pair's margin; < 0 penetrating


Candidates = record(Candidates)


class Contacts:
    """The K = max_contacts most urgent candidates of every world, most urgent first."""

    index: Int[Array, "K N"]  # candidate, -1 where there is none
    active: Bool[Array, "K N"]
    point: Float[Array, "3 K N"]
    normal: Float[Array, "3 K N"]
    gap: Float[Array, "K N"]
    friction: Float[Array, "K N"]
    restitution: Float[Array, "K N"]
    restitution_threshold: Float[Array, "K N"]
    static_friction: Float[Array, "K N"]
    static_friction_velocity: Float[Array, "K N"]
    surface_velocity: Float[Array, "3 K N"]  # of B relative to A beyond what qd explains, world axes
    turning: Float[Array, "turning K N"]  # rolling and spinning coefficient, levers of A and B; empty without
    # which dofs move the two sides: dense rows know it of every dof, scattered scenes look it up by link
    side: Float[Array, "nv K N"]  # +1 where the dof moves B only, -1 where A only, 0 where both or neither
    links: Int[Array, "2 K N"]  # links of A and B, -1 when inactive; one of `side` and `links` is empty
    overflow: Bool[Array, " N"]


Contacts = record(Contacts)


class PenaltyParameters:
    """Numbers of a penalty law, C contact points; the last axis is 1 where all worlds share them."""

    kp: Float[Array, "C W"]  # N/m^n
    kc: Float[Array, "C W"]  # N s/m^(n + 1)
    n: Float[Array, "C W"]
    mu: Float[Array, "C W"]
    v_lin: Float[Array, "C W"]  # m/s


PenaltyParameters = record(PenaltyParameters)


class PenaltyGeometry:
    """Where two compliant surfaces overlap."""

    depth: Float[Array, "C N"]  # m, >= 0; 0 where they do not touch
    point: Float[Array, "3 C N"]  # midpoint of the witness points, world
    normal: Float[Array, "3 C N"]  # unit, from A to B, world axes


PenaltyGeometry = record(PenaltyGeometry)


class PenaltyVelocity:
    """How two compliant surfaces move at the contact point."""

    rate: Float[Array, "C N"]  # m/s, of the depth: > 0 while compressing
    slip: Float[Array, "3 C N"]  # m/s, tangential velocity of B relative to A, world axes


PenaltyVelocity = record(PenaltyVelocity)


class PenaltyContacts:
    """Compliant contacts of one derivative evaluation, or of a step; C = Topology.penalty_candidates."""

    enabled: Bool[Array, "C N"]  # the pair's penalty model acts on one of its bodies
    point: Float[Array, "3 C N"]  # relative to the origin
    normal: Float[Array, "3 C N"]
    gap: Float[Array, "C N"]
    force: Float[Array, "3 C N"]  # on B, world axes, N; of a step: the mean over it


PenaltyContacts = record(PenaltyContacts)


class PointPair:
    """Drake's PenetrationAsPointPair: witness points and depth."""

    p_WCa: Float[Array, "3 K N"]
    p_WCb: Float[Array, "3 K N"]
    nhat_BA_W: Float[Array, "3 K N"]  # unit, out of B into A
    depth: Float[Array, "K N"]  # > 0 penetrating, negative gap where speculative


PointPair = record(PointPair)


class PointPairContactInfo:
    """Contacts of the last step, one slot each; invalid slots are zero with body -1."""

    valid: Bool[Array, "K N"]  # touching or carrying an impulse
    speculative: Bool[Array, "K N"]  # carries an impulse across a gap
    body_a: Int[Array, "K N"]
    body_b: Int[Array, "K N"]
    geom_a: Int[Array, "K N"]
    geom_b: Int[Array, "K N"]
    contact_force: Float[Array, "3 K N"]  # on body B, world axes, N
    contact_point: Float[Array, "3 K N"]  # world
    separation_speed: Float[Array, "K N"]  # m/s, > 0 apart
    slip_speed: Float[Array, "K N"]  # m/s, >= 0
    point_pair: PointPair


PointPairContactInfo = record(PointPairContactInfo)
