"""Administration tools in a run: moves, elections and migrations, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from kafka08.admin.client import AdminClient
from kafka08.errors import KafkaError
from kafka08.migration import OffsetMigration
from kafka08.simulation.cluster import Hosts
from kafka08.simulation.members import GROUP
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import TOPIC
from kafka08.simulation.zookeeper import ADDRESS

TOOLS_MAX: Final = 4
"""The most tools at a time: each that waits for members asks ZooKeeper 20 times a second."""
MIGRATIONS: Final = (
    ("start",),
    ("start", "verify", "finish"),
    ("verify",),
    ("finish",),
    ("rollback",),
    ("start", "rollback"),
    ("start", "verify", "finish", "rollback"),
)
"""The steps of which one fault makes one series."""


class Tools:
    """Starts tools. Each method returns what the tool does, or None if it was not started because
    many are running. A tool may fail: faults go on meanwhile.

    broker_ids  the brokers to which partitions move
    say         called with the error of a tool that failed
    """

    def __init__(
        self, hosts: Hosts, broker_ids: Sequence[int], say: Callable[[str], object]
    ) -> None:
        self._hosts = hosts
        self._broker_ids = broker_ids
        self._say = say
        self._started = 0
        self.running: list[str] = []
        """The processes that have not ended."""

    def move_partitions(self, _random: Random) -> str | None:
        def move(admin: AdminClient) -> None:
            admin.move_partitions(admin.plan_moves([TOPIC], self._broker_ids))

        return self._administer("partitions are moved", move)

    def elect_preferred(self, _random: Random) -> str | None:
        return self._administer(
            "preferred replicas are elected", lambda admin: admin.elect_preferred()
        )

    def migrate(self, random: Random) -> str | None:
        """Some steps, whether or not they are the next ones: a tool may be misused, or used
        again."""
        steps = random.choice(MIGRATIONS)

        def migrate(runtime: SimClientRuntime) -> None:
            with OffsetMigration(ADDRESS, GROUP, runtime=runtime) as migration:
                for step in steps:
                    getattr(migration, step)()

        return self._run(f"a migration of the group: {', '.join(steps)}", migrate)

    def _administer(self, what: str, call: Callable[[AdminClient], object]) -> str | None:
        def administer(runtime: SimClientRuntime) -> None:
            with AdminClient(ADDRESS, runtime=runtime) as admin:
                call(admin)

        return self._run(what, administer)

    def _run(self, what: str, call: Callable[[SimClientRuntime], object]) -> str | None:
        if len(self.running) >= TOOLS_MAX:
            return None
        self._started += 1
        runtime = self._hosts.client(f"admin-{self._started}")
        name = runtime.process.name
        self.running.append(name)

        def run() -> None:
            try:
                call(runtime)
            except KafkaError as error:
                self._say(f"{name}: {error}")
            self.running.remove(name)
            runtime.process.die()

        runtime.spawn(run, name="main")
        return what
