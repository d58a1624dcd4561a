"""How many contact rows a world gets when Options.max_contacts is None."""

from __future__ import annotations

from collections.abc import Sequence

from rsim_jax.collision.pair_table import FAMILIES, family_index
from rsim_jax.modeling.candidates import Pair

_ALWAYS = 8  # up to this many candidates, every one has its row


def default_max_contacts(geom_type: Sequence[int], pairs: Sequence[Pair]) -> int:
    """Rows enough that random controls overflow in fewer than one of 10,000 steps of the usual robots.

    Few candidates touch at once: all of them up to 8, half of the rest up to 16 more, and a twentieth beyond that.
    """
    count = sum(FAMILIES[family_index(geom_type[p.a], geom_type[p.b])].points for p in pairs)
    beyond = max(0, count - _ALWAYS)
    return min(count, _ALWAYS) + min(beyond, 32) // 4 + max(0, beyond - 32) // 20
