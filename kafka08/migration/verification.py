"""Watches both stores of a group for some time and says whether they can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafka08.errors import KafkaError
from kafka08.groups.commit_times import CommitTimes
from kafka08.migration.commit_times import with_commit_times
from kafka08.migration.connections import Connections
from kafka08.migration.facts import RETENTION_MS, GroupFacts
from kafka08.migration.journal import Entry
from kafka08.migration.members import behind, instructions
from kafka08.migration.plan import differences, group_refusals, verification_problems
from kafka08.migration.reading import read_facts, zookeeper_offsets
from kafka08.migration.sampling import PartitionVerdict, Rules, Sample, judge
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
    """Watch a live group; look once at a stopped one.

    storage      what its members should do
    times        of commits; None: read for this group
    """
    began = connections.runtime.monotonic()
    facts = read_facts(group, connections, entry.snapshot)
    samples = _samples(connections, facts, watching) if facts.is_live else []
    seconds = connections.runtime.monotonic() - began
    if samples:
        facts = read_facts(group, connections, entry.snapshot)
    facts = with_commit_times(facts, times or CommitTimes(connections.cluster, connections.runtime))
    rules = Rules(
        watching.interval_of(facts),
        storage,
        watching.allow_idle,
        watching.retention_ms,
        connections.runtime.time_ms(),
    )
    verdicts = tuple(judge(facts, samples, rules))
    notes = [f"{v.facts.topic_partition}: {n}" for v in verdicts for n in v.notes]
    if storage is OffsetStorage.DUAL and not facts.is_live:
        problems = verification_problems(facts, entry)
        notes += [text for text in differences(facts) if text not in problems]
    else:
        problems = group_refusals(facts)
    if storage is OffsetStorage.KAFKA and facts.unavailable is None:
        problems += [p.disagreement for p in facts.missing_in_kafka]
    if facts.is_live and entry.order is not None:
        problems += [f"{m} has not confirmed" for m in behind(facts.members, entry.order)]
    problems += [f"{v.facts.topic_partition}: {p}" for v in verdicts for p in v.problems]
    return Verification(
        group,
        storage,
        facts,
        verdicts,
        tuple(problems),
        tuple(notes),
        tuple(instructions(facts.members, storage)),
        len(samples),
        seconds,
        connections.runtime.time_ms(),
    )


def _samples(connections: Connections, facts: GroupFacts, watching: Watching) -> list[Sample]:
    partitions = sorted(p.topic_partition for p in facts.partitions)
    planned = max(1, round(watching.seconds_for(facts) / watching.period_s)) + 1
    samples = []
    for number in range(1, planned + 1):
        samples.append(_sample(connections, facts.group, partitions))
        watching.on_sample(number, planned)
        if number < planned:
            connections.runtime.sleep(watching.period_s)
    return samples


def _sample(connections: Connections, group: str, partitions: list[TopicPartition]) -> Sample:
    """ZooKeeper first: with dual commit, what it has must be in Kafka already."""
    at_ms = connections.runtime.time_ms()
    found = zookeeper_offsets(group, partitions, connections)
    try:
        kafka = connections.kafka(group).fetch_once(partitions)
    except KafkaError:
        kafka = None
    return Sample(
        at_ms,
        {tp: offset for tp, (offset, _) in found.items()},
        None if kafka is None else {tp: o for tp, o in kafka.items() if o != NO_OFFSET},
    )
