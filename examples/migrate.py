"""Move a group's offsets from ZooKeeper to Kafka, and say at each step what is true.

Any step may be interrupted and run again; `migration.rollback()` undoes it from wherever it is.

usage: migrate.py GROUP
"""

from __future__ import annotations

import argparse
import os
import sys

from kafka08.errors import KafkaError
from kafka08.migration import OffsetMigration


def main() -> int:
    """Exit code 1 if the group cannot be moved; it is as before then."""
    parser = argparse.ArgumentParser()
    parser.add_argument("group")
    group = parser.parse_args().group
    with OffsetMigration(
        zookeeper=os.environ.get("KAFKA08_ZOOKEEPER", "localhost:2181"), group=group
    ) as migration:
        plan = migration.plan()
        for step in plan.steps:
            print(step.facts.topic_partition, step.action.value, step.offset)
        if not plan.is_allowed:
            print("not moved:", *plan.refusals, sep="\n  ", file=sys.stderr)
            return 1
        migration.start()
        verification = migration.verify()
        if not verification.is_verified:
            print("the stores disagree:", *verification.problems, sep="\n  ", file=sys.stderr)
            migration.rollback()
            return 1
        migration.finish()
        print(f"{group} is in Kafka; start its members with offsets.storage=kafka")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KafkaError as error:
        sys.exit(f"Error: {error}")
