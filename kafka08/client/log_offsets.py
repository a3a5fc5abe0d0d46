"""The start and end offsets of partitions' logs and segments, from their leaders.

The functions retry errors that may pass. They raise what ClusterClient.ask_leaders raises, except
`offsets_or_errors`; without partitions they send no request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import offsets_request, offsets_results, offsets_version
from kafka08.client.retry import is_retriable_at_leader
from kafka08.errors import (
    ApiError,
    KafkaError,
    OffsetOutOfRange,
    UnsupportedVersion,
    error_of,
)
from kafka08.network.connection import Connection
from kafka08.protocol.fetch import READ_UNCOMMITTED
from kafka08.protocol.offsets import (
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
)
from kafka08.structs import (
    DEBUGGING_CONSUMER,
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    NO_OFFSET,
    ORDINARY_CONSUMER,
    TopicPartition,
)

SEGMENTS_MAX: Final = 100_000
"""The most base offsets in one response; a log has fewer files."""


def log_starts(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """partition → first offset of its log."""
    return _bounds(cluster, partitions, EARLIEST_OFFSET)


def log_ends(
    cluster: ClusterClient,
    partitions: Iterable[TopicPartition],
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    """partition → the first offset that consumers must not read yet."""
    return _bounds(cluster, partitions, LATEST_OFFSET, isolation=isolation)


def log_ends_with_epochs(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], isolation: int
) -> dict[TopicPartition, tuple[int, int]]:
    """`log_ends`, each with the epoch of a leader that has the messages before it; NO_LEADER_EPOCH
    from brokers before 2.1."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    wanted = dict.fromkeys(partitions, LATEST_OFFSET)
    for tp, outcome in starts_or_errors(cluster, wanted, isolation).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        if outcome is None:
            raise OffsetOutOfRange(f"{tp}: its leader returned no log end offset")
        found[tp] = outcome
    return found


def leader_log_ends(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """partition → its leader's log end offset, above the high watermark too: as `log_ends`, but
    with messages that consumers must not read yet."""
    return _bounds(cluster, partitions, LATEST_OFFSET, DEBUGGING_CONSUMER)


def offsets_before(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], time_ms: int
) -> dict[TopicPartition, int | None]:
    """`offsets_before_each` with one time for all."""
    return offsets_before_each(cluster, dict.fromkeys(partitions, time_ms))


def offsets_before_each(
    cluster: ClusterClient, times: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """partition → an offset at or before the first message after its time in ms: the base offset of
    the newest segment last written before it, or the log's end. 0.8 cannot tell more exactly. None
    if the whole log is newer."""
    return {tp: found[0] if found else None for tp, found in _ask(cluster, times, 1).items()}


def segment_starts(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[int]]:
    """partition → base offsets of all segments, ascending, then the log's end."""
    found = _ask(cluster, dict.fromkeys(partitions, LATEST_OFFSET), SEGMENTS_MAX)
    return {tp: sorted(set(offsets)) for tp, offsets in found.items()}


def offsets_or_errors(
    cluster: ClusterClient,
    times: Mapping[TopicPartition, int],
    max_offsets: int = 1,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, list[int] | KafkaError]:
    """partition → up to `max_offsets` offsets before its time (in ms, EARLIEST_OFFSET or
    LATEST_OFFSET), descending, or the error. A partition without a leader, or a broker that does
    not respond, does not affect the others."""
    asked = partial(_ask_leader, max_offsets, ORDINARY_CONSUMER, isolation)
    return cluster.ask_each_leader(times, asked, passes=is_retriable_at_leader) if times else {}


def starts_or_errors(
    cluster: ClusterClient, times: Mapping[TopicPartition, int], isolation: int
) -> dict[TopicPartition, tuple[int, int] | KafkaError | None]:
    """partition → the offset at its time (EARLIEST_OFFSET or LATEST_OFFSET) and the epoch of the
    leader before it, NO_LEADER_EPOCH where that is not known; None without one, or the error. As
    `offsets_or_errors`."""

    def ask(
        connection: Connection, of_leader: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, tuple[int, int] | ApiError | None]:
        results = _results(ORDINARY_CONSUMER, isolation, connection, of_leader, with_epochs=True)
        return {
            tp: error_of(one.error_code, f"{tp} at {connection}")
            or ((one.found[0], one.leader_epoch) if one.found else None)
            for tp, one in results
        }

    return cluster.ask_each_leader(times, ask, passes=is_retriable_at_leader) if times else {}


def _bounds(
    cluster: ClusterClient,
    partitions: Iterable[TopicPartition],
    which: int,
    replica_id: int = ORDINARY_CONSUMER,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    found = _ask(cluster, dict.fromkeys(partitions, which), 1, replica_id, isolation)
    for tp, offsets in found.items():
        if not offsets:
            raise OffsetOutOfRange(f"{tp}: its leader has no offset at time {which}")
    return {tp: offsets[0] for tp, offsets in found.items()}


def _ask(
    cluster: ClusterClient,
    times: Mapping[TopicPartition, int],
    max_offsets: int,
    replica_id: int = ORDINARY_CONSUMER,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, list[int]]:
    """partition → offsets, descending."""
    asked = partial(_ask_leader, max_offsets, replica_id, isolation)
    return cluster.ask_leaders(times, asked, passes=is_retriable_at_leader) if times else {}


def _ask_leader(
    max_offsets: int,
    replica_id: int,
    isolation: int,
    connection: Connection,
    times: Mapping[TopicPartition, int],
) -> dict[TopicPartition, list[int] | ApiError]:
    return {
        tp: error_of(one.error_code, f"{tp} at {connection}") or list(one.found)
        for tp, one in _results(replica_id, isolation, connection, times, max_offsets)
    }


def _results(
    replica_id: int,
    isolation: int,
    connection: Connection,
    times: Mapping[TopicPartition, int],
    max_offsets: int = 1,
    *,
    with_epochs: bool = False,
) -> Iterator[tuple[TopicPartition, OffsetsPartitionResponse]]:
    for some in _requests_of(times):
        request = offsets_request(
            some,
            max_offsets=max_offsets,
            replica_id=replica_id,
            isolation=isolation,
            version=offsets_version(connection.versions, isolation, with_epochs=with_epochs),
        )
        response = connection.send(request)
        assert isinstance(response, OffsetsResponse)
        yield from offsets_results(response).items()


def _requests_of(times: Mapping[TopicPartition, int]) -> Iterator[dict[TopicPartition, int]]:
    """As many in each as a request may name, even if each has a topic of its own."""
    left = iter(times.items())
    while some := dict(islice(left, OffsetsRequest.ITEMS_MAX // 2)):
        yield some


def offsets_at(
    cluster: ClusterClient, partitions: Collection[TopicPartition], time_ms: int
) -> tuple[dict[TopicPartition, int], list[TopicPartition]]:
    """partition → its first message with a timestamp at or after the time, the log's end if there
    is none; and the partitions with messages of which none has a timestamp. Raises as
    `messages_at`."""
    found = messages_at(cluster, dict.fromkeys(partitions, time_ms))
    missing = [tp for tp, message in found.items() if message is None]
    starts, ends = log_starts(cluster, missing), log_ends(cluster, missing)
    filled = [tp for tp in missing if starts[tp] < ends[tp]]
    any_time = messages_at(cluster, dict.fromkeys(filled, 0))
    offsets = {tp: ends[tp] if one is None else one[0] for tp, one in found.items()}
    return offsets, [tp for tp in filled if any_time[tp] is None]


def messages_at(
    cluster: ClusterClient,
    times: Mapping[TopicPartition, int],
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, tuple[int, int] | None]:
    """partition → (offset, timestamp in ms) of its first message with a timestamp at or after its
    time; None if there is none that a reader of this isolation may see. Needs brokers from 0.10.1
    on (UnsupportedVersion), and a topic whose messages have timestamps
    (UnsupportedForMessageFormat)."""

    def ask(
        connection: Connection, of_broker: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, tuple[int, int] | ApiError | None]:
        try:
            least = connection.versions.highest(OffsetsRequest, 1, 1)
        except UnsupportedVersion as error:
            raise UnsupportedVersion(
                f"{connection}: brokers before 0.10.1 find no message by its timestamp; give "
                "offsets, earliest or latest"
            ) from error
        messages: dict[TopicPartition, tuple[int, int] | ApiError | None] = {}
        for some in _requests_of(of_broker):
            version = max(least, offsets_version(connection.versions, isolation))
            request = offsets_request(some, isolation=isolation, version=version)
            response = connection.send(request)
            assert isinstance(response, OffsetsResponse)
            for tp, result in offsets_results(response).items():
                found = None if result.offset == NO_OFFSET else (result.offset, result.timestamp_ms)
                messages[tp] = error_of(result.error_code, f"{tp} at {connection}") or found
        return messages

    return cluster.ask_leaders(times, ask, passes=is_retriable_at_leader) if times else {}
