"""Whether both stores agree while a group runs, judged from samples. Pure.

Members with dual commit write Kafka first, then ZooKeeper; a sample reads ZooKeeper first, then
Kafka. So within a commit interval each store must reach what the other one had, neither may go
back, and if one moves the other must, unless it was ahead. Two effects of 0.8.2.2 brokers are only
notes: Kafka's offset may vanish for a moment (the coordinator is loading, or a member without a
position has committed -1), or go back once and recover (a load has overwritten a commit with an
older one). They are problems if they last until the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kafka08.admin.group_facts import GroupFacts, Offset
from kafka08.observe.group import PartitionFacts
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage

LEVEL: Final = (
    "nobody owns it, so no member brings the stores together: repeat kafka08 migrate start, with "
    "--store-that-counts"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Both stores at one time, as offsets by partition where there are some. `kafka` is None if the
    coordinator did not respond."""

    at_ms: int
    zookeeper: Mapping[TopicPartition, int]
    kafka: Mapping[TopicPartition, int] | None


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """One partition over the time of the samples.

    moved_zookeeper, moved_kafka   messages by which either store advanced
    apart                          the largest distance between both at one time
    problems                       why it cannot be trusted; empty if it can
    notes                          worth knowing
    """

    facts: PartitionFacts
    moved_zookeeper: int
    moved_kafka: int
    apart: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_agreed(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Rules:
    """interval_ms      within it both stores must meet: the longest commit interval, and some time
                     for the commit itself
    storage          the order: dual: both stores move; kafka: ZooKeeper's offsets must not move
    allow_idle       a partition that another client owns may be idle
    retention_ms     after it Kafka forgets an offset that is not committed again
    now_ms           the time, to count that from
    """

    interval_ms: int
    storage: OffsetStorage
    allow_idle: bool = False
    retention_ms: int | None = None
    now_ms: int = 0


def judge(facts: GroupFacts, samples: Sequence[Sample], rules: Rules) -> list[PartitionVerdict]:
    """The verdict for every partition that exists. `facts` were read at the end. Without samples
    there are no problems, only notes."""
    return [_judge_one(facts, p, samples, rules) for p in facts.partitions if p.exists]


def _judge_one(
    group: GroupFacts, facts: PartitionFacts, samples: Sequence[Sample], rules: Rules
) -> PartitionVerdict:
    tp = facts.topic_partition
    with_kafka = [s for s in samples if s.kafka is not None]
    pairs = [(s.at_ms, s.zookeeper.get(tp), (s.kafka or {}).get(tp)) for s in with_kafka]
    zookeeper = [z for _, z, _ in pairs if z is not None]
    kafka = [k for _, _, k in pairs if k is not None]
    moved = (_movement(zookeeper), _movement(kafka))
    apart = max((abs(z - k) for _, z, k in pairs if z is not None and k is not None), default=0)
    whole = bool(pairs) and pairs[-1][0] - pairs[0][0] >= rules.interval_ms
    owner = group.owner(facts)
    problems = [*_went_back("ZooKeeper", zookeeper)]
    notes = [*_vanished(pairs)]
    (notes if _recovered(kafka) else problems).extend(_went_back("Kafka", kafka))
    if not samples:
        pass
    elif group.is_abandoned(facts):
        problems.clear()
        notes.append(
            f"no member reads the topic, and its log has no such offset: {facts.disagreement}"
        )
    elif owner is None and pairs and not zookeeper and kafka:
        notes.append(f"nobody owns it, and Kafka alone has an offset: {kafka[-1]}")
    elif rules.storage is OffsetStorage.DUAL:
        found = _disagreements(pairs, rules.interval_ms)
        problems += found if owner is not None else (f"{text}; {LEVEL}" for text in found)
        if whole:
            problems += _one_store_only(moved, pairs[-1])
    elif moved[0]:
        problems.append(f"ZooKeeper's offset still moves, by {moved[0]}")
    elif whole and owner is not None and not moved[1]:
        notes += _stalled(facts)
    if owner is not None and not owner.is_ours:
        where = f"owned by {owner.consumer_id}, which is not a kafka08 member"
        problems = [f"{problem} ({where})" for problem in problems]
        if samples and not any(moved) and not problems:
            still = f"nothing moved, so it is not proven what its owner does ({where})"
            if rules.allow_idle:
                notes.append(still)
            else:
                problems.append(f"{still}; trust it with --allow-idle")
    notes += _never_committed(facts)
    notes += _expiry(facts, rules)
    return PartitionVerdict(facts, *moved, apart, tuple(problems), tuple(notes))


def _movement(offsets: Sequence[int]) -> int:
    return offsets[-1] - offsets[0] if offsets else 0


def _went_back(store: str, offsets: Sequence[int]) -> Iterator[str]:
    for before, after in pairwise(offsets):
        if after < before:
            yield f"{store}'s offset went back from {before} to {after}"
            return


def _recovered(offsets: Sequence[int]) -> bool:
    """Whether the offsets went back once and then reached their former value again. A loading
    coordinator of 0.8.2.2 accepts commits, and overwrites them with the loaded offsets until the
    next commits."""
    steps = [n for n, (before, after) in enumerate(pairwise(offsets)) if after < before]
    return len(steps) == 1 and max(offsets[steps[0] + 1 :]) >= offsets[steps[0]]


Pair = tuple[int, Offset, Offset]
"""(time in ms, ZooKeeper's offset, Kafka's)."""


def _vanished(pairs: Sequence[Pair]) -> Iterator[str]:
    """Kafka had an offset, then none, then one again."""
    kafka = [k for _, _, k in pairs]
    for n in range(1, len(kafka) - 1):
        if kafka[n] is None and kafka[n - 1] is not None and any(k is not None for k in kafka[n:]):
            yield (
                "Kafka's offset vanished for a moment: its coordinator was loading, or a member "
                "without a position has committed -1 (both known of 0.8.2.2 brokers and members)"
            )
            return


def _disagreements(pairs: Sequence[Pair], interval_ms: int) -> Iterator[str]:
    """A sample that the other store has not reached an interval later; the last one if the group
    was watched for less."""
    if not pairs:
        yield "the coordinator never responded"
        return
    last_ms = pairs[-1][0]
    whole = last_ms - pairs[0][0] >= interval_ms
    for at_ms, zookeeper, kafka in pairs:
        # What was seen too late to be followed for an interval is not judged; of a group that was
        # watched for less, the last sample is.
        if at_ms + interval_ms > last_ms and (whole or at_ms != last_ms):
            continue
        later = [p for p in pairs if at_ms <= p[0] <= at_ms + interval_ms]
        if zookeeper is not None and not any(k is not None and k >= zookeeper for _, _, k in later):
            have = "nothing" if later[-1][2] is None else str(later[-1][2])
            yield f"ZooKeeper had {zookeeper}, Kafka {have} up to {interval_ms} ms later"
            return
        if kafka is not None and not any(z is not None and z >= kafka for _, z, _ in later):
            have = "nothing" if later[-1][1] is None else str(later[-1][1])
            yield f"Kafka had {kafka}, ZooKeeper {have} up to {interval_ms} ms later"
            return


def _one_store_only(moved: tuple[int, int], last: Pair) -> Iterator[str]:
    """One store moved, and the other did not and is behind now. One that does not move but is level
    was ahead at first: the first sample lay within a commit."""
    _, zookeeper, kafka = last
    if moved[0] and not moved[1] and (kafka is None or zookeeper is None or kafka < zookeeper):
        yield f"ZooKeeper's offset moved by {moved[0]}, Kafka's did not move"
    if moved[1] and not moved[0] and (zookeeper is None or kafka is None or zookeeper < kafka):
        yield f"Kafka's offset moved by {moved[1]}, ZooKeeper's did not move"


def _stalled(facts: PartitionFacts) -> Iterator[str]:
    """Kafka's offset did not move for an interval although there are messages to read."""
    at = facts.log_start if facts.kafka is None else facts.kafka
    if at is not None and facts.log_end is not None and at < facts.log_end:
        yield (
            f"Kafka's offset did not move with {facts.log_end - at} messages to read: its owner "
            "reads nothing, or does not commit"
        )


def _never_committed(facts: PartitionFacts) -> Iterator[str]:
    if facts.never_committed:
        yield "never committed: auto.offset.reset decides where its next owner begins"


def _expiry(facts: PartitionFacts, rules: Rules) -> Iterator[str]:
    if rules.retention_ms is None:
        return
    left_s = facts.seconds_left(rules.now_ms, rules.retention_ms)
    if left_s == 0:
        yield "it has no owner, and Kafka may forget its offset any moment (offsets.retention)"
    elif left_s is not None:
        left = hours_and_minutes(left_s)
        yield f"it has no owner: Kafka forgets its offset in {left} at the earliest"


def hours_and_minutes(seconds: int) -> str:
    """`26 h 5 min`."""
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min"
