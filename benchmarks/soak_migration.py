"""Migrates groups under load there and back, round after round, while members and brokers die.

Members are ours, the JVM's, or both; those of the JVM are restarted before each step with the
properties that it asks for. Several groups migrate at a time. Before a migration Kafka may have an
offset of an earlier life of the group, and a member with a coordinator, beside which no step may
begin. A step may be made by two tools, of which one is suspended in the middle. A checker
(tests/histories/offsets.py) shows at the end of each round what was skipped, read twice, or went
back. On brokers of 0.8.2.2 it tells apart what is known of them: offsets that vanish while a
coordinator loads, and older ones that a load has put over newer ones. Exits 1 if anything else was
seen.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.soak import Outcome, announced, soak, soak_parser
from kafka08.admin import AdminClient
from kafka08.admin.connections import Connections
from kafka08.client.log_offsets import log_ends
from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import KafkaError, MigrationError
from kafka08.migration import OffsetMigration, Watching
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage
from tests.histories.offsets import OffsetHistory
from tests.interop.jvm import JvmKafka
from tests.interop.jvm_member import jvm_member
from tests.migration.live_group import (
    ROOT,
    Load,
    MemberProcess,
    our_member,
    watched_stores,
)
from tests.waiting import until

PARTITIONS: Final = 4
RATE: Final = 200
CONFIG: Final = {
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "zookeeper.session.timeout.ms": "3000",
    "controlled.shutdown.enable": "false",
}
WATCHING: Final = Watching(seconds=4.0, interval_ms=2000, period_s=0.2)
STEP_TIMEOUT_S: Final = 120.0
NEVER: Final = str(10**9)
"""The write at which a tool kills itself."""
MEMBERS: Final[dict[str, Sequence[Callable[..., list[str]]]]] = {
    "ours": (our_member, our_member),
    "jvm": (jvm_member, jvm_member),
    "both": (our_member, jvm_member),
}


class Killable(Protocol):
    def kill(self) -> None: ...

    def start(self) -> None: ...


@contextmanager
def cluster_of(kind: str, level: str) -> Iterator[tuple[str, str, Sequence[Killable]]]:
    """(ZooKeeper, bootstrap, three brokers)."""
    with ExitStack() as stack:
        if kind == "jvm":
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            kafka = stack.enter_context(JvmKafka(Path(directory), CONFIG, brokers=3))
            yield kafka.zookeeper, kafka.bootstrap, kafka.brokers
        else:
            cluster = stack.enter_context(EmbeddedCluster(brokers=3, level=level, config=CONFIG))
            yield cluster.zookeeper.connect_string, cluster.bootstrap, list(cluster.brokers)


@dataclass(slots=True)
class Seat:
    """A place in the group, for one member after the other."""

    program: Callable[..., list[str]]
    member: MemberProcess

    @property
    def is_ours(self) -> bool:
        return self.program is our_member


class Fleet:
    """The brokers, of which one at a time is away, and all groups' partitions have three replicas
    in sync before it."""

    def __init__(self, zookeeper: str, bootstrap: str, brokers: Sequence[Killable]) -> None:
        self.zookeeper = zookeeper
        self.bootstrap = bootstrap
        self._brokers = brokers
        self._lock = threading.Lock()

    def kill_one(self, rng: random.Random, connections: Connections) -> None:
        with self._lock:
            store = connections.store
            partitions = [
                TopicPartition(topic, number)
                for topic, numbers in store.assignments().items()
                for number in numbers
            ]
            until(
                lambda: all(len(s.isr) == 3 for s in store.leader_and_isr(partitions).values()),
                "three replicas in sync",
                STEP_TIMEOUT_S,
            )
            broker = rng.choice(self._brokers)
            broker.kill()
            broker.start()


class Round:
    """One group, one topic, one way there and back.

    coordinates   brokers may know members: from 0.9 on
    """

    def __init__(
        self,
        name: str,
        fleet: Fleet,
        programs: Sequence[Callable[..., list[str]]],
        rng: random.Random,
        *,
        coordinates: bool,
    ) -> None:
        zookeeper, bootstrap = fleet.zookeeper, fleet.bootstrap
        self.group = name
        self._fleet = fleet
        self._coordinates = coordinates
        self._zookeeper = zookeeper
        self._rng = rng
        self.partitions = [TopicPartition(self.group, n) for n in range(PARTITIONS)]
        with AdminClient(zookeeper=zookeeper) as admin:
            admin.create_topic(self.group, PARTITIONS, 3)
            admin.await_leaders(self.group)
        self.history = OffsetHistory(ordered=False)
        self.connections = Connections(zookeeper, bootstrap)
        self.load = Load(bootstrap, self.partitions, RATE)
        self._storage = OffsetStorage.ZOOKEEPER
        """What members of the JVM are configured for."""
        self._named = 0
        self._seats = [Seat(program, self._member(program)) for program in programs]
        self.kills = self.suspensions = 0
        self.problems: list[str] = []

    def run(self) -> dict[TopicPartition, int]:
        """partition → where its log ended."""
        with (
            watched_stores(self.connections, self.group, self.partitions, self.history),
            OffsetMigration(
                group=self.group, connections=self.connections, confirmation_timeout_s=30
            ) as migration,
        ):
            until(lambda: self.history.count > 50, "messages", STEP_TIMEOUT_S)
            if self._rng.random() < 0.5:
                self._store_earlier_life()
            if self._coordinates and self._rng.random() < 0.5:
                self._start_beside_a_coordinated_member(migration)
            for storage, verb, step in (
                (OffsetStorage.ZOOKEEPER, "start", lambda: self._started(migration)),
                (OffsetStorage.DUAL, "verify", lambda: _verified(migration)),
                (OffsetStorage.KAFKA, "finish", lambda: _finished(migration)),
                (OffsetStorage.DUAL, "rollback", migration.rollback),
            ):
                self._configure(storage)
                with self._suspended_tool(verb):
                    self._under_fire(step)
            self._configure(OffsetStorage.ZOOKEEPER)
            ends = self.load.stop()
            until(lambda: not self._skipped(ends), "the end of the logs", STEP_TIMEOUT_S)
            for seat in self._seats:
                seat.member.stop()
        return ends

    def close(self) -> None:
        for seat in self._seats:
            seat.member.kill()
        self.load.close()
        self.connections.close()

    def _skipped(self, ends: dict[TopicPartition, int]) -> list[str]:
        return [p for p in self.history.problems(ends) if "handed out" in p]

    def _member(self, program: Callable[..., list[str]]) -> MemberProcess:
        self._named += 1
        storage = OffsetStorage.ZOOKEEPER if program is our_member else self._storage
        keys = {
            "group.id": self.group,
            "consumer.id": f"m{self._named}",
            "zookeeper.connect": self._zookeeper,
            "zookeeper.session.timeout.ms": "3000",
            "rebalance.backoff.ms": "500",
            "rebalance.max.retries": "30",
            "auto.commit.interval.ms": "200",
            "auto.offset.reset": "smallest",
            **storage.properties,
        }
        return MemberProcess(self.group, keys, self.history, program)

    def _configure(self, storage: OffsetStorage) -> None:
        """Restart the JVM's members with the properties of a step, one after the other."""
        if storage is self._storage:
            return
        self._storage = storage
        for seat in self._seats:
            if not seat.is_ours:
                seat.member.stop()
                seat.member = self._member(seat.program)

    def _store_earlier_life(self) -> None:
        """Kafka has offsets of an earlier life of the group, behind its own or far ahead. Its live
        members are the proof that they do not count."""
        ends = log_ends(self.connections.cluster, self.partitions)
        offsets = {tp: self._rng.choice((0, ends[tp])) for tp in self.partitions}
        found = self.connections.coordinators.commit({self.group: offsets}, lambda: None)
        if isinstance(error := found[self.group], KafkaError):
            raise error

    def _start_beside_a_coordinated_member(self, migration: OffsetMigration) -> None:
        """A member that registers at a coordinator commits what it likes, so `start` refuses."""
        config = {"group.id": self.group, "bootstrap.servers": self._fleet.bootstrap}
        with KafkaConsumer(KafkaConsumerConfig(config)) as consumer:
            consumer.subscribe([self.group])
            consumer.poll(5000)
            with suppress(MigrationError):
                migration.start()
                self.problems.append("a start beside a member with a coordinator was not refused")

    def _started(self, migration: OffsetMigration) -> None:
        migration.start()
        time.sleep(1)  # looks at the stores that have begun before
        self.history.forget("Kafka")

    @contextmanager
    def _suspended_tool(self, verb: str) -> Iterator[None]:
        """Another tool begins the same step, and is suspended until the block is over. What it does
        afterwards must not undo what was done meanwhile."""
        if self._rng.random() < 0.5:
            yield
            return
        command = ["-m", "tests.migration.killed_tool", self._zookeeper, self.group, verb, NEVER]
        tool = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        try:
            time.sleep(self._rng.uniform(0.5, 4.0))
            tool.send_signal(signal.SIGSTOP)
            self.suspensions += 1
            yield
            tool.send_signal(signal.SIGCONT)
            tool.wait(STEP_TIMEOUT_S)
        finally:
            tool.kill()
            tool.wait()

    def _under_fire(self, step: Callable[[], object]) -> None:
        """A member or a broker dies, and comes back; the step is repeated until it is done."""
        if self._rng.random() < 0.5:
            seat = self._rng.choice(self._seats)
            seat.member.kill()
            seat.member = self._member(seat.program)
        else:
            self._fleet.kill_one(self._rng, self.connections)
        self.kills += 1
        give_up_at = time.monotonic() + STEP_TIMEOUT_S
        while True:
            try:
                step()
                return
            except KafkaError:
                if time.monotonic() > give_up_at:
                    raise


def _verified(migration: OffsetMigration) -> None:
    if problems := migration.verify(WATCHING).problems:
        raise MigrationError("; ".join(problems))


def _finished(migration: OffsetMigration) -> None:
    if problems := migration.finish(WATCHING).problems:
        raise MigrationError("; ".join(problems))


def main() -> int:
    parser = soak_parser("soak-migration", __doc__)
    parser.add_argument("--brokers", choices=["kafka08", "jvm"], default="kafka08")
    parser.add_argument("--level", choices=["0.8.2", "0.10.2"], default="0.8.2")
    parser.add_argument("--members", choices=list(MEMBERS), default="both")
    parser.add_argument("--groups", type=int, default=1, help="that migrate at a time")
    options = parser.parse_args()
    with (
        announced(options),
        cluster_of(options.brokers, options.level) as (zookeeper, bootstrap, brokers),
        ThreadPoolExecutor(options.groups) as pool,
    ):
        fleet = Fleet(zookeeper, bootstrap, brokers)
        coordinates = options.brokers == "kafka08" and options.level != "0.8.2"

        def migrate(name: str, seed: int) -> Outcome:
            programs = MEMBERS[options.members]
            this = Round(name, fleet, programs, random.Random(seed), coordinates=coordinates)
            try:
                ends = this.run()
            finally:
                this.close()
            problems = [*this.problems, *this.history.problems(ends)]
            known = [p for p in problems if options.brokers == "jvm" and "Kafka's offset" in p]
            return Outcome(
                f"{this.kills} kills, {this.suspensions} suspended tools, "
                f"{this.history.count} handed out, {this.history.repetitions} of them again, "
                f"Kafka's offset away for {this.history.moments_without} moments",
                [p for p in problems if p not in known],
                known,
            )

        def run_round(number: int, rng: random.Random) -> Outcome:
            begun = [
                pool.submit(migrate, f"soak-{number}-{group}", rng.getrandbits(32))
                for group in range(options.groups)
            ]
            outcomes = [one.result() for one in begun]
            return Outcome(
                "; ".join(one.summary for one in outcomes),
                [problem for one in outcomes for problem in one.problems],
                [known for one in outcomes for known in one.known],
            )

        return soak(options, run_round)


if __name__ == "__main__":
    sys.exit(main())
