"""Which brokers hold a new topic's replicas. Pure. Source: kafka.admin.AdminUtils 0.8.2.2.

Leaders are dealt out round robin from a random broker; the followers of a partition start a random
distance further on, and that distance grows by one each time the leaders have gone once round, so
that the partitions led by one broker have their followers on different brokers:

    broker          0    1    2    3    4          (start 0, shift 0)
    first replica   p0   p1   p2   p3   p4
                    p5   p6   p7   p8   p9
    second          p4   p0   p1   p2   p3
                    p8   p9   p5   p6   p7
    third           p3   p4   p0   p1   p2
                    p7   p8   p9   p5   p6
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kafka08.config import INT_MAX
from kafka08.errors import AdminError


class RandomSource(Protocol):
    """What is needed of random.Random."""

    def randrange(self, stop: int, /) -> int: ...


def assign_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    start_index: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
    *,
    rng: RandomSource | None = None,
) -> dict[int, tuple[int, ...]]:
    """partition → replicas for `partitions` partitions numbered from `first_partition`.

    brokers       ids of the live brokers, sorted
    start_index   where in `brokers` partition 0 would begin; None: drawn from `rng`
    shift         distance of the first follower; None: drawn from `rng`

    AdminError when the counts are not positive or there are too few brokers.
    """
    count = len(brokers)
    if partitions <= 0:
        raise AdminError("number of partitions must be larger than 0")
    if replication_factor <= 0:
        raise AdminError("replication factor must be larger than 0")
    if replication_factor > count:
        raise AdminError(
            f"replication factor: {replication_factor} larger than available brokers: {count}"
        )
    if start_index is None or shift is None:
        assert rng is not None, "without both start_index and shift a random source is needed"
        start_index = rng.randrange(count) if start_index is None else start_index
        shift = rng.randrange(count) if shift is None else shift
    assigned = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        leader = (partition + start_index) % count
        followers = (_follower(leader, shift, j, count) for j in range(replication_factor - 1))
        assigned[partition] = tuple(brokers[i] for i in (leader, *followers))
    return assigned


def assign_added_partitions(
    brokers: Sequence[int], existing: Mapping[int, Sequence[int]], total: int
) -> dict[int, tuple[int, ...]]:
    """partition → replicas of the partitions that raise a topic's count to `total`.

    They get the replication factor of the existing ones. Nothing is random: start and shift are
    both the first replica of partition 0. AdminError when the count would not rise, or there are
    no existing ones.

    0.8: that replica is a broker *id* used as an index into the sorted ids, and 0.8.2.2 takes it
    from whichever partition its hash map gives first; any choice is a valid assignment.
    """
    if total <= len(existing):
        raise AdminError("The number of partitions for a topic can only be increased")
    if not existing:
        raise AdminError("The topic has no partitions to go by; delete it, then create it anew")
    replicas = existing[min(existing)]
    return assign_replicas(
        brokers,
        total - len(existing),
        len(replicas),
        start_index=replicas[0],
        shift=replicas[0],
        first_partition=len(existing),
    )


def parse_assignment(text: str) -> dict[int, tuple[int, ...]]:
    """`0:1,1:2` (replicas of partition 0, of partition 1) as partition → replicas. AdminError."""
    try:
        lists = [tuple(int(part) for part in entry.split(":")) for entry in text.split(",")]
    except ValueError:
        raise AdminError(f"replica assignment {text!r} is not of the form 0:1,1:2") from None
    assignment = dict(enumerate(lists))
    check_assignment(assignment)
    return assignment


def check_assignment(
    assignment: Mapping[int, Sequence[int]], live: Collection[int] | None = None
) -> None:
    """AdminError unless partitions run from 0, each has as many replicas, on different brokers,
    their ids are possible ones, and (when `live` is given) those brokers are there."""
    if sorted(assignment) != list(range(len(assignment))) or not assignment:
        raise AdminError(f"partitions must be numbered from 0 without gaps: {sorted(assignment)}")
    sizes = {len(replicas) for replicas in assignment.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise AdminError("All partitions should have the same number of replicas.")
    for partition, replicas in assignment.items():
        if len(set(replicas)) != len(replicas):
            raise AdminError(
                f"Partition replica lists may not contain duplicate entries: partition "
                f"{partition} has {list(replicas)}"
            )
        if not all(0 <= replica <= INT_MAX for replica in replicas):
            raise AdminError(
                f"broker ids are numbers from 0 to {INT_MAX}: partition {partition} has "
                f"{list(replicas)}"
            )
        missing = sorted(set(replicas) - set(live)) if live is not None else []
        if missing:
            raise AdminError(
                f"some specified brokers not available: {missing} of partition {partition}, "
                f"available: {sorted(live or ())}"
            )


def _follower(leader: int, shift: int, number: int, count: int) -> int:
    """Index of a partition's follower; never the leader's, and different for each number."""
    return (leader + 1 + (shift + number) % (count - 1)) % count
