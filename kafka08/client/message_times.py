"""Finds when messages were written, by the timestamps of magic 1 (0.10.0)."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import fetch_request, fetch_results
from kafka08.errors import NO_ERROR
from kafka08.protocol.fetch import MAGIC_1_VERSION, FetchResponse
from kafka08.protocol.message_set import TIMESTAMP_END, first_timestamp
from kafka08.structs import Broker, TopicPartition


def message_times(
    cluster: ClusterClient, leader: Broker, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """partition → time in ms of its first message at or behind an offset; of a compressed set, that
    of its newest message. None if that message has no timestamp.

    One request to `leader`, a broker of 0.10.0 or later, for the head of each message. Left out are
    partitions that it does not lead, and those without such a message. Raises KafkaError.
    """
    positions = {tp: (offset, TIMESTAMP_END) for tp, offset in offsets.items()}
    request = fetch_request(positions, max_wait_ms=0, min_bytes=0, version=MAGIC_1_VERSION)
    response = cluster.send(leader, request)
    assert isinstance(response, FetchResponse)
    times = {
        tp: first_timestamp(result.message_set)
        for tp, result in fetch_results(response).items()
        if result.error_code == NO_ERROR and len(result.message_set)
    }
    return {tp: time_ms if time_ms >= 0 else None for tp, time_ms in times.items()}
