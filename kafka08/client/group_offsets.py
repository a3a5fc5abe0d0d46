"""The offsets of many groups in Kafka, from the coordinator of all of them.

One OffsetFetch asks about one group, so several requests are in flight together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kafka08.errors import (
    NO_ERROR,
    ApiError,
    ConsumerCoordinatorNotAvailable,
    NotCoordinatorForConsumer,
    OffsetsLoadInProgress,
    error_of,
)
from kafka08.network.connection import Connection
from kafka08.protocol.grouping import by_topic
from kafka08.protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from kafka08.structs import NO_OFFSET, TopicPartition

IN_FLIGHT_MAX: Final = 50
ENTRIES_IN_FLIGHT: Final = 4000
"""Partitions in the requests in flight, about 20 KB: the broker's socket takes them all, so neither
side ever waits for the other to read."""
ALL_PARTITIONS: Final = 2
"""The version of OffsetFetch that can ask for all partitions of a group (0.10.2)."""
OF_THE_GROUP: Final = (
    OffsetsLoadInProgress.code,
    ConsumerCoordinatorNotAvailable.code,
    NotCoordinatorForConsumer.code,
)
"""Errors that stand at each partition before 0.10.2, and are the group's."""


class GroupOffsets:
    """Asks for the offsets of `partitions`; those of others are left out."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self._partitions = frozenset(partitions)
        self._topics = [
            OffsetFetchTopic(topic, [number for number, _ in items])
            for topic, items in by_topic(dict.fromkeys(sorted(self._partitions))).items()
        ]

    def ask(
        self, connection: Connection, groups: Sequence[str]
    ) -> Iterator[tuple[str, dict[TopicPartition, int] | ApiError]]:
        """Each group with its offsets, or the reason why its coordinator has none to tell. Raises
        what Connection raises, at the first group without a response."""
        version = connection.versions.highest(OffsetFetchRequest, 1, ALL_PARTITIONS)
        is_whole = version == ALL_PARTITIONS
        entries = 1 if is_whole else max(1, len(self._partitions))
        in_flight = max(1, min(IN_FLIGHT_MAX, ENTRIES_IN_FLIGHT // entries))
        topics = None if is_whole else self._topics
        sent = 0
        for index, group in enumerate(groups):
            for other in groups[sent : index + in_flight]:
                connection.write(OffsetFetchRequest(other, topics, version=version))
                sent += 1
            response = connection.read_response()
            assert isinstance(response, OffsetFetchResponse)
            yield group, self._offsets(response, group)

    def _offsets(
        self, response: OffsetFetchResponse, group: str
    ) -> dict[TopicPartition, int] | ApiError:
        error = error_of(response.error_code, f"group {group}")
        if error is not None:
            return error
        found = {}
        for topic in response.topics:
            for answer in topic.partitions:
                if answer.error_code in OF_THE_GROUP:
                    return error_of(answer.error_code, f"group {group}") or ApiError()
                # 0.8: any other error of a partition counts as "nothing committed".
                if answer.error_code == NO_ERROR and answer.offset != NO_OFFSET:
                    tp = TopicPartition(topic.topic, answer.partition)
                    if tp in self._partitions:
                        found[tp] = answer.offset
        return found
