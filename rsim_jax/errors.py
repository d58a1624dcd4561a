"""What can go wrong, and how a user hears of it.

Before the first step a bad model raises `ModelError`. Inside compiled code nothing raises: every world carries
`Status` bits, sticky until the world is reset, and `explain` turns them into sentences.
"""

from __future__ import annotations

import enum

import numpy as np


class ModelError(ValueError):
    """A model, scene or parameter that cannot be simulated.

    The message names the file, the element, the offending value and the remedy. Several faults of one file are
    reported together, one line each.
    """


class Status(enum.IntFlag):
    """Bits of `State.status`, one int32 per world; 0 means healthy."""

    CONTACT_OVERFLOW = 1
    SOLVER_NOT_CONVERGED = 2
    NOT_FINITE = 4


_SENTENCES = {
    Status.CONTACT_OVERFLOW: "more contacts than Options.max_contacts; the shallowest were ignored: raise max_contacts",
    Status.SOLVER_NOT_CONVERGED: "a contact residual stayed above max(tolerance, 1e-3 m/s): raise Options.sweeps",
    Status.NOT_FINITE: "the state stopped being finite and is frozen at its last finite value: reset this world",
}


def explain(status: object) -> str:
    """Sentences for the bits of `status`, an int or an array of int32 (one value per world).

    For an array the text counts the affected worlds and names the first few.
    """
    values = np.atleast_1d(np.asarray(status)).astype(np.int64)
    lines = []
    for bit, sentence in _SENTENCES.items():
        worlds = np.flatnonzero(values & int(bit))
        if worlds.size == 0:
            continue
        if values.size == 1:
            lines.append(f"{bit.name}: {sentence}")
        else:
            shown = ", ".join(str(w) for w in worlds[:8]) + (", ..." if worlds.size > 8 else "")
            lines.append(f"{bit.name} in {worlds.size} of {values.size} worlds ({shown}): {sentence}")
    return "\n".join(lines) if lines else "healthy"
