"""Planted defects: each has a small patch, what the verdict of a run must contain, and the faults
and a seed whose short run finds it.

Historic defects name their issue; "ours" are defects of this project that were fixed. A patch
reverts the fix, or breaks the rule as the defect did. The tests make the short runs.
`scripts/simulate --planted` searches for all defects in the runs that seeds draw; it skips seeds
whose plans cannot show the defect: they lack the faults or the settings that it needs. Each subject
has a module. Start with `defect.py`.
"""

from __future__ import annotations

from tests.simulation.planted import (
    consumers,
    controller,
    disk,
    habits,
    kept,
    limits,
    mirrors,
    producers,
    records,
    replication,
    transactions,
)
from tests.simulation.planted.defect import PLANTED, Planted

__all__ = [
    "PLANTED",
    "Planted",
    "consumers",
    "controller",
    "disk",
    "habits",
    "kept",
    "limits",
    "mirrors",
    "producers",
    "records",
    "replication",
    "transactions",
]
