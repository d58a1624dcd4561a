"""Two boxes: separating axes, closest features, and the overlap of their faces.

The difference of two boxes is a polytope spanned by their six edge directions. Its 30 facets have the 15 directions
of separating axes as normals: a face of one box against a corner of the other (6), an edge against an edge (9).
Overlapping boxes part along the axis of least depth. Boxes that are apart have their closest points on one of the
facets: a corner against a face, or two edges, both closed forms. All candidates are points of the boxes, so none of
the distances is too short, and the shortest is exact.

When the contact is a face's (within SNAP, since an edge's axis that is nearly a face's normal would trade the face's
whole patch for one point), the faces' overlap gives the contacts; otherwise there is one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.collision.box import to_box
from rsim_jax.collision.extremes import largest, turned
from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.patches import Rectangle, parallelogram_patch
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.vectors import cross, dot

SNAP = 0.02  # sine: directions closer to a face's normal than this are the face's
TIE = 64  # resolutions of the boxes' size within which a face is preferred to an edge, and the first box's to the other
TOUCHING = 1000  # resolutions of the size below which a direction between closest points is rounding


def box_box(
    centre1: jax.Array,
    columns1: jax.Array,
    half1: jax.Array,
    centre2: jax.Array,
    columns2: jax.Array,
    half2: jax.Array,
    slots: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Midpoints of witness points (3, P, slots, N), normals from the first box (3, P, slots, N), distances.

    Args:
        centre1, centre2: (3, P, N) m; columns1, columns2: (axis, 3, P, N) unit.
        half1, half2: (3, P, W) m.
        slots: contacts of a face, 4 to 8.
    """
    worlds = centre1.shape[-1]
    half1, half2 = (jnp.broadcast_to(h, (*h.shape[:-1], worlds)) for h in (half1, half2))
    d = fence(centre2 - centre1)
    turn = stack([to_box(columns2, columns1[i]) for i in range(3)])  # (axis of 1, axis of 2, P, N)
    t, back = to_box(columns1, d), to_box(columns2, d)
    size = fence(half1[0] + half1[1] + half1[2] + half2[0] + half2[1] + half2[2])

    # the same formulas for the faces of either box: as pairs (1, 2), then (2, 1)
    turns = concatenate([turn, jnp.swapaxes(turn, 0, 1)], axis=2)
    ts = concatenate([t, -back], axis=1)
    halves, others = concatenate([half1, half2], axis=1), concatenate([half2, half1], axis=1)
    faces = _faces(turns, ts, halves, others)
    edges = _edges(turn, t, half1, half2)
    normal, x, y, gap, is_face, on_second, face = _closest(turn, t, size, faces, edges)

    which = on_second[None]
    ref_turn = fence(jnp.where(which[None], jnp.swapaxes(turn, 0, 1), turn))
    ref_t, ref_half, ref_other = (
        fence(jnp.where(which, b, a)) for a, b in ((t, -back), (half1, half2), (half2, half1))
    )
    ref_columns, ref_centre = fence((jnp.where(which[None], columns2, columns1), jnp.where(which, centre2, centre1)))
    place, gaps, axes, height = _face_patch(ref_turn, ref_t, ref_half, ref_other, ref_columns, face, slots)
    least = gaps[0]
    for k in range(1, slots):
        least = jnp.minimum(least, gaps[k])
    tie = TIE * jnp.finfo(t.dtype).eps * size
    # parallel faces: the facets that the closest features need may be missing, and the patch tells the distance
    use = fence((is_face & (least <= gap + SNAP * SNAP * size)) | ((gap > 0) & (least <= gap + tie)))

    single = 0.5 * (x + y)
    single = centre1 + columns1[0] * single[0] + columns1[1] * single[1] + columns1[2] * single[2]
    across = normal[0] * columns1[0] + normal[1] * columns1[1] + normal[2] * columns1[2]
    single, across = fence((single, across))
    flat = ref_centre + axes[2] * height
    points = [flat + axes[0] * place[0, k] + axes[1] * place[1, k] + axes[2] * (0.5 * gaps[k]) for k in range(slots)]
    alone = [gap] + [jnp.full_like(gap, FAR)] * (slots - 1)
    points = stack([jnp.where(use, p, single) for p in points], axis=-2)
    distance = stack([jnp.where(use, g, a) for g, a in zip(gaps, alone, strict=True)], axis=-2)
    normal = fence(jnp.where(use, jnp.where(on_second, -axes[2], axes[2]), across))
    return points, jnp.broadcast_to(normal[:, :, None], points.shape), distance


def _sign(x: jax.Array) -> jax.Array:
    return jnp.where(x >= 0, jnp.ones_like(x), -1)


def _faces(turn: jax.Array, t: jax.Array, half: jax.Array, other: jax.Array) -> tuple[jax.Array, ...]:
    """Of the three faces towards the other box: separations (3, P, N), nearest corners and the points below (3, 3)."""
    side = _sign(t)
    separation = jnp.abs(t) - half - sum(jnp.abs(turn[:, j]) * other[j] for j in range(3))
    corner_side = _sign(side[:, None] * turn) * other  # (face, axis of the other)
    corner = stack([t[c] - sum(corner_side[:, j] * turn[c, j] for j in range(3)) for c in range(3)])
    below = jnp.clip(corner, -half[:, None], half[:, None])
    return fence(separation), corner, fence(below)


def _edges(turn: jax.Array, t: jax.Array, half1: jax.Array, half2: jax.Array) -> tuple[jax.Array, ...]:
    """Of the nine pairs of edge directions (i, j), in the frame of the first box.

    Returns:
        separation (9, P, N), distance (9, P, N), unit normal, points on either edge (3, 9, P, N) each.
    """
    same = np.eye(3, dtype=t.dtype)[:, :, None, None, None]  # (c, i): the first box's own axes
    other = np.eye(3, dtype=t.dtype)[:, None, :, None, None]  # (m, j)
    b = turn[:, None]  # (c, 1, j)
    raw = cross(jnp.broadcast_to(jnp.asarray(same, t.dtype), (3, 3, 3, 1, 1)), b)  # exactly square to axis i
    squared = fence(dot(raw, raw))
    skew = squared > jnp.square(4 * jnp.finfo(t.dtype).eps)
    inverse = jnp.where(skew, 1 / jnp.where(skew, squared, 1), 0)
    root = jnp.sqrt(inverse)
    inverse, root = stack([inverse, root])
    d = t[:, None, None]
    normal = fence(raw * (_sign(dot(raw, d)) * root))
    of_b = stack([dot(normal, turn[:, m][:, None, None]) for m in range(3)])
    h1, h2 = half1[:, None, None], half2[:, None, None]
    separation = dot(normal, d) - dot(jnp.abs(normal), h1) - dot(jnp.abs(of_b), h2)
    separation = jnp.where(skew, separation, -FAR)
    middle1 = fence(jnp.where(same > 0, 0, _sign(normal) * h1))
    sides = jnp.where(other > 0, 0, _sign(of_b) * h2)
    w = stack([d[c] - dot(sides, turn[c][:, None, None]) - middle1[c] for c in range(3)])

    # closest points of the edges, as for two segments
    cosine, d1, d2, line = stack([turn, dot(w, same), dot(w, b), dot(cross(w, jnp.broadcast_to(b, w.shape)), raw)])
    reach1, reach2 = dot(same, h1), dot(other, h2)
    s = jnp.clip(line * inverse, -reach1, reach1)
    u = fence(jnp.clip(cosine * s - d2, -reach2, reach2))
    s = fence(jnp.clip(cosine * u + d1, -reach1, reach1))
    x = fence(middle1 + s * same)
    y = fence(w + middle1 + u * b)
    gap = y - x
    squared = dot(gap, gap)
    positive = squared > 0
    distance = jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1)), 0)
    return tuple(_nine(v) for v in (separation, distance, normal, x, y))


def _nine(x: jax.Array) -> jax.Array:
    """(..., 3, 3, P, N) -> (..., 9, P, N)."""
    return x.reshape(*x.shape[:-4], 9, *x.shape[-2:])


def _closest(
    turn: jax.Array, t: jax.Array, size: jax.Array, faces: tuple[jax.Array, ...], edges: tuple[jax.Array, ...]
) -> tuple[jax.Array, ...]:
    """The one pair of closest (or deepest) points, and the face to try for a patch; all in the first box's frame.

    Returns:
        normal, x on the first and y on the second box (3, P, N), gap (P, N), whether the normal is that of the best
        face (P, N), whether that face is the second box's (P, N), and the face's axis (3, P, N), 1 on its own.
    """
    tie = TIE * jnp.finfo(t.dtype).eps * size
    separation, corner, below = faces
    pairs = t.shape[1]
    miss = fence(corner - below)
    reach = _length(miss)
    face_best, axis = largest(separation, np.eye(3, dtype=t.dtype)[:, :, None, None])
    edge_best = largest(edges[0])[0]
    on_second = face_best[pairs:] > face_best[:pairs] + tie
    face_gap = jnp.where(on_second, face_best[pairs:], face_best[:pairs])
    highest = jnp.maximum(face_gap, edge_best)
    apart = fence(highest > TOUCHING * jnp.finfo(t.dtype).eps * size)
    twice = jnp.concatenate([apart, apart])

    near, corner, below = largest(jnp.where(twice, -reach, separation), corner, below)
    second = jnp.where(apart, near[pairs:] > near[:pairs] + tie, on_second)
    near = jnp.where(second, near[pairs:], near[:pairs])
    place = lambda p: stack([t[c] + dot(turn[c], p) for c in range(3)])  # noqa: E731 frame of the second to the first
    x = jnp.where(second, place(corner[:, pairs:]), below[:, :pairs])
    y = jnp.where(second, place(below[:, pairs:]), corner[:, :pairs])
    outward = fence(axis * _sign(jnp.concatenate([t, -stack([dot(turn[:, j], t) for j in range(3)])], axis=1)))
    outward = jnp.where(on_second, -stack([dot(turn[c], outward[:, pairs:]) for c in range(3)]), outward[:, :pairs])

    edge_near, normal, x_edge, y_edge = largest(jnp.where(apart, -edges[1], edges[0]), *edges[2:])
    use_edge = fence(edge_near > near + tie)
    normal, x, y = fence(tuple(jnp.where(use_edge, v, w) for v, w in ((normal, outward), (x_edge, x), (y_edge, y))))
    between = fence(y - x)
    distance = _length(between)
    safe = apart & (distance > 0)
    normal = fence(jnp.where(safe, between / jnp.where(safe, distance, 1), normal))
    gap = fence(jnp.where(apart, distance, highest))
    lean = cross(normal, outward)
    is_face = (dot(normal, outward) > 0) & (dot(lean, lean) < SNAP * SNAP)
    face = fence(jnp.where(on_second, axis[:, pairs:], axis[:, :pairs]))
    return normal, x, y, gap, is_face, on_second, face


def _length(v: jax.Array) -> jax.Array:
    squared = dot(v, v)
    positive = squared > 0
    return fence(jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1)), 0))


def _face_patch(
    turn: jax.Array, t: jax.Array, half: jax.Array, other: jax.Array, columns: jax.Array, face: jax.Array, slots: int
) -> tuple[jax.Array, ...]:
    """The overlap of one box's face with the face of the other that is nearest to parallel.

    Returns:
        places (2, slots, P, N), gaps (slots, P, N), the plane's two axes and its outward normal in world axes
        (3, 3, P, N), and its distance from the box's centre (P, N).
    """
    turn = stack([turned(turn[:, j], face) for j in range(3)])  # (axis of the other, component)
    t, half, columns = turned(t, face), turned(half, face), turned(columns, face[:, None])
    side = _sign(t[2])
    up = jnp.abs(turn[:, 2])
    _, facing = largest(up, np.eye(3, dtype=t.dtype)[:, :, None, None])
    turn, other = turned(turn, facing[:, None]), turned(other, facing)
    u, v = turn[0] * other[0], turn[1] * other[1]
    centre = t - turn[2] * (_sign(turn[2, 2] * side) * other[2])
    centre, u, v = ([w[0], w[1], w[2] * side] for w in (centre, u, v))
    centre[2] = centre[2] - half[2]
    place, gap = parallelogram_patch(Rectangle(half[:2]), stack(centre), stack(u), stack(v), slots)
    return place, gap, stack([columns[0], columns[1], columns[2] * side]), half[2]
