"""Assigns the replicas of a new topic to brokers. Pure. Source: kafka.admin.AdminUtils 0.8.2.2, and
0.10.2.2 for racks.

Leaders are assigned round robin from a random broker on. The followers of a partition start at a
random distance from it, which grows by one with each round of the leaders, so that the partitions
led by one broker have their followers on different brokers:

    broker          0    1    2    3    4          (start 0, shift 0)
    first replica   p0   p1   p2   p3   p4
                    p5   p6   p7   p8   p9
    second          p4   p0   p1   p2   p3
                    p8   p9   p5   p6   p7
    third           p3   p4   p0   p1   p2
                    p7   p8   p9   p5   p6

With the racks of the brokers, the same is done with the brokers in another order, one of each rack
in turn, and a follower skips brokers of a rack that has a replica while another rack has none. So
each rack has a replica of a partition, or at most one if there are fewer replicas than racks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count as count_from
from itertools import zip_longest
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from kafka08.config import INT_MAX
from kafka08.errors import AdminError, PartitionsOnlyGrow, TooFewBrokers

Racks: TypeAlias = Mapping[int, str | None]
"""Broker → rack; a broker with an unknown rack has None, or is missing."""
NO_RACKS: Final[Racks] = MappingProxyType({})
PARTITIONS_MAX: Final = 100_000
"""The most partitions of a topic. The znode with the replicas of more exceeds 1 MB, which ZooKeeper
refuses by default; and a mistyped count must not cost the memory of this machine."""
REPLICAS_MAX: Final = 1000
"""The most replicas of a partition, each on a broker of its own. Readers refuse the znode of a
topic with more: the controller sends each replica the whole list, so a text of a megabyte would
cost it hours."""


class RandomSource(Protocol):
    """The methods used of random.Random."""

    def randrange(self, stop: int, /) -> int: ...


def assign_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    start_index: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
    *,
    racks: Racks = NO_RACKS,
    rng: RandomSource | None = None,
) -> dict[int, tuple[int, ...]]:
    """partition → replicas for `partitions` partitions numbered from `first_partition`.

    brokers       ids of the live brokers, sorted
    start_index   index in `brokers` for partition 0; None: drawn from `rng`
    shift         distance of the first follower; None: drawn from `rng`
    racks         broker → rack, for all brokers or for none

    AdminError if a count is not positive, the topic gets more than PARTITIONS_MAX, there are too
    few brokers, or only some of them have a rack.
    """
    count = len(brokers)
    if partitions <= 0:
        raise AdminError("number of partitions must be larger than 0")
    if first_partition + partitions > PARTITIONS_MAX:
        raise AdminError(
            f"number of partitions must be at most {PARTITIONS_MAX}, not "
            f"{first_partition + partitions}: ZooKeeper has the replicas of a topic in one znode"
        )
    if replication_factor <= 0:
        raise AdminError("replication factor must be larger than 0")
    if replication_factor > count:
        raise TooFewBrokers(
            f"replication factor: {replication_factor} larger than available brokers: {count}"
        )
    if start_index is None or shift is None:
        assert rng is not None, "without both start_index and shift a random source is needed"
        start_index = rng.randrange(count) if start_index is None else start_index
        shift = rng.randrange(count) if shift is None else shift
    known_racks = _racks_of(brokers, racks)
    order = _alternated(known_racks) if known_racks else brokers
    assigned = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        leader = (partition + start_index) % count
        if known_racks:
            assigned[partition] = _over_racks(order, leader, shift, replication_factor, known_racks)
        else:
            followers = (_follower(leader, shift, j, count) for j in range(replication_factor - 1))
            assigned[partition] = tuple(order[i] for i in (leader, *followers))
    return assigned


def racks_if_all_known(brokers: Iterable[int], racks: Racks) -> Racks:
    """The racks, or none if any is unknown: for a broker that creates a topic by itself
    (RackAwareMode.Safe)."""
    return racks if all(racks.get(broker) is not None for broker in brokers) else NO_RACKS


def assign_added_partitions(
    brokers: Sequence[int],
    existing: Mapping[int, Sequence[int]],
    total: int,
    racks: Racks = NO_RACKS,
) -> dict[int, tuple[int, ...]]:
    """partition → replicas of the partitions that raise a topic's count to `total`.

    They get the replication factor of the existing ones. Nothing is random: start and shift are
    both the first replica of partition 0. AdminError if the count would not rise, without existing
    partitions, if these are not numbered from 0 on (a new one would replace one of them), or if the
    first has no replicas.

    0.8: that replica is a broker *id* used as an index into the sorted ids, and 0.8.2.2 takes it
    from whichever partition its hash map gives first; any choice is a valid assignment.
    """
    if total <= len(existing):
        raise PartitionsOnlyGrow("The number of partitions for a topic can only be increased")
    if not existing:
        raise AdminError("The topic has no partitions; delete it, then create it again")
    if sorted(existing) != list(range(len(existing))):
        raise AdminError(
            "The topic's partitions are not numbered from 0 without gaps, so a new one could "
            "replace one of them"
        )
    replicas = existing[0]
    if not replicas:
        raise AdminError(
            "Partition 0 of the topic has no replicas, so the replication factor is unknown; "
            "delete the topic, then create it again"
        )
    return assign_replicas(
        brokers,
        total - len(existing),
        len(replicas),
        start_index=replicas[0],
        shift=replicas[0],
        first_partition=len(existing),
        racks=racks,
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
    """AdminError unless partitions run from 0, at most PARTITIONS_MAX, each has as many replicas,
    at most REPLICAS_MAX, on different brokers, their ids are legal, and (with `live`) those brokers
    are alive."""
    if sorted(assignment) != list(range(len(assignment))) or not assignment:
        raise AdminError(f"partitions must be numbered from 0 without gaps: {sorted(assignment)}")
    sizes = {len(replicas) for replicas in assignment.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise AdminError("All partitions should have the same number of replicas.")
    for what, count, most in (
        ("partitions", len(assignment), PARTITIONS_MAX),
        ("replicas of a partition", max(sizes), REPLICAS_MAX),
    ):
        if count > most:
            raise AdminError(f"number of {what} must be at most {most}, not {count}")
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


def _racks_of(brokers: Sequence[int], racks: Racks) -> dict[int, str]:
    """The rack of every broker; {} if none has one. AdminError if only some have."""
    known = {broker: rack for broker in brokers if (rack := racks.get(broker)) is not None}
    unknown = [broker for broker in brokers if broker not in known]
    if known and unknown:
        raise AdminError(
            f"Not all brokers have rack information: brokers {', '.join(map(str, unknown))} have "
            "no broker.rack. Set it, or ignore the racks"
        )
    return known


def _alternated(racks: Mapping[int, str]) -> list[int]:
    """The brokers, one of each rack in turn, by rack and id."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for one_of_each in rounds for broker in one_of_each if broker is not None]


def _over_racks(
    order: Sequence[int],
    leader: int,
    shift: int,
    replication_factor: int,
    racks: Mapping[int, str],
) -> tuple[int, ...]:
    """The replicas of one partition, starting with the one at `leader`."""
    rack_count = len(set(racks.values()))
    replicas = [order[leader]]
    taken = {racks[order[leader]]}
    for step in count_from():
        if len(replicas) == replication_factor:
            break
        broker = order[_follower(leader, shift * rack_count, step, len(order))]
        if broker not in replicas and (racks[broker] not in taken or len(taken) == rack_count):
            replicas.append(broker)
            taken.add(racks[broker])
    return tuple(replicas)
