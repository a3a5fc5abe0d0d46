"""Administration tools in a run: moves, elections, migrations, changes of topics and of overrides,
and what strangers leave in ZooKeeper, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from kafka08.admin.client import AdminClient
from kafka08.errors import KafkaError
from kafka08.migration import OffsetMigration
from kafka08.producer.old.config import ProducerConfig
from kafka08.producer.old.producer import Producer
from kafka08.producer.record import KeyedMessage
from kafka08.simulation.cluster import BROKER_PORT, Hosts, host_of
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.strangers import strange_znode
from kafka08.simulation.workload import TOPIC
from kafka08.simulation.zookeeper import ADDRESS
from kafka08.simulation.zookeeper_group_history import GROUP
from kafka08.zk.client import ZkClient

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
SIDE_TOPICS: Final = ("side-0", "side-1", "s" * 249, "s" * 255)
"""Topics that change, which no client reads. The longest name leaves no room for the number of a
partition in the name of its log's directory: there is no such log."""
OVERRIDES: Final[Sequence[Mapping[str, int]]] = (
    {"max.message.bytes": 2000},
    {"segment.bytes": 500},
    {"segment.index.bytes": 64},
    {"segment.ms": 1000},
    {"index.interval.bytes": 0},
    {"flush.messages": 1},
    {},
)
"""Overrides of a topic, most of them lower than its limits; {}: none any more."""
TOPIC_CHANGES: Final = (
    ("create", "write"),
    ("create", "write", "delete"),
    ("extend", "write"),
    ("write", "delete"),
    ("delete",),
    ("delete", "extend"),
    ("delete", "create", "write"),
)
"""As MIGRATIONS."""
SIDE_MESSAGES: Final = 10


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

    def change_topic(self, random: Random) -> str | None:
        """Some steps, each whether or not the one before succeeded."""
        topic, steps = random.choice(SIDE_TOPICS), random.choice(TOPIC_CHANGES)
        partitions = random.randint(1, 3)
        replication_factor = random.randint(1, len(self._broker_ids))

        def change(runtime: SimClientRuntime) -> None:
            with AdminClient(ADDRESS, runtime=runtime) as admin:
                do: dict[str, Callable[[], object]] = {
                    "create": lambda: admin.create_topic(topic, partitions, replication_factor),
                    "extend": lambda: admin.alter_topic(topic, partitions=partitions + 1),
                    "write": lambda: self._write(topic, runtime),
                    "delete": lambda: admin.delete_topic(topic),
                }
                for step in steps:
                    try:
                        do[step]()
                    except KafkaError as error:
                        self._say(f"{runtime.process.name}, {step} {topic}: {error}")

        return self._run(f"{topic}: {', '.join(steps)}", change)

    def configure_topic(self, random: Random) -> str | None:
        """Change the overrides of the clients' topic or of another one."""
        topic, overrides = random.choice((TOPIC, *SIDE_TOPICS)), random.choice(OVERRIDES)
        unset = [] if overrides else [key for other in OVERRIDES for key in other]

        def configure(admin: AdminClient) -> None:
            admin.alter_topic(topic, config=overrides, delete_config=unset)

        return self._administer(f"overrides of {topic}: {dict(overrides)}", configure)

    def leave_znode(self, random: Random) -> str | None:
        """Create a znode of a stranger, unless it exists."""
        left = strange_znode(random)

        def leave(runtime: SimClientRuntime) -> None:
            with ZkClient(ADDRESS, adapter=runtime.zookeeper, clock=runtime) as zk:
                zk.create(left.path, left.data)

        return self._run(f"a stranger leaves {left.path}: {left.data!r}", leave)

    def _write(self, topic: str, runtime: SimClientRuntime) -> None:
        """Write some messages to any of its partitions."""
        addresses = [f"{host_of(broker_id)}:{BROKER_PORT}" for broker_id in self._broker_ids]
        config = ProducerConfig(
            {"metadata.broker.list": ",".join(addresses), "request.required.acks": 1}
        )
        with Producer(config, runtime=runtime) as producer:
            for number in range(SIDE_MESSAGES):
                producer.send(KeyedMessage(topic, b"%d" % number))

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
