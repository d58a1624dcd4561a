"""How many contact rows a world gets when Options.max_contacts is None."""

from __future__ import annotations

from collections.abc import Sequence

from rsim_jax.collision.pair_table import FAMILIES, family_index
from rsim_jax.modeling.candidates import Pair

# A tree of links lies on a few of its candidates at a time, whatever their number: a box on four corners, a fallen
# walking robot on six to eight. Links that may touch each other add a few. The figures bound the 99.99 % quantile of
# gymnasium's ant, hopper, half_cheetah, walker2d and humanoid under random controls, counting near misses.
_PER_SCENE, _PER_TREE, _CANDIDATES_PER_ROW = 2, 6, 16


def default_max_contacts(geom_type: Sequence[int], pairs: Sequence[Pair], trees: int) -> int:
    """Rows that random controls exceed in fewer than one of 10,000 steps; never more than there are candidates.

    Args:
        geom_type: of every geom.
        pairs: that may touch.
        trees: links whose parent is the world or a kinematic body.
    """
    count = sum(FAMILIES[family_index(geom_type[p.a], geom_type[p.b])].points for p in pairs)
    return min(count, _PER_SCENE + _PER_TREE * trees + count // _CANDIDATES_PER_ROW)
