"""Our requests are, byte for byte, what 0.8.2.2's own clients sent (clients-0.8.2.2.json)."""

from __future__ import annotations

import pytest

from kafka08.client.requests import (
    commit_request,
    committed_request,
    fetch_request,
    offsets_request,
)
from kafka08.protocol import codec
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.frame import SIZE
from kafka08.protocol.offset_commit import OffsetCommitRequest
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.types import Request
from kafka08.structs import OffsetAndMetadata, TopicPartition
from tests.protocol.captures import Exchange, exchanges

CONSUMER = [e for e in exchanges() if e.name.startswith("clients-0.8.2.2:high-level consumer")]
REBUILT = (FetchRequest, OffsetsRequest, OffsetFetchRequest, OffsetCommitRequest)


def rebuilt(request: Request) -> Request | None:
    """The same request, made of the `{TopicPartition: …}` that it says; None for other APIs."""
    match request:
        case FetchRequest():
            positions = {
                TopicPartition(t.topic, p.partition): (p.offset, p.max_bytes)
                for t in request.topics
                for p in t.partitions
            }
            return fetch_request(
                positions, max_wait_ms=request.max_wait_ms, min_bytes=request.min_bytes
            )
        case OffsetsRequest():
            return offsets_request(
                {
                    TopicPartition(t.topic, p.partition): p.time_ms
                    for t in request.topics
                    for p in t.partitions
                }
            )
        case OffsetFetchRequest():
            wanted = [
                TopicPartition(t.topic, p) for t in request.topics or () for p in t.partitions
            ]
            return committed_request(request.group, wanted, "kafka")
        case OffsetCommitRequest():
            offsets = {
                TopicPartition(t.topic, p.partition): OffsetAndMetadata(
                    p.offset, p.metadata, p.timestamp_ms
                )
                for t in request.topics
                for p in t.partitions
            }
            return commit_request(request.group, offsets, "kafka")
    return None


def of_rebuilt_apis() -> list[Exchange]:
    """The consumer's captured exchanges of the APIs that `rebuilt` knows."""
    return [e for e in CONSUMER if isinstance(decoded(e)[1], REBUILT)]


def decoded(exchange: Exchange) -> tuple[codec.RequestHeader, Request]:
    return codec.decode_request(exchange.request[SIZE.size :])


def test_every_api_was_captured() -> None:
    """The captures have every API, without which the test below would compare nothing."""
    assert set(REBUILT) == {type(decoded(e)[1]) for e in of_rebuilt_apis()}


@pytest.mark.parametrize("exchange", of_rebuilt_apis(), ids=str)
def test_requests_of_the_jvm_consumer(exchange: Exchange) -> None:
    """Fetch, ListOffsets, OffsetFetch v1 and OffsetCommit v1 come out as captured."""
    header, request = decoded(exchange)
    ours = rebuilt(request)
    assert ours is not None
    assert codec.encode_request(ours, header.correlation_id, header.client_id) == exchange.request
