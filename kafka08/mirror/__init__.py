"""Copies topics of one cluster to another.

`Mirror` copies continuously, like MirrorMaker, as a member of a group at the source and a producer
at the target: start with mirror.py. `copying` is the loop of one of its threads; `outcome` and
`settings` decide, and are pure.

`Move` copies each message once, in transactions: start with move.py. `exact_copy` is its loop,
`sources` reads, `switching` sets the offsets of groups at the target, `comparing` compares;
`offset_map` and `move_plan` decide, and are pure.

Not to be confused with kafka08.migration.mirror, which copies offsets of groups within a cluster.
"""

from __future__ import annotations

from kafka08.mirror.mirror import Mirror
from kafka08.mirror.outcome import MirrorFailed
from kafka08.mirror.settings import MirrorSettings, OnFailure
from kafka08.mirror.stats import MirrorCounts

__all__ = ["Mirror", "MirrorCounts", "MirrorFailed", "MirrorSettings", "OnFailure"]
