"""Moving groups' committed offsets between ZooKeeper and the offsets topic.

`plan`, `rollback`, `sampling`, `members` and `status` decide on the facts of a group (pure);
`journal` remembers and gives orders, `offset_migration` carries out one group's steps, `fleet` many
groups', `mirror` commits for members that cannot. Start with `offset_migration`.
"""

from __future__ import annotations

from kafka08.admin.group_facts import GroupFacts
from kafka08.migration.handover import Handover
from kafka08.migration.journal import State
from kafka08.migration.offset_migration import OffsetMigration
from kafka08.migration.plan import Action, Plan, Step
from kafka08.migration.rollback import Rollback
from kafka08.migration.status import Status
from kafka08.migration.verification import Verification, Watching
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member

__all__ = [
    "Action",
    "GroupFacts",
    "Handover",
    "Member",
    "OffsetMigration",
    "PartitionFacts",
    "Plan",
    "Rollback",
    "State",
    "Status",
    "Step",
    "Verification",
    "Watching",
]
