"""Moves a group's offsets from ZooKeeper to the offsets topic, and back, while it runs or stopped.

    with OffsetMigration(zookeeper="localhost:2181", group="readers") as migration:
        print(migration.plan().refusals)
        migration.start()                       # both stores from now on
        print(migration.verify().problems)
        migration.finish()                      # Kafka alone
        migration.rollback()                    # from any step: ZooKeeper alone

Live members of ours switch by themselves and answer in ZooKeeper (kafka08/zk/orders.py); a step is
done when all have. For other members a step says which properties to set; until that is done,
`mirror.py` can commit for them. A stopped group goes the same way, with nobody to wait for.

Each step may be broken off at any instant and repeated: the journal (journal.py) holds what both
stores had before, and every write is either one that only moves forward or the same as before. A
step that refuses raises MigrationError with all its reasons and has changed no offset.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.consumer.config import LEGAL_NAME
from kafka08.errors import ConfigError, MigrationError, ZooKeeperError
from kafka08.lifecycle import Closeable
from kafka08.migration.connections import Connect, Connections
from kafka08.migration.facts import read_facts, with_movement
from kafka08.migration.journal import Entry, Journal, State
from kafka08.migration.members import Member, behind, instructions, read_members
from kafka08.migration.plan import (
    GroupFacts,
    Plan,
    Rollback,
    group_refusals,
    live_refusals,
    make_plan,
    rollback_to_newest,
    rollback_to_snapshot,
    snapshot_of,
)
from kafka08.migration.verification import Verification, Watching, watch
from kafka08.migration.writing import commit_to_kafka, raise_in_kafka, raise_in_zookeeper
from kafka08.zk import paths
from kafka08.zk.operations import Delete
from kafka08.zk.orders import Storage

log = logging.getLogger(__name__)

ANSWER_PATIENCE_S: Final = 60.0
POLL_S: Final = 0.05
MOVEMENT_PAUSE_S: Final = 0.5
"""Between two looks at offsets that should stand still."""
KEEPS_ZOOKEEPER: Final = frozenset(
    {State.COPYING, State.DUAL, State.VERIFIED, State.RETURNING, State.ROLLED_BACK}
)
"""States in which every member commits to ZooKeeper, so that Kafka is not needed to go back."""


@dataclass(frozen=True, slots=True)
class Status:
    """How far a migration has come. `entry` is None if none was begun.

    waiting_for    members of ours that have not answered the present order
    to_do          what has to be done by hand for members that are not ours
    is_mirrored    a mirror commits for some of them
    """

    group: str
    entry: Entry | None
    members: tuple[Member, ...]
    waiting_for: tuple[str, ...]
    to_do: tuple[str, ...]
    is_mirrored: bool


class OffsetMigration(Closeable):
    """The migration of one group. Connects at once, unless it is given `connections`; raises
    ZooKeeperError, NoBrokersAvailable, or ConfigError for a name that no group can have.

    zookeeper          connect string of the cluster
    bootstrap          brokers to begin with; None: those registered in ZooKeeper
    connections        in place of both; they stay open
    answer_patience_s  how long a step waits for the answers of live members
    """

    def __init__(
        self,
        zookeeper: str = "",
        group: str = "",
        bootstrap: str | None = None,
        *,
        connections: Connections | None = None,
        answer_patience_s: float = ANSWER_PATIENCE_S,
        clock: Clock = SYSTEM_CLOCK,
        connect: Connect = socket.create_connection,
    ) -> None:
        if not LEGAL_NAME.fullmatch(group) or group in {"", ".", ".."}:
            raise ConfigError(f"group.id: {group!r} is not made of characters [a-zA-Z0-9._-]")
        self.group = group
        self._answer_patience_s = answer_patience_s
        self._owns_connections = connections is None
        self.connections = connections or Connections(
            zookeeper, bootstrap, clock=clock, connect=connect
        )
        self._clock = self.connections.clock
        self._journal = Journal(self.connections.zk, group)

    def close(self) -> None:
        if self._owns_connections:
            self.connections.close()

    def journal(self) -> Entry | None:
        """How far the migration has come; None if none was begun."""
        return self._journal.read()

    def facts(self) -> GroupFacts:
        """The group as it is now, in both stores."""
        return read_facts(self.group, self.connections)

    def _watched_facts(self) -> GroupFacts:
        """With a second look at what nobody owns."""
        [facts] = with_movement([self.facts()], self.connections, MOVEMENT_PAUSE_S)
        return facts

    def members(self) -> tuple[Member, ...]:
        return read_members(self.connections.store, self.group)

    def status(self) -> Status:
        """Changes nothing."""
        entry, members = self._journal.read(), self.members()
        order = None if entry is None else entry.order
        return Status(
            self.group,
            entry,
            members,
            () if order is None else tuple(behind(members, order)),
            () if order is None else tuple(instructions(members, order.storage)),
            self._is_mirrored(),
        )

    def plan(self, *, max_disagreement: int | None = None, facts: GroupFacts | None = None) -> Plan:
        """What `start` would do, and every reason why it would refuse. Changes nothing but that
        the first question for a coordinator makes the brokers create the offsets topic.

        facts   of the group, if they were read already
        """
        return make_plan(facts or self._watched_facts(), max_disagreement=max_disagreement)

    def start(
        self, *, max_disagreement: int | None = None, facts: GroupFacts | None = None
    ) -> Plan:
        """Write the journal, commit to Kafka whatever is newer in ZooKeeper, then have the members
        commit to both; the plan carried out.

        Repeating it copies what is newer by then and keeps the first snapshot. Once the members
        commit to both, they bring Kafka up themselves, and it only waits for their answers.
        """
        facts = facts or self._watched_facts()
        plan = make_plan(facts, max_disagreement=max_disagreement)
        self._refuse("start", plan.refusals)
        entry = self._journal.read()
        if entry is None or entry.state in {State.COPYING, State.ROLLED_BACK}:
            snapshot = snapshot_of(facts.partitions)
            entry = self._journal.begin(snapshot, self._clock.time_ms(), entry)
            raise_in_kafka(self.connections, self.group, plan.copies)
            self._refuse_newcomers(facts)
        elif not facts.is_live:
            self._journal.check(State.DUAL, entry)
            raise_in_kafka(self.connections, self.group, plan.copies)
        if entry.state is not State.VERIFIED:
            entry = self._journal.enter(State.DUAL, entry, self._clock.time_ms())
        self._await_answers("start", entry)
        log.info("copied %d offsets of group %s to Kafka", len(plan.copies), self.group)
        return plan

    def verify(self, watching: Watching = Watching()) -> Verification:
        """Watch both stores while the group runs, or compare them if it does not. Without problems
        `finish` may follow."""
        entry = self._journal.read()
        self._journal.check(State.VERIFIED, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        found = watch(self.connections, self.group, Storage.DUAL, watching, entry)
        if found.is_verified:
            self._journal.enter(State.VERIFIED, entry, self._clock.time_ms())
        return found

    def finish(self, watching: Watching = Watching()) -> Verification:
        """Have the members commit to Kafka alone, then show that ZooKeeper's offsets stand still.
        Done if the result has no problems; to be repeated otherwise. Members that are not ours
        keep ZooKeeper moving until their properties are set."""
        entry = self._journal.read()
        self._journal.check(State.FINISHING, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        if entry.state is State.VERIFIED:
            self._refuse("finish", self._not_ready(entry))
        if entry.state is not State.FINISHED:
            entry = self._journal.enter(State.FINISHING, entry, self._clock.time_ms())
        self._await_answers("finish", entry)
        found = watch(self.connections, self.group, Storage.KAFKA, watching, entry)
        if found.is_verified and entry.state is not State.FINISHED:
            self._journal.enter(State.FINISHED, entry, self._clock.time_ms())
        return found

    def rollback(self, to: Literal["newest", "snapshot"] = "newest") -> Rollback:
        """Make ZooKeeper's offsets the ones to go on from, and say what was written.

        to   "newest": the newest offset of both stores that lies in the log, so nothing is read
             twice. "snapshot": both stores as before the migration; what was read since is read
             again. That is refused while members live, which would commit over it.
        """
        entry = self._journal.read()
        if to == "snapshot":
            return self._roll_to_snapshot(entry)
        if entry is None or entry.state not in KEEPS_ZOOKEEPER:
            self._journal.check(State.ROLLING_TO_NEWEST, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        facts = self.facts()
        rollback = rollback_to_newest(facts)
        if entry.state in KEEPS_ZOOKEEPER:
            # Kafka may be what is broken; ZooKeeper has all that was committed to both.
            if facts.unavailable is not None:
                rollback = Rollback({}, {})
        else:
            self._refuse("rollback", [*group_refusals(facts), *rollback.problems])
            entry = self._journal.enter(State.ROLLING_TO_NEWEST, entry, self._clock.time_ms())
            self._await_answers("rollback", entry)
            self._refuse("rollback", instructions(self._kafka_only(facts), Storage.DUAL))
            rollback = rollback_to_newest(self.facts())
        written = raise_in_zookeeper(self.connections, self.group, rollback.to_zookeeper)
        entry = self._journal.enter(State.RETURNING, entry, self._clock.time_ms())
        self._await_answers("rollback", entry)
        self._journal.enter(State.ROLLED_BACK, entry, self._clock.time_ms())
        return Rollback(written, {}, problems=rollback.problems)

    def _roll_to_snapshot(self, entry: Entry | None) -> Rollback:
        self._journal.check(State.ROLLING_TO_SNAPSHOT, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        facts = self.facts()
        self._refuse("rollback", [*live_refusals(facts), *group_refusals(facts)])
        rollback = rollback_to_snapshot(facts, entry.snapshot)
        entry = self._journal.enter(State.ROLLING_TO_SNAPSHOT, entry, self._clock.time_ms())
        if rollback.to_kafka:
            commit_to_kafka(self.connections, self.group, rollback.to_kafka)
        self._write_zookeeper(rollback)
        self._refuse("rollback", live_refusals(self.facts()))
        self._journal.enter(State.ROLLED_BACK, entry, self._clock.time_ms())
        return rollback

    def _write_zookeeper(self, rollback: Rollback) -> None:
        failed = self.connections.store.commit_offsets(self.group, rollback.to_zookeeper)
        gone = [Delete(paths.offset(self.group, *tp)) for tp in rollback.remove_from_zookeeper]
        errors = [*failed.values(), *self.connections.zk.pipeline(gone)]
        self._refuse("rollback", [str(e) for e in errors if isinstance(e, ZooKeeperError)])

    def _await_answers(self, step: str, entry: Entry) -> None:
        """Until every live member of ours follows the order of `entry`."""
        assert entry.order is not None, "a step with members to wait for orders something"
        order = entry.order
        left: list[str] = []

        def is_done() -> bool:
            left[:] = behind(self.members(), order)
            return not left

        if not self._wait_for(is_done):
            self._refuse(
                step,
                [f"{m} has not answered: see its log, then repeat the step" for m in left],
            )

    def _not_ready(self, entry: Entry) -> list[str]:
        """Why members cannot do without ZooKeeper yet."""
        assert entry.order is not None, "VERIFIED orders both stores"
        reasons = [f"{m} has not answered" for m in behind(self.members(), entry.order)]
        if self._is_mirrored():
            reasons.append("a mirror commits for members that go by ZooKeeper: stop them first")
        return reasons + self._behind_in_kafka()

    def _behind_in_kafka(self) -> list[str]:
        """Partitions where ZooKeeper has more than Kafka, and keeps it for a while: their owners
        would repeat. What nobody owns is brought up here."""
        found: list[str] = []

        def is_level() -> bool:
            facts = self.facts()
            low = [p for p in facts.partitions if p.exists and (p.zookeeper or 0) > (p.kafka or 0)]
            if not facts.is_live:
                raise_in_kafka(self.connections, self.group, [p.topic_partition for p in low])
            found[:] = [
                f"{p.topic_partition}: ZooKeeper has {p.zookeeper}, Kafka {p.kafka}" for p in low
            ]
            return not found

        return [] if self._wait_for(is_level) else found

    def _kafka_only(self, facts: GroupFacts) -> list[Member]:
        """Members that are not ours and whose partitions stand behind in ZooKeeper for as long as
        answers are waited for."""
        foreign = [m for m in facts.members if not m.is_ours]
        found: list[Member] = []

        def none_is() -> bool:
            now = self.facts()
            low = [p for p in now.partitions if (p.kafka or 0) > (p.zookeeper or 0)]
            found[:] = [m for m in foreign if any(m.owns(p.owner) for p in low)]
            return not found

        return [] if not foreign or self._wait_for(none_is) else found

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        give_up_at = self._clock.monotonic() + self._answer_patience_s
        while not condition():
            if self._clock.monotonic() >= give_up_at:
                return False
            self._clock.sleep(POLL_S)
        return True

    def _refuse_newcomers(self, facts: GroupFacts) -> None:
        """Members that came during the copy and go by Kafka have read offsets half-way through."""
        known = {member.consumer_id for member in facts.members}
        new = [m for m in self.members() if m.consumer_id not in known]
        unsafe = [str(m) for m in new if not m.is_ours or m.configured is Storage.KAFKA]
        if unsafe:
            text = f"members joined meanwhile, stop them and repeat it: {', '.join(unsafe)}"
            self._refuse("start", [text])

    def _is_mirrored(self) -> bool:
        return self.connections.zk.exists(paths.migration_mirror(self.group))

    def _refuse(self, step: str, reasons: Sequence[str]) -> None:
        if reasons:
            text = "\n".join(f"  - {reason}" for reason in reasons)
            raise MigrationError(f"{step} of group {self.group} refused:\n{text}")
