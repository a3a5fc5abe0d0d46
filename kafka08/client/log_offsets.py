"""Where the logs of partitions start and end, from their leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import offsets_request, offsets_results
from kafka08.errors import ApiError, OffsetOutOfRange, error_of
from kafka08.network.connection import Connection
from kafka08.protocol.offsets import OffsetsResponse
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TopicPartition


def log_starts(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """partition → first offset of its log. Raises as ClusterClient.ask_leaders."""
    return cluster.ask_leaders(dict.fromkeys(partitions, EARLIEST_OFFSET), _ask)


def log_ends(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """partition → the first offset that consumers may not read yet. Raises as ask_leaders."""
    return cluster.ask_leaders(dict.fromkeys(partitions, LATEST_OFFSET), _ask)


def offsets_before(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], time_ms: int
) -> dict[TopicPartition, int | None]:
    """partition → an offset at or before the first message after `time_ms`: the start of the newest
    segment that was last written before it, or the log's end. 0.8 knows no better. None if the
    whole log is younger. Raises as ask_leaders."""

    def ask(
        connection: Connection, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ApiError | None]:
        response = connection.send(offsets_request(times))
        assert isinstance(response, OffsetsResponse)
        return {
            tp: error_of(answer.error_code, f"{tp} at {connection}")
            or (answer.offsets[0] if answer.offsets else None)
            for tp, answer in offsets_results(response).items()
        }

    return cluster.ask_leaders(dict.fromkeys(partitions, time_ms), ask)


def _ask(
    connection: Connection, times: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | ApiError]:
    response = connection.send(offsets_request(times))
    assert isinstance(response, OffsetsResponse)
    found: dict[TopicPartition, int | ApiError] = {}
    for tp, answer in offsets_results(response).items():
        where = f"{tp} at {connection}"
        error = error_of(answer.error_code, where)
        if error is None and not answer.offsets:
            error = OffsetOutOfRange(f"{where}: no offset at time {times[tp]}")
        found[tp] = answer.offsets[0] if error is None else error
    return found
