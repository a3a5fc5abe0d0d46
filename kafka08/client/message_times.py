"""When messages were written, by the timestamps that magic 1 (0.10.0) gives them."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import fetch_request, fetch_results
from kafka08.errors import NO_ERROR
from kafka08.kernel.types import (
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_BYTES,
    TIMESTAMP_POSITION,
)
from kafka08.protocol.fetch import MAGIC_1_VERSION, FetchResponse
from kafka08.protocol.types import Buffer
from kafka08.structs import Broker, TopicPartition

TIMESTAMP: Final = Struct(">q")
HEAD_BYTES: Final = TIMESTAMP_POSITION + TIMESTAMP_BYTES
"""Of a message; a fetch before version 3 is cut there."""


def message_times(
    cluster: ClusterClient, leader: Broker, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """partition → time in ms of its first message at or behind an offset; of a compressed set, that
    of its newest message. None if that message has no timestamp.

    One request to `leader`, a broker of 0.10.0 or later, for the head of each message. Left out are
    partitions that it does not lead, and those without such a message. Raises KafkaError.
    """
    positions = {tp: (offset, HEAD_BYTES) for tp, offset in offsets.items()}
    request = fetch_request(positions, max_wait_ms=0, min_bytes=0, version=MAGIC_1_VERSION)
    response = cluster.send(leader, request)
    assert isinstance(response, FetchResponse)
    return {
        tp: time_of(answer.message_set)
        for tp, answer in fetch_results(response).items()
        if answer.error_code == NO_ERROR and len(answer.message_set) > MAGIC_POSITION
    }


def time_of(head: Buffer) -> int | None:
    """The timestamp in the first HEAD_BYTES of a message; None without one. Pure."""
    view = memoryview(head)
    if view[MAGIC_POSITION] < 1 or len(view) < HEAD_BYTES:
        return None
    time_ms: int = TIMESTAMP.unpack_from(view, TIMESTAMP_POSITION)[0]
    return None if time_ms <= NO_TIMESTAMP else time_ms
