"""Watches both stores of groups for some time and says whether they can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import GroupFacts, read_many
from kafka08.errors import KafkaError, ZooKeeperError
from kafka08.migration.commit_times import with_commit_times
from kafka08.migration.facts import RETENTION_MS
from kafka08.migration.journal import Entry
from kafka08.migration.members import behind, instructions
from kafka08.migration.plan import (
    coordinated_refusals,
    differences,
    group_refusals,
    verification_problems,
)
from kafka08.migration.reading import zookeeper_offsets_of
from kafka08.migration.results import raised
from kafka08.migration.sampling import PartitionVerdict, Rules, Sample, judge
from kafka08.observe.commit_times import CommitTimes
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage

COMMIT_SLACK_MS = 2000
"""How long a commit itself may take."""


@dataclass(frozen=True, slots=True)
class Watching:
    """How to watch a live group.

    seconds        for how long; None: two of its commit intervals and some more
    interval_ms    the commit interval; None: the longest one of the members
    period_s       time between two samples
    allow_idle     do not ask members that are not ours to show by movement what they do
    retention_ms   the brokers' offsets.retention.minutes
    on_sample      told (samples so far, samples planned)
    """

    seconds: float | None = None
    interval_ms: int | None = None
    period_s: float = 1.0
    allow_idle: bool = False
    retention_ms: int = RETENTION_MS
    on_sample: Callable[[int, int], None] = lambda done, planned: None

    def interval_of(self, facts: GroupFacts) -> int:
        """Within it both stores must meet."""
        if self.interval_ms is not None:
            return self.interval_ms
        return COMMIT_SLACK_MS + max((m.commit_interval_ms for m in facts.members), default=0)

    def seconds_for(self, facts: GroupFacts) -> float:
        return 2 * self.interval_of(facts) / 1000 if self.seconds is None else self.seconds


@dataclass(frozen=True, slots=True)
class Verification:
    """The state of a group, and its problems; none if both stores agree.

    samples   how often both stores were read; 0 for a stopped group
    seconds   for how long it was watched
    """

    group: str
    storage: OffsetStorage
    facts: GroupFacts
    partitions: tuple[PartitionVerdict, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()
    samples: int = 0
    seconds: float = 0.0
    at_ms: int = 0

    @property
    def is_verified(self) -> bool:
        return not self.problems


def watch(
    connections: Connections,
    group: str,
    storage: OffsetStorage,
    watching: Watching,
    entry: Entry,
    *,
    times: CommitTimes | None = None,
) -> Verification:
    """`watch_many` of one group; its error is raised."""
    found = watch_many(connections, {group: entry}, storage, watching, times=times)
    return raised(found[group])


def watch_many(
    connections: Connections,
    entries: Mapping[str, Entry],
    storage: OffsetStorage,
    watching: Watching,
    *,
    times: CommitTimes | None = None,
) -> dict[str, Verification | KafkaError]:
    """Watch live groups, all in one loop; look once at stopped ones. group → its verification, or
    the error that it met. Raises Interrupted between two samples.

    entries   group → its journal
    storage   what its members should do
    times     of commits; None: read for these groups
    """
    began = connections.runtime.monotonic()
    snapshots = {group: entry.snapshot for group, entry in entries.items()}
    facts = {f.group: f for f in read_many(list(entries), connections, snapshots)}
    live = [f for f in facts.values() if f.is_live]
    samples, errors = _samples(connections, live, watching)
    seconds = connections.runtime.monotonic() - began
    again = [f.group for f in live if f.group not in errors]
    facts |= {f.group: f for f in read_many(again, connections, snapshots)}
    times = times or CommitTimes(connections.cluster, connections.runtime)
    found: dict[str, Verification | KafkaError] = {}
    for group, entry in entries.items():
        connections.check_interrupt()
        if group in errors:
            found[group] = errors[group]
            continue
        found[group] = _verification(
            with_commit_times(facts[group], times),
            samples.get(group, []),
            seconds if group in samples else 0.0,
            storage,
            watching,
            entry,
            connections.runtime.time_ms(),
        )
    return found


def _verification(
    facts: GroupFacts,
    samples: Sequence[Sample],
    seconds: float,
    storage: OffsetStorage,
    watching: Watching,
    entry: Entry,
    now_ms: int,
) -> Verification:
    interval_ms = watching.interval_of(facts)
    rules = Rules(interval_ms, storage, watching.allow_idle, watching.retention_ms, now_ms)
    verdicts = tuple(judge(facts, samples, rules))
    notes = [f"{v.facts.topic_partition}: {n}" for v in verdicts for n in v.notes]
    if storage is OffsetStorage.DUAL and not facts.is_live:
        problems = verification_problems(facts, entry)
        notes += [text for text in differences(facts) if text not in problems]
    else:
        problems = group_refusals(facts)
    if storage is OffsetStorage.DUAL:
        problems += coordinated_refusals(facts)
    if storage is OffsetStorage.KAFKA and facts.unavailable is None:
        problems += [p.disagreement for p in facts.missing_in_kafka]
    if facts.is_live and entry.order is not None:
        problems += [f"{m} has not confirmed" for m in behind(facts.members, entry.order)]
    problems += [f"{v.facts.topic_partition}: {p}" for v in verdicts for p in v.problems]
    return Verification(
        facts.group,
        storage,
        facts,
        verdicts,
        tuple(problems),
        tuple(notes),
        tuple(instructions(facts.members, storage)),
        len(samples),
        seconds,
        now_ms,
    )


def _samples(
    connections: Connections, groups: Sequence[GroupFacts], watching: Watching
) -> tuple[dict[str, list[Sample]], dict[str, KafkaError]]:
    """group → its samples; and group → the error that ended its watch."""
    planned = {
        f.group: max(1, round(watching.seconds_for(f) / watching.period_s)) + 1 for f in groups
    }
    partitions = {f.group: sorted(p.topic_partition for p in f.partitions) for f in groups}
    samples: dict[str, list[Sample]] = {f.group: [] for f in groups}
    errors: dict[str, KafkaError] = {}
    most = max(planned.values(), default=0)
    for number in range(1, most + 1):
        connections.check_interrupt()
        left = [g for g in planned if planned[g] >= number and g not in errors]
        _sample(connections, {g: partitions[g] for g in left}, samples, errors)
        watching.on_sample(number, most)
        if number < most:
            connections.pause(watching.period_s)
    return samples, errors


def _sample(
    connections: Connections,
    partitions: Mapping[str, list[TopicPartition]],
    samples: Mapping[str, list[Sample]],
    errors: dict[str, KafkaError],
) -> None:
    """ZooKeeper first: with dual commit, what it has must be in Kafka already."""
    at_ms = connections.runtime.time_ms()
    in_zookeeper = zookeeper_offsets_of(partitions, connections)
    in_kafka = connections.coordinators.fetch_once(partitions)
    for group, of_group in in_zookeeper.items():
        try:
            found = of_group.checked()
        except ZooKeeperError as error:
            errors[group] = error
            continue
        kafka = in_kafka[group]
        samples[group].append(
            Sample(
                at_ms,
                {tp: o for tp, (o, _) in found.items() if o != NO_OFFSET},
                None
                if isinstance(kafka, KafkaError)
                else {tp: o for tp, o in kafka.items() if o != NO_OFFSET},
            )
        )
