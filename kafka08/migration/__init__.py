"""Moving a group's committed offsets from ZooKeeper to the offsets topic, and back.

`plan` decides (pure), `facts` reads, `journal` remembers, `offset_migration` carries out. Start
with `offset_migration`.
"""

from __future__ import annotations

from kafka08.migration.journal import State
from kafka08.migration.offset_migration import OffsetMigration, Verification
from kafka08.migration.plan import Action, GroupFacts, PartitionFacts, Plan, Rollback, Step

__all__ = [
    "Action",
    "GroupFacts",
    "OffsetMigration",
    "PartitionFacts",
    "Plan",
    "Rollback",
    "State",
    "Step",
    "Verification",
]
