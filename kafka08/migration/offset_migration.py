"""Moves a group's offsets from ZooKeeper to the offsets topic, and back, while it runs or stopped.

    with OffsetMigration(zookeeper="localhost:2181", group="readers") as migration:
        print(migration.plan().refusals)
        migration.start()                       # both stores from now on
        print(migration.verify().problems)
        migration.finish()                      # Kafka alone
        migration.rollback()                    # from any step: ZooKeeper alone

Live kafka08 members switch by themselves and confirm in ZooKeeper
(kafka08/zk/migration_protocol.py); a step ends when all have confirmed. For other members a step
names the properties to set; until they are set, `mirror.py` can commit for them. A stopped group
takes the same steps, without members to wait for.

Each step may be interrupted at any instant and repeated: the journal (journal.py) holds the former
offsets of both stores, and every write can be repeated. A step that refuses raises MigrationError
with all its reasons and has changed no offset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kafka08.admin.committing import commit_to_kafka
from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import GroupFacts, live_refusals, read_facts
from kafka08.consumer.zookeeper.offset_store import Offsets
from kafka08.errors import ZooKeeperError
from kafka08.lifecycle import Closeable
from kafka08.migration.commit_times import with_commit_times
from kafka08.migration.handover import Handover, read_handover
from kafka08.migration.journal import Entry, Journal, State, read_journals
from kafka08.migration.members import behind, instructions
from kafka08.migration.plan import Plan, Terms
from kafka08.migration.proof import StoreThatCounts
from kafka08.migration.reading import with_movement
from kafka08.migration.results import raised, refuse
from kafka08.migration.rollback import (
    KEEPS_ZOOKEEPER,
    Rollback,
    To,
    check_rollback,
    plan_rollback,
)
from kafka08.migration.starting import Starting, preview_start
from kafka08.migration.status import Status, left_behind, not_done, not_level, not_ready
from kafka08.migration.verification import Verification, Watching, watch
from kafka08.migration.waiting import await_confirmations, unconfirmed, wait_for
from kafka08.migration.writing import raise_in_kafka, raise_in_zookeeper
from kafka08.observe.commit_times import CommitTimes
from kafka08.observe.members import Member, read_members
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.group_store import GroupStore
from kafka08.zk.migration_protocol import OffsetStorage
from kafka08.zk.operations import Delete

logger = logging.getLogger(__name__)

CONFIRMATION_TIMEOUT_S: Final = 60.0
MOVEMENT_PAUSE_S: Final = 0.5
"""Seconds between two reads of offsets that should not move."""


class OffsetMigration(Closeable):
    """The migration of one group. Connects at once, unless it is given `connections`; raises
    ZooKeeperError, NoBrokersAvailable, or ConfigError for a name that no group can have.

    zookeeper               connect string of the cluster
    bootstrap               bootstrap brokers; None: those registered in ZooKeeper
    connections             used in place of both; they stay open
    times                   of commits, shared where several groups are migrated
    confirmation_timeout_s  how long a step waits for the confirmations of live members
    """

    def __init__(
        self,
        zookeeper: str = "",
        group: str = "",
        bootstrap: str | None = None,
        *,
        connections: Connections | None = None,
        times: CommitTimes | None = None,
        confirmation_timeout_s: float = CONFIRMATION_TIMEOUT_S,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        paths.check_group(group)
        self.group = group
        self._confirmation_timeout_s = confirmation_timeout_s
        self._owns_connections = connections is None
        self.connections = connections or Connections(zookeeper, bootstrap, runtime=runtime)
        self._times = times
        self._clock = self.connections.runtime
        self._journal = Journal(self.connections.zk, group)

    def __repr__(self) -> str:
        return f"<OffsetMigration of group {self.group}>"

    def close(self) -> None:
        if self._owns_connections:
            self.connections.close()

    def journal(self) -> Entry | None:
        """The progress of the migration; None if there is none."""
        return self._journal.read_entry()

    def handover(self) -> Handover:
        """Whether members with a coordinator may take the group over from those of ZooKeeper's."""
        return read_handover(self.group, self.connections, self.journal())

    def facts(self) -> GroupFacts:
        """The group as it is now, in both stores."""
        return read_facts(self.group, self.connections)

    def _watched_facts(self) -> GroupFacts:
        """Facts with a second look at partitions without an owner."""
        [facts] = with_movement([self.facts()], self.connections, MOVEMENT_PAUSE_S)
        return facts

    def known_facts(self, entry: Entry) -> GroupFacts:
        """The facts, also of partitions that both stores have lost since the migration began."""
        return read_facts(self.group, self.connections, entry.snapshot)

    def _watch(self, storage: OffsetStorage, watching: Watching, entry: Entry) -> Verification:
        return watch(self.connections, self.group, storage, watching, entry, times=self._times)

    def _enter(self, state: State, previous: Entry) -> Entry:
        """Enter a state, unless the step was interrupted."""
        self.connections.check_interrupt()
        return self._journal.enter(state, previous, self._clock.time_ms())

    def members(self) -> tuple[Member, ...]:
        return read_members(self.connections.zk, self.group)

    def status(self) -> Status:
        """Changes nothing."""
        entry, members = self._journal.read_entry(), self.members()
        order = None if entry is None else entry.order
        return Status(
            self.group,
            entry,
            members,
            () if order is None else tuple(behind(members, order)),
            () if order is None else tuple(instructions(members, order.storage)),
            self._is_mirrored(),
        )

    def plan(
        self,
        *,
        store_that_counts: StoreThatCounts | None = None,
        max_disagreement: int | None = None,
    ) -> Plan:
        """The effect of `start`, and every reason why it would refuse. Changes nothing."""
        facts = with_commit_times(
            self._watched_facts(), CommitTimes(self.connections.cluster, self.connections.runtime)
        )
        journals = read_journals(self.connections.zk, [self.group])
        return preview_start(
            facts, journals[self.group], Terms(store_that_counts, max_disagreement)
        )

    def start(
        self,
        *,
        store_that_counts: StoreThatCounts | None = None,
        max_disagreement: int | None = None,
    ) -> Plan:
        """Write the journal, commit to Kafka the offsets that are newer in ZooKeeper, then order
        the members to commit to both. Returns the plan that was carried out.

        Repeating it copies what is newer by then and keeps the first snapshot. Once the members
        commit to both, they bring Kafka up themselves, and it only waits for their confirmations.
        """
        starting = Starting(
            self.connections,
            [self._watched_facts()],
            Terms(store_that_counts, max_disagreement),
            self._confirmation_timeout_s,
        )
        plan = raised(starting.run()[self.group])
        logger.info("copied %d offsets of group %s to Kafka", len(plan.copies), self.group)
        return plan

    def verify(self, watching: Watching = Watching()) -> Verification:
        """Watch both stores while the group runs, or compare them if it does not. Without problems
        `finish` may follow."""
        entry = self.begin_verify()
        return self.end_verify(entry, self._watch(OffsetStorage.DUAL, watching, entry))

    def begin_verify(self) -> Entry:
        """The part of `verify` before the group is watched, for many that are watched together."""
        entry = self._journal.read_entry()
        self._journal.check(State.VERIFIED, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        return entry

    def end_verify(self, entry: Entry, found: Verification) -> Verification:
        """The part afterwards."""
        if found.is_verified:
            self._enter(State.VERIFIED, entry)
        return found

    def finish(self, watching: Watching = Watching()) -> Verification:
        """Have the members commit to Kafka alone, then show that ZooKeeper's offsets stand still.
        Done if the result has no problems; to be repeated otherwise. Members that are not ours
        keep ZooKeeper moving until their properties are set."""
        entry = self.begin_finish()
        return self.end_finish(entry, self._watch(OffsetStorage.KAFKA, watching, entry))

    def begin_finish(self) -> Entry:
        """The part of `finish` before the group is watched."""
        status = self.status()
        entry = status.entry
        self._journal.check(State.FINISHING, entry)
        assert entry is not None, "check refuses a migration that has not begun"
        self._refuse("finish", [*not_ready(status), *self._behind_in_kafka(entry)])
        if entry.state is not State.FINISHED:
            entry = self._enter(State.FINISHING, entry)
        self._await_confirmations("finish", entry)
        return entry

    def end_finish(self, entry: Entry, found: Verification) -> Verification:
        """The part afterwards."""
        if found.is_verified and entry.state is not State.FINISHED:
            self._enter(State.FINISHED, entry)
        return found

    def rollback(self, to: To = "newest") -> Rollback:
        """Make ZooKeeper's offsets the starting point of the group; returns what was written.

        to   "newest": the newest offset of both stores that lies in the log, so nothing is read
             twice; of a finished migration Kafka's, also where it was set back. "snapshot": both
             stores as before the migration; what was read since is read again. That is refused
             while members live: they would overwrite it. Both are refused while the group has
             members with a coordinator, which follow no order.
        """
        entry = check_rollback(self.group, self._journal.read_entry(), to)
        if to == "snapshot":
            return self._roll_to_snapshot(entry)
        former = Rollback({}, {})
        written: Offsets = {}
        if entry.state not in KEEPS_ZOOKEEPER:
            facts, former = self._planned_rollback(entry, to)
            # Members that use both stores start from the larger offset, so an old one goes first.
            written = self._write_newest(former, former.lowered)
            entry = self._enter(State.ROLLING_TO_NEWEST, entry)
            self._await_confirmations("rollback", entry)
            self._refuse(
                "rollback", instructions(self._kafka_only(facts, entry), OffsetStorage.DUAL)
            )
        _, rollback = self._planned_rollback(entry, to)
        written |= self._write_newest(rollback, rollback.to_zookeeper)
        entry = self._enter(State.RETURNING, entry)
        self._await_confirmations("rollback", entry)
        self._enter(State.ROLLED_BACK, entry)
        problems = dict.fromkeys((*former.problems, *rollback.problems))
        return Rollback(written, {}, problems=tuple(problems))

    def plan_rollback(self, to: To = "newest") -> Rollback:
        """Returns what `rollback` would write, by the present offsets of both stores, and changes
        nothing. MigrationError for its refusals."""
        entry = check_rollback(self.group, self._journal.read_entry(), to)
        return self._planned_rollback(entry, to)[1]

    def _planned_rollback(self, entry: Entry, to: To) -> tuple[GroupFacts, Rollback]:
        facts = self.known_facts(entry)
        rollback = plan_rollback(facts, entry, to)
        self._refuse("rollback", rollback.refusals)
        return facts, rollback

    def forget(self) -> Entry:
        """Remove the journal of a migration that is finished or rolled back, and its snapshot;
        what was removed. Members go by their configuration from their next start on: refused while
        a live kafka08 member is configured otherwise, and while a mirror runs. The configuration of
        other members is unknown."""
        status = self.status()
        self._refuse("forget", not_done(status))
        entry = status.entry
        assert entry is not None, "a migration that has not begun was refused"
        self._journal.remove(entry)
        return entry

    def _write_newest(self, rollback: Rollback, partitions: Iterable[TopicPartition]) -> Offsets:
        """Write some of its offsets; what was written."""
        wanted = {tp: rollback.to_zookeeper[tp] for tp in partitions}
        return raise_in_zookeeper(self.connections, self.group, wanted, rollback.lowered)

    def _roll_to_snapshot(self, entry: Entry) -> Rollback:
        gate = self.connections.gate()
        _, rollback = self._planned_rollback(entry, "snapshot")
        entry = self._enter(State.ROLLING_TO_SNAPSHOT, entry)
        if rollback.to_kafka:
            commit_to_kafka(self.connections, self.group, rollback.to_kafka, gate)
        self._write_zookeeper(rollback)
        facts = self.known_facts(entry)
        self._refuse("rollback", live_refusals(facts))
        self._enter(State.ROLLED_BACK, entry)
        return rollback

    def _write_zookeeper(self, rollback: Rollback) -> None:
        failed = GroupStore(self.connections.zk).commit_offsets(self.group, rollback.to_zookeeper)
        gone = [Delete(paths.offset(self.group, *tp)) for tp in rollback.remove_from_zookeeper]
        errors = [*failed.values(), *self.connections.zk.pipeline(gone)]
        self._refuse("rollback", [str(e) for e in errors if isinstance(e, ZooKeeperError)])

    def _await_confirmations(self, step: str, entry: Entry) -> None:
        """Wait until every live kafka08 member follows the order of `entry`."""
        assert entry.order is not None, "a step with members to wait for orders something"
        left = await_confirmations(
            self.connections, {self.group: entry.order}, self._confirmation_timeout_s
        )
        self._refuse(step, unconfirmed(left.get(self.group, ())))

    def _behind_in_kafka(self, entry: Entry) -> list[str]:
        """`not_level`, where it lasts for a while. Of a stopped group Kafka is brought up here."""
        found: list[str] = []

        def is_level() -> bool:
            gate = self.connections.gate()
            facts = self.known_facts(entry)
            if facts.unavailable is None and not facts.is_live:
                low = [p.topic_partition for p in left_behind(facts, entry)]
                raise_in_kafka(self.connections, self.group, low, gate)
            found[:] = not_level(facts, entry)
            return not found

        return [] if self._wait_for(is_level) else found

    def _kafka_only(self, facts: GroupFacts, entry: Entry) -> list[Member]:
        """Other members whose partitions in Kafka stay behind ZooKeeper during the whole wait for
        confirmations."""
        foreign = [m for m in facts.members if not m.is_ours]
        found: list[Member] = []

        def none_is() -> bool:
            now = self.known_facts(entry)
            low = [p for p in now.partitions if (p.kafka or 0) > (p.zookeeper or 0)]
            found[:] = [m for m in foreign if any(m.owns(p.thread_id) for p in low)]
            return not found

        return [] if not foreign or self._wait_for(none_is) else found

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        return wait_for(condition, self.connections, self._confirmation_timeout_s)

    def _is_mirrored(self) -> bool:
        return self.connections.zk.exists(paths.migration_mirror(self.group))

    def _refuse(self, step: str, reasons: Sequence[str]) -> None:
        refuse(step, self.group, reasons)
