"""How many contact rows a world gets when Options.max_contacts is None."""

from __future__ import annotations

import mujoco
import numpy as np

from rsim_jax.collision.pair_table import FAMILIES, family_index
from rsim_jax.modeling.candidates import Pairs
from rsim_jax.modeling.links import LinkTree

# A tree of links lies on a few of its candidates at a time, whatever their number: a box on four corners, a fallen
# walking robot on six to eight. Links that may touch each other add a few. The figures bound the 99.99 % quantile of
# gymnasium's ant, hopper, half_cheetah, walker2d and humanoid under random controls, counting near misses.
_PER_SCENE, _PER_TREE, _CANDIDATES_PER_ROW = 2, 6, 16


def default_max_contacts(compiled: mujoco.MjModel, tree: LinkTree, pairs: Pairs, manifold_points: int) -> int:
    """Rows that random controls exceed in fewer than one of 10,000 steps; never more than there are candidates."""
    types = compiled.geom_type[pairs.geoms].tolist()
    count = sum(FAMILIES[family_index(*shapes)].count(manifold_points) for shapes in types)
    trees = sum(parent >= compiled.njnt for parent in tree.joint_parent)
    links = np.unique(np.asarray(tree.body_link)[compiled.geom_bodyid[pairs.geoms]]).size
    return min(count, _PER_SCENE + _PER_TREE * trees + min(count // _CANDIDATES_PER_ROW, links))
