"""One step of a migration as a process of its own that kills itself (-9) at its n-th write.

    python -m tests.migration.killed_tool ZOOKEEPER GROUP STEP N

A write is anything that goes to ZooKeeper or to the offsets topic. It dies before the write if N is
odd, after it if N is even. Exits 0 when the step was done in fewer writes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from kafka08.migration import OffsetMigration, Watching
from tests.migration.killing import at_each_write

WATCHING = Watching(seconds=1.0, interval_ms=900, period_s=0.1)
STEPS: dict[str, Callable[[OffsetMigration], object]] = {
    "start": OffsetMigration.start,
    "verify": lambda migration: migration.verify(WATCHING),
    "finish": lambda migration: migration.finish(WATCHING),
    "rollback": OffsetMigration.rollback,
}


def main(zookeeper: str, group: str, step: str, number: str) -> None:
    kill_at = int(number)
    moments = 0

    def pass_a_moment() -> None:
        nonlocal moments
        moments += 1
        if moments == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with OffsetMigration(zookeeper, group, confirmation_timeout_s=20) as migration:
        at_each_write(pass_a_moment)
        STEPS[step](migration)


if __name__ == "__main__":
    main(*sys.argv[1:])
