"""`python -m rsim_jax` is `rsim`."""

from __future__ import annotations

import sys

from rsim_jax.cli.main import main

sys.exit(main())
