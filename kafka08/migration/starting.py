"""The step `start`, of one group or of many together.

Each stage is done for all groups before the next one begins, so that ZooKeeper and the coordinators
are asked in pipelines. A group with an error drops out. The writes of a group always come in the
order journal (COPYING), commits to Kafka, journal (DUAL), so an interruption is harmless anywhere.

Two tools at once are not: a copy that is late would overwrite what members have committed since the
other tool reached DUAL. So a tool copies while it holds an ephemeral znode below the journal, and
sends no commit once its session is in doubt. A request that is under way when the session ends may
still come late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka08.admin.committing import commit_to_kafka_of
from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import GroupFacts
from kafka08.errors import KafkaError, MigrationError, NodeExists, ZooKeeperError
from kafka08.migration.facts import snapshot_of
from kafka08.migration.journal import (
    Entry,
    State,
    begun,
    entered,
    follows,
    read_journals,
    unfinished,
    write_journals,
)
from kafka08.migration.plan import Plan, Terms, make_plan
from kafka08.migration.results import errors_of, refusal
from kafka08.migration.waiting import await_confirmations, unconfirmed, wait_for
from kafka08.migration.writing import raise_in_kafka_of, raise_in_zookeeper
from kafka08.observe.members import Member, read_members_of
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.migration_protocol import OffsetStorage, Order
from kafka08.zk.operations import Create, Delete, Exists, Stat

BEGINS_ANEW = frozenset({None, State.COPYING, State.ROLLED_BACK})


@dataclass(slots=True)
class _Start:
    """The progress of one group."""

    facts: GroupFacts
    plan: Plan
    """Made once the journal was read."""
    entry: Entry | None = None
    error: KafkaError | None = None

    @property
    def state(self) -> State | None:
        return None if self.entry is None else self.entry.state


class Starting:
    """Starts the migration of groups, once; see `OffsetMigration.start` for repetitions."""

    def __init__(
        self,
        connections: Connections,
        groups: Sequence[GroupFacts],
        terms: Terms,
        timeout_s: float,
    ) -> None:
        self._connections = connections
        self._terms = terms
        self._timeout_s = timeout_s
        self._gate = connections.gate()
        self._starts = {facts.group: _Start(facts, Plan(facts.group, (), ())) for facts in groups}

    def run(self) -> dict[str, Plan | KafkaError]:
        """group → the executed plan, or the error. Raises ZooKeeperError if the progress is
        unknown."""
        self._read_journals()
        self._plan()
        held = self._hold([start for start in self._left() if start.entry is not None])
        try:
            new = [start for start in self._left() if start.entry is None]
            copying = self._begin()
            held += self._hold([start for start in new if start.error is None])
            self._copy()
            self._refuse_newcomers(copying)
            self._order_dual()
        finally:
            self._connections.zk.pipeline([Delete(path) for path in held])
        self._await_confirmations()
        return {group: s.error or s.plan for group, s in self._starts.items()}

    def _left(self) -> Iterator[_Start]:
        return (start for start in self._starts.values() if start.error is None)

    def _fail(self, errors: Mapping[str, KafkaError]) -> None:
        for group, error in errors.items():
            self._starts[group].error = error

    def _read_journals(self) -> None:
        found = read_journals(self._connections.zk, [s.plan.group for s in self._left()])
        self._fail(errors_of(found))
        for start in self._left():
            entry = found[start.plan.group]
            assert not isinstance(entry, KafkaError)
            start.entry, start.error = entry, state_error(start.plan.group, entry)

    def _plan(self) -> None:
        for start in self._left():
            start.plan = make_plan(start.facts, start.entry, self._terms)
            start.error = refusal("start", start.plan.group, start.plan.refusals)

    def _begin(self) -> list[_Start]:
        """Write the journals of groups that begin, or that continue an interrupted copy."""
        copying = [start for start in self._left() if start.state in BEGINS_ANEW]
        now_ms = self._connections.runtime.time_ms()
        self._write(
            copying,
            lambda s: begun(s.plan.group, snapshot_of(s.facts.partitions), now_ms, s.entry),
        )
        return copying

    def _hold(self, starts: Sequence[_Start]) -> list[str]:
        """Keep other tools from copying offsets of these groups; the znodes that do. The journals
        exist. Waits for the end of a tool that was killed: ZooKeeper notices it at the end of its
        session."""
        zk = self._connections.zk
        held: list[str] = []
        left = {paths.migration_copy(start.plan.group): start for start in starts}

        def all_are_held() -> bool:
            # A Create is a write for the whole ensemble even if it is refused, so look first.
            results = dict(zip(left, zk.pipeline([Exists(path) for path in left]), strict=True))
            free = [path for path, stat in results.items() if stat is None]
            made = zk.pipeline([Create(path, ephemeral=True) for path in free])
            results.update(zip(free, made, strict=True))
            for path, result in results.items():
                is_own = isinstance(result, Stat) and result.ephemeral_owner == zk.session_id
                if isinstance(result, NodeExists | Stat) and not is_own:
                    continue  # another tool holds it
                start = left.pop(path)
                if isinstance(result, ZooKeeperError):
                    start.error = result
                else:
                    held.append(path)
            return not left

        wait_for(all_are_held, self._connections, zk.granted_timeout_ms / 1000 + 1)
        for path, start in left.items():
            start.error = MigrationError(
                f"another tool copies the offsets of {start.plan.group} to Kafka ({path}); wait "
                "until it ends, then look at the migration's status"
            )
        return held

    def _copy(self) -> None:
        """Copy newer offsets of ZooKeeper to Kafka, where no member does it, and bring both stores
        to the one that the operator says."""
        raised: dict[str, list[TopicPartition]] = {}
        lowered: dict[str, Mapping[TopicPartition, int]] = {}
        for start in self._left():
            plan = start.plan
            by_members = start.state is not State.COPYING and start.facts.is_live
            wanted = {s.facts.topic_partition for s in plan.steps if s.by_word or not by_members}
            raised[plan.group] = [tp for tp in plan.copies if tp in wanted - plan.lowered.keys()]
            if plan.lowered:
                lowered[plan.group] = plan.lowered
        self._fail(errors_of(raise_in_kafka_of(self._connections, raised, self._gate)))
        self._fail(errors_of(commit_to_kafka_of(self._connections, lowered, self._gate)))
        for start in self._left():
            if back := start.plan.copies_back:
                offsets = {tp: offset for tp, (offset, _) in back.items()}
                replaced = {tp: former for tp, (_, former) in back.items()}
                try:
                    raise_in_zookeeper(self._connections, start.plan.group, offsets, replaced)
                except KafkaError as error:
                    start.error = error

    def _refuse_newcomers(self, copying: Sequence[_Start]) -> None:
        """Members that joined during the copy and read Kafka have read a partial copy."""
        looked_at = [start for start in copying if start.error is None]
        members = read_members_of(self._connections.zk, [s.plan.group for s in looked_at])
        for start in looked_at:
            known = {member.consumer_id for member in start.facts.members}
            new = [m for m in members[start.plan.group] if m.consumer_id not in known]
            if unsafe := [str(m) for m in new if _has_read_kafka(m)]:
                text = (
                    f"members joined during this step, stop them and repeat it: {', '.join(unsafe)}"
                )
                start.error = refusal("start", start.plan.group, [text])

    def _order_dual(self) -> None:
        now_ms = self._connections.runtime.time_ms()
        ordered = [start for start in self._left() if start.state is not State.VERIFIED]
        self._write(ordered, lambda s: entered(s.plan.group, State.DUAL, _entry(s), now_ms))

    def _await_confirmations(self) -> None:
        waiting = {s.plan.group: _order(s) for s in self._left()}
        for group, names in await_confirmations(
            self._connections, waiting, self._timeout_s
        ).items():
            self._starts[group].error = refusal("start", group, unconfirmed(names))

    def _write(self, starts: Sequence[_Start], next_entry: Callable[[_Start], Entry]) -> None:
        entries = {}
        for start in starts:
            try:
                entries[start.plan.group] = next_entry(start)
            except MigrationError as error:
                start.error = error
        for group, written in write_journals(self._connections.zk, entries).items():
            if isinstance(written, MigrationError):
                self._starts[group].error = written
            else:
                self._starts[group].entry = written


def preview_start(facts: GroupFacts, entry: Entry | MigrationError | None, terms: Terms) -> Plan:
    """The plan of `start`, also with the refusal of a migration that has gone further or whose
    journal, `entry`, cannot be read."""
    error = entry if isinstance(entry, MigrationError) else state_error(facts.group, entry)
    plan = make_plan(facts, None if isinstance(entry, MigrationError) else entry, terms)
    return plan if error is None else replace(plan, refusals=(str(error), *plan.refusals))


def state_error(group: str, entry: Entry | None) -> MigrationError | None:
    """Why a migration in this state cannot be started; None if it can: `start` enters COPYING, or
    DUAL again."""
    if follows(State.COPYING, entry) or follows(State.DUAL, entry):
        return None
    return MigrationError(unfinished(group, entry))


def _has_read_kafka(member: Member) -> bool:
    return not member.is_ours or member.configured is OffsetStorage.KAFKA


def _entry(start: _Start) -> Entry:
    assert start.entry is not None, "its journal was written"
    return start.entry


def _order(start: _Start) -> Order:
    order = _entry(start).order
    assert order is not None, "DUAL and VERIFIED order both stores"
    return order
