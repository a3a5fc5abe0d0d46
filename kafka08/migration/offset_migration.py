"""Moves the offsets of a stopped group from ZooKeeper to the offsets topic, and back.

    with OffsetMigration(zookeeper="localhost:2181", group="readers") as migration:
        print(migration.plan().refusals)
        migration.start()
        print(migration.verify().problems)      # then: offsets.storage=kafka in the members
        migration.rollback()                    # or: back to offsets.storage=zookeeper

Each step may be broken off at any instant and repeated: the journal (journal.py) holds what both
stores had before, and every write is either one that only moves forward or the same as before. A
step that refuses raises MigrationError with all its reasons and has changed no offset. Groups that
run while they migrate are not handled here: their members are refused.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.client.retry import retry
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.consumer.brokers import BootstrapBrokers
from kafka08.consumer.config import LEGAL_NAME
from kafka08.consumer.offset_store import KafkaOffsetStore, Offsets
from kafka08.errors import ConfigError, MigrationError, NoBrokersAvailable, ZooKeeperError
from kafka08.migration.facts import read_facts
from kafka08.migration.journal import Entry, Journal, State
from kafka08.migration.plan import (
    GroupFacts,
    Plan,
    Rollback,
    group_refusals,
    make_plan,
    rollback_to_newest,
    rollback_to_snapshot,
    snapshot_of,
    verification_problems,
)
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Delete
from kafka08.zk.store import ClusterStore

log = logging.getLogger(__name__)

Connect = Callable[[tuple[str, int], float], socket.socket]

RETRIES = RetryPolicy(tries=50, backoff_ms=200)
"""A coordinator that is loading or moving needs some seconds."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The group as it stands after a copy, and what is wrong with that; nothing if all is well."""

    facts: GroupFacts
    problems: tuple[str, ...]

    @property
    def is_verified(self) -> bool:
        return not self.problems


class OffsetMigration:
    """The migration of one group. Connects at once; raises ZooKeeperError, NoBrokersAvailable, or
    ConfigError for a name that no group can have.

    zookeeper   connect string of the cluster
    bootstrap   brokers to begin with; None: those registered in ZooKeeper
    """

    def __init__(
        self,
        zookeeper: str,
        group: str,
        bootstrap: str | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        connect: Connect = socket.create_connection,
    ) -> None:
        if not LEGAL_NAME.fullmatch(group) or group in {"", ".", ".."}:
            raise ConfigError(f"group.id: {group!r} is not made of characters [a-zA-Z0-9._-]")
        self.group = group
        self._clock = clock
        self._connect_socket = connect
        self._zk = ZkClient(zookeeper, name=f"migration of {group}")
        self._zk.start()
        self._store = ClusterStore(self._zk)
        try:
            self._cluster = self._connect(bootstrap)
        except BaseException:
            self._zk.close()
            raise
        self._kafka = KafkaOffsetStore(
            BootstrapBrokers(self._cluster), group, clock=clock, backoff_ms=RETRIES.backoff_ms
        )
        self._journal = Journal(self._zk, group)

    def _connect(self, bootstrap: str | None) -> ClusterClient:
        if bootstrap is not None:
            addresses = parse_bootstrap(bootstrap)
        else:
            addresses = [(b.host, b.port) for b in self._store.brokers().values()]
        if not addresses:
            raise NoBrokersAvailable("no broker is registered in ZooKeeper")
        return ClusterClient(
            addresses,
            client_id="kafka08-migrate",
            connect=self._connect_socket,
            clock=self._clock,
        )

    def close(self) -> None:
        self._cluster.close()
        self._zk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def journal(self) -> Entry | None:
        """How far the migration has come; None if none was begun."""
        return self._journal.read()

    def facts(self) -> GroupFacts:
        """The group as it is now, in both stores."""
        return read_facts(self.group, self._store, self._kafka, self._cluster)

    def plan(self, *, max_disagreement: int | None = None) -> Plan:
        """What `start` would do, and every reason why it would refuse. Changes nothing but that
        the first question for a coordinator makes the brokers create the offsets topic."""
        return make_plan(self.facts(), max_disagreement=max_disagreement)

    def start(self, *, max_disagreement: int | None = None) -> Plan:
        """Write the journal, then commit to Kafka whatever is newer in ZooKeeper; the plan carried
        out. Repeating it copies what is newer by then and keeps the first snapshot."""
        facts = self.facts()
        plan = make_plan(facts, max_disagreement=max_disagreement)
        self._refuse("start", plan.refusals)
        snapshot = snapshot_of(facts.partitions)
        entry = self._journal.begin(snapshot, self._clock.time_ms(), self._journal.read())
        self._commit_to_kafka(plan.copies)
        self._refuse_members("copy")
        self._journal.enter(State.COPIED, entry, self._clock.time_ms())
        log.info("copied %d offsets of group %s to Kafka", len(plan.copies), self.group)
        return plan

    def verify(self) -> Verification:
        """Read both stores again. Without problems the group's members may be started with
        `offsets.storage=kafka`: they begin exactly where the group stopped."""
        entry = self._journal.read()
        self._journal.check(State.VERIFIED, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        facts = self.facts()
        problems = tuple(verification_problems(facts))
        if not problems:
            self._journal.enter(State.VERIFIED, entry, self._clock.time_ms())
        return Verification(facts, problems)

    def rollback(self, to: Literal["newest", "snapshot"] = "newest") -> Rollback:
        """Make ZooKeeper's offsets the ones to go on from, and say what was written.

        to   "newest": the newest offset of both stores that lies in the log, so nothing is read
             twice. "snapshot": both stores as before the migration; what was read since is read
             again.
        """
        state = State.ROLLING_TO_NEWEST if to == "newest" else State.ROLLING_TO_SNAPSHOT
        entry = self._journal.read()
        self._journal.check(state, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        facts = self.facts()
        if to == "newest":
            rollback = rollback_to_newest(facts)
        else:
            rollback = rollback_to_snapshot(facts, entry.snapshot)
        self._refuse("rollback", [*group_refusals(facts), *rollback.problems])
        entry = self._journal.enter(state, entry, self._clock.time_ms())
        self._commit_to_kafka(dict(rollback.to_kafka))
        self._write_zookeeper(rollback)
        self._refuse_members("rollback")
        self._journal.enter(State.ROLLED_BACK, entry, self._clock.time_ms())
        return rollback

    def _commit_to_kafka(self, offsets: Offsets) -> None:
        """Commit, and read back that they are there."""

        def commit() -> None:
            for error in self._kafka.commit_each(offsets).values():
                raise error

        retry(commit, RETRIES, self._clock, what=f"committing the offsets of {self.group}")
        found = self._kafka.fetch(list(offsets))
        wrong = [tp for tp, offset in offsets.items() if found[tp] != offset]
        self._refuse("commit", [f"{tp}: committed {offsets[tp]}, read {found[tp]}" for tp in wrong])

    def _write_zookeeper(self, rollback: Rollback) -> None:
        failed = self._store.commit_offsets(self.group, rollback.to_zookeeper)
        gone = [Delete(paths.offset(self.group, *tp)) for tp in rollback.remove_from_zookeeper]
        errors = [*failed.values(), *self._zk.pipeline(gone)]
        self._refuse("rollback", [str(e) for e in errors if isinstance(e, ZooKeeperError)])

    def _refuse_members(self, step: str) -> None:
        """Members that came while a step ran have read offsets half-way through it."""
        members = self._zk.children_or_empty(paths.consumer_ids(self.group))
        if members:
            names = ", ".join(members)
            self._refuse(step, [f"members joined meanwhile, stop them and repeat it: {names}"])

    def _refuse(self, step: str, reasons: tuple[str, ...] | list[str]) -> None:
        if reasons:
            text = "\n".join(f"  - {reason}" for reason in reasons)
            raise MigrationError(f"{step} of group {self.group} refused:\n{text}")
