"""The assignment strategies: partition → stream. Pure; every member computes the result for itself.

It must be the result of the JVM connector for the same members, or the members of mixed groups
would claim each other's partitions for ever. Both functions return the whole assignment, of which
a member claims its own part. Threads are named `<consumer id>-<n>` and sort as strings, so
`x-10` comes before `x-2`. Source: kafka.consumer.PartitionAssignor 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TypeAlias

from kafka08.errors import ConsumerRebalanceFailed
from kafka08.hashing import java_string_hash
from kafka08.structs import TopicPartition

Assignment: TypeAlias = dict[TopicPartition, str]
"""partition → thread id of the stream that reads it."""


def range_assign(
    partitions: Mapping[str, Sequence[int]], threads: Mapping[str, Iterable[str]]
) -> Assignment:
    """Topic by topic: sorted threads get consecutive runs of the sorted partitions. If the division
    leaves a remainder, the first threads get one more each.

    partitions   topic → its partition numbers, in any order
    threads      topic → the thread ids that subscribe to it; a topic without any has no owner
    """
    assignment: Assignment = {}
    for topic, numbers in partitions.items():
        readers = sorted(threads.get(topic, ()))
        if not readers:
            continue
        ordered = sorted(numbers)
        each, extra = divmod(len(ordered), len(readers))
        start = 0
        for position, thread in enumerate(readers):
            end = start + each + (position < extra)
            for number in ordered[start:end]:
                assignment[TopicPartition(topic, number)] = thread
            start = end
    return assignment


def round_robin_assign(
    partitions: Mapping[str, Sequence[int]], threads: Mapping[str, Iterable[str]]
) -> Assignment:
    """All partitions, sorted by the Java hash of `[topic,partition]`, are dealt in turn to all
    sorted threads. The condition below includes topics without partitions, as in 0.8.2.2.

    Raises ConsumerRebalanceFailed unless every topic has the same set of threads. Equal hashes
    (never of one topic's partitions) are ordered by topic name and number; 0.8.2.2 leaves their
    order to a hash map.
    """
    sets = {topic: frozenset(readers) for topic, readers in threads.items()}
    if not sets:
        return {}
    first_topic, first = min(sets.items())
    for topic, readers in sorted(sets.items()):
        if readers != first:
            raise ConsumerRebalanceFailed(
                "round-robin assignment needs every topic to be subscribed to by the same streams: "
                f"{topic} has {sorted(readers)}, {first_topic} has {sorted(first)}"
            )
    ordered = sorted(
        TopicPartition(topic, number) for topic in sets for number in partitions.get(topic, ())
    )
    # A stable sort: equal hashes stay in the order of topic and number.
    ordered.sort(key=lambda partition: java_string_hash(str(partition)))
    return dict(zip(ordered, cycle(sorted(first)), strict=False)) if first else {}
