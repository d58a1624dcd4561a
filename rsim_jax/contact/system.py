"""The row problem that the solver sees: rows, blocks and bounds, no bodies.

Whitened rows. With M = L' D L and J the Jacobian of a row, Y = D^-1/2 L'^-1 J' turns the Delassus matrix into Y' Y and
a velocity change into dz, with M^-1 J' lam = L^-1 D^-1/2 (Y lam). A row's velocity is c + Y' dz, c its velocity before
any impulse; dz collects the impulses of all rows. The sweep never touches L, D or J.

All that a contact's visits read lies in one array, slot first, so that a loop over slots copies one slice; slots fill
from the first, and loops skip the ones that no world of the block uses.

Two layouts of dz. *Dense*: (nv, N), and a row has nv columns. *By tree*, for scenes of many bodies: (trees + 1, N, w),
w the dofs of the largest tree, and a row has 2 w columns, those of the two trees it touches, which differ from world to
world; what it costs does not depend on how many bodies there are. The last tree stands for what no joint moves.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.contact.visit import inverse_block
from rsim_jax.lanes import windows
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.slots import scan_slots
from rsim_jax.lanes.tree import total
from rsim_jax.structs import record

# Columns of RowSystem.contact behind the 3 rows of Y.
C, TARGET, FRICTION, BLOCK, INVERSE, WIDTH = 0, 3, 4, 5, 11, 18
# Columns of RowSystem.angular behind the 3 rows of Y: c, inverse, rolling, spinning, block across and along z.
ANGULAR_INVERSE, ROLLING, SPINNING, ANGULAR_BLOCK, ANGULAR_WIDTH = 3, 10, 11, 12, 14


class RowSystem:
    """K contact rows (three components each, z along the normal) and S one-dimensional rows."""

    contact: jax.Array  # (K, 3 width + WIDTH, N): Y row by row, c, b, mu, block, its inverse; zero if unused
    angular: jax.Array  # (K, 3 width + ANGULAR_WIDTH, N) of rolling and spinning friction; (0, 0, N) without
    trees: jax.Array  # (K, 2, N) int32, the trees of A and B; dense: (K, 0, N)
    used: jax.Array  # () int32, slots that any world of the block uses
    scalar_y: jax.Array  # (S, width, N)
    scalar_c: jax.Array  # (S, N)
    scalar_target: jax.Array  # (S, N)
    scalar_block: jax.Array  # (S, N)
    scalar_softness: jax.Array  # (S, N) velocity that an impulse costs beyond the block; (0, N) where no row is soft
    low: jax.Array  # (S, N) bounds of the impulse
    high: jax.Array  # (S, N)
    tolerance: jax.Array  # () m/s
    tree_count: int = 0  # static; 0: dense
    scalar_trees: tuple[tuple[int, int], ...] = ()  # static; the two trees of every scalar row when not dense

    @property
    def slots(self) -> int:
        return self.contact.shape[0]

    @property
    def width(self) -> int:
        """Columns of a row."""
        return (self.contact.shape[1] - WIDTH) // 3

    @property
    def turning(self) -> bool:
        """Whether contacts resist rolling and spinning: their impulses then have three angular components more."""
        return self.angular.shape[0] > 0

    @property
    def components(self) -> int:
        """Of a contact's impulse."""
        return 6 if self.turning else 3

    @property
    def worlds(self) -> int:
        return self.contact.shape[-1]

    @property
    def soft(self) -> bool:
        """Whether any scalar row is soft."""
        return self.scalar_softness.shape[0] > 0

    def soften(self, velocity: jax.Array, impulse: jax.Array) -> jax.Array:
        """Scalar row velocities (S, N) plus softness times impulse: what the targets of soft rows are about."""
        return velocity + self.scalar_softness * impulse if self.soft else velocity

    @property
    def scalar_stiffness(self) -> jax.Array:
        """(S, N): velocity per impulse, softness included."""
        return self.scalar_block + self.scalar_softness if self.soft else self.scalar_block

    def column(self, start: int, width: int) -> jax.Array:
        """(K, width, N): columns behind Y."""
        first = 3 * self.width + start
        return self.contact[:, first : first + width]

    @property
    def c(self) -> jax.Array:
        return self.column(C, 3)

    @property
    def target(self) -> jax.Array:
        return self.column(TARGET, 1)[:, 0]

    @property
    def friction(self) -> jax.Array:
        return self.column(FRICTION, 1)[:, 0]

    @property
    def block(self) -> jax.Array:
        return self.column(BLOCK, 6)


RowSystem = record(RowSystem, static=("tree_count", "scalar_trees"))


class Impulses:
    """Impulses of all rows."""

    contact: jax.Array  # (K, 3 or 6, N): force, then torque where contacts resist turning
    scalar: jax.Array  # (S, N)


Impulses = record(Impulses)


def pack_contact(y: jax.Array, c: jax.Array, target: jax.Array, friction: jax.Array) -> jax.Array:
    """One slot of RowSystem.contact (3 nv + WIDTH, N) from Y (3, nv, N), c (3, N), b (N,), mu (N,)."""
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    block = stack([dot_rows(y[a], y[b]) for a, b in pairs])
    return concatenate([y.reshape(-1, y.shape[-1]), c, stack([target, friction]), block, inverse_block(block)])


def unpack_contact(row: jax.Array, width: int) -> tuple[jax.Array, ...]:
    """(Y as three (width, N), c (3, N), b, mu, block xx yy zz xy xz yz (6, N), inverse (7, N)) of one slot."""
    rest = row[3 * width :]
    y = [row[r * width : (r + 1) * width] for r in range(3)]
    return y, rest[C : C + 3], rest[TARGET], rest[FRICTION], rest[BLOCK:INVERSE], rest[INVERSE:WIDTH]


def pack_angular(y: jax.Array, c: jax.Array, rolling: jax.Array, spinning: jax.Array) -> jax.Array:
    """One slot of RowSystem.angular from Y (3, width, N), c (3, N) rad/s and the two lengths (N,), m."""
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    block = stack([dot_rows(y[a], y[b]) for a, b in pairs])
    rest = stack([rolling, spinning, block[0] + block[1], block[2]])
    return concatenate([y.reshape(-1, y.shape[-1]), c, inverse_block(block), rest])


def unpack_angular(row: jax.Array, width: int) -> tuple[jax.Array, ...]:
    """(Y as three (width, N), c (3, N), inverse (7, N), rolling, spinning (N,)) of one slot."""
    rest = row[3 * width :]
    y = [row[r * width : (r + 1) * width] for r in range(3)]
    return y, rest[C:ANGULAR_INVERSE], rest[ANGULAR_INVERSE:ROLLING], rest[ROLLING], rest[SPINNING]


def rows_of(system: RowSystem) -> tuple[jax.Array, ...]:
    """What a loop over slots reads: packed row, trees, and the angular row where there is one."""
    return (system.contact, system.trees, *((system.angular,) if system.turning else ()))


def dot_rows(y: jax.Array, z: jax.Array) -> jax.Array:
    """Sum over dofs of y (..., nv, N) z (nv, N)."""
    return total(y * z)


def no_change(system: RowSystem) -> jax.Array:
    """dz = 0 in the system's layout."""
    dtype = system.contact.dtype
    if system.tree_count:
        return jnp.zeros((system.tree_count + 1, system.worlds, system.width // 2), dtype)
    return jnp.zeros((system.width, system.worlds), dtype)


def by_world(system: RowSystem, x: jax.Array) -> jax.Array:
    """x (N,) shaped to multiply dz."""
    return x[:, None] if system.tree_count else x


def part(dz: jax.Array, trees: jax.Array) -> jax.Array:
    """The dofs (width, N) of dz that a contact row touches; `trees` (2, N), dense (0, N)."""
    if not trees.shape[0]:
        return dz
    return windows.read(dz, trees).swapaxes(0, 1).reshape(-1, trees.shape[-1])


def with_part(dz: jax.Array, trees: jax.Array, new: jax.Array) -> jax.Array:
    """dz with what `part` read replaced."""
    if not trees.shape[0]:
        return new
    for block, tree in zip(new.reshape(2, -1, new.shape[-1]), trees, strict=True):
        dz = windows.write(dz, tree, block)
    return dz


def scalar_part(dz: jax.Array, trees: jax.Array | tuple[int, int] | None) -> jax.Array:
    """The dofs (width, N) of dz that a one-dimensional row touches; the same trees in all worlds, None when dense."""
    if trees is None:
        return dz
    return jnp.concatenate([lax.dynamic_index_in_dim(dz, tree, keepdims=False).T for tree in trees])


def with_scalar_part(dz: jax.Array, trees: jax.Array | tuple[int, int] | None, new: jax.Array) -> jax.Array:
    """dz with what `scalar_part` read replaced."""
    if trees is None:
        return new
    for block, tree in zip(new.reshape(2, -1, new.shape[-1]), trees, strict=True):
        dz = lax.dynamic_update_index_in_dim(dz, block.T, tree, 0)
    return dz


def velocity_change(system: RowSystem, impulses: Impulses) -> jax.Array:
    """dz = sum of Y lam over all rows."""
    dz = no_change(system)
    for s in range(system.scalar_y.shape[0]):
        trees = system.scalar_trees[s] if system.tree_count else None
        moved = scalar_part(dz, trees) + system.scalar_y[s] * impulses.scalar[s]
        dz = with_scalar_part(dz, trees, moved)

    def add(dz: jax.Array, slot: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        (row, trees, *angular), lam = slot
        y, *_ = unpack_contact(row, system.width)
        moved = part(dz, trees) + y[0] * lam[0] + y[1] * lam[1] + y[2] * lam[2]
        if angular:
            y, *_ = unpack_angular(angular[0], system.width)
            moved = fence(moved) + y[0] * lam[3] + y[1] * lam[4] + y[2] * lam[5]
        return with_part(dz, trees, moved), None

    return scan_slots(system.used, add, fence(dz), (rows_of(system), impulses.contact))[0]


def velocities(system: RowSystem, dz: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Row velocities after dz: contact (K, 3 or 6, N), zero in unused slots; scalar (S, N)."""

    def row_velocity(carry: None, slot: tuple[jax.Array, jax.Array]) -> tuple[None, jax.Array]:
        row, trees, *angular = slot
        here = part(dz, trees)
        unpacked = [unpack_contact(row, system.width)[:2], *(unpack_angular(x, system.width)[:2] for x in angular)]
        return carry, stack([dot_rows(y[r], here) + c[r] for y, c in unpacked for r in range(3)])

    contact = scan_slots(system.used, row_velocity, None, rows_of(system))[1]
    return contact, fence(_scalar_changes(system, dz) + system.scalar_c)


def _scalar_changes(system: RowSystem, dz: jax.Array) -> jax.Array:
    """Y' dz of the one-dimensional rows (S, N)."""
    if not system.tree_count or not system.scalar_trees:
        return dot_rows(system.scalar_y, dz) if not system.tree_count else system.scalar_c[:0]
    trees = jnp.asarray(system.scalar_trees, jnp.int32)
    here = jnp.moveaxis(dz[trees], -1, 2)  # (S, 2, w, N)
    return dot_rows(system.scalar_y, here.reshape(system.scalar_y.shape))
