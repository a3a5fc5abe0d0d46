"""Session: what a client says to a broker, without a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kafka08 import __version__
from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.network.session import Session
from kafka08.protocol import codec
from kafka08.protocol.api_versions import (
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.fetch import MAGIC_1_VERSION, FetchRequest
from kafka08.protocol.frame import SIZE
from kafka08.protocol.list_groups import ListGroupsResponse
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.types import Response
from tests.producer.tcp_cluster import TcpCluster

FOUND = ConsumerMetadataResponse(0, 7, "host", 9092)


@pytest.fixture
def broker() -> Iterator[TcpCluster]:
    with TcpCluster({"t": {0: 1}}, brokers=(1,)) as cluster:
        yield cluster


async def ask(broker: TcpCluster, session: Session) -> list[Response]:
    """A driver for asyncio: opens a connection and has two requests in flight."""
    host, _, port = broker.servers.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def payload() -> bytes:
        (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
        return await reader.readexactly(size)

    data = session.begin()
    while session.is_opening:
        writer.write(data)
        data = session.advance(await payload())
    writer.write(session.request(MetadataRequest(["t"])) + session.request(MetadataRequest(["t"])))
    assert len(session.in_flight) == 2
    responses = [session.response(await payload())[1] for _ in range(2)]
    writer.close()
    await writer.wait_closed()
    return responses


def test_a_driver_for_asyncio_is_a_driver_more(broker: TcpCluster) -> None:
    """A session knows nothing of threads, and is the same for whoever moves its bytes."""
    broker.levels[1] = Level.V0_10_2
    session = Session("me", asks_versions=True, accepts_0_8=True)
    responses = asyncio.run(ask(broker, session))
    assert session.versions.highest(FetchRequest, 0, MAGIC_1_VERSION) == MAGIC_1_VERSION
    assert all(isinstance(response, MetadataResponse) for response in responses)
    assert not session.in_flight


def test_a_malformed_response_leaves_its_request_in_flight() -> None:
    """Its owner gets it back with the others that the connection loses."""
    session = Session("me")
    session.begin()
    session.request(ConsumerMetadataRequest("g"))
    (sent,) = session.in_flight
    for payload in (
        codec.encode_response(FOUND, 0)[SIZE.size : -3],
        codec.encode_response(FOUND, 1)[SIZE.size :],
        b"",
    ):
        with pytest.raises(ProtocolError):
            session.response(payload)
        assert list(session.in_flight) == [sent]
    assert session.response(codec.encode_response(FOUND, 0)[SIZE.size :]) == (sent, FOUND)
    with pytest.raises(ProtocolError, match="without a request"):
        session.response(codec.encode_response(FOUND, 0)[SIZE.size :])


def keys_of(data: bytes) -> list[int]:
    """The API keys of the requests in these frames."""
    keys = []
    while data:
        (size,) = SIZE.unpack_from(data)
        keys.append(int.from_bytes(data[SIZE.size : SIZE.size + 2], "big"))
        data = data[SIZE.size + size :]
    return keys


def test_a_broker_that_closes_on_offsets_is_asked_without_it() -> None:
    """Those from 4.0 on do, and those that want a login, which then close behind ApiVersions. A
    broker of 0.8 that was just stopping gets it again."""
    session = Session("me", asks_versions=True, accepts_0_8=True)
    asked = keys_of(session.begin())
    session.end()
    assert keys_of(session.begin()) == asked[1:]
    session.end()
    assert keys_of(session.begin()) == asked
    session.end()
    session.begin()
    (versions, _) = session.in_flight
    listed = ApiVersionsResponse(0, [ApiVersionRange(18, 0, 0)])
    session.advance(codec.encode_response(listed, versions.correlation_id)[SIZE.size :])
    refusal = session.opening_error("b:1", ConnectionResetError("closed"))
    assert "does its listener want a login" in str(refusal)
    session.end()
    assert keys_of(session.begin()) == asked[1:]


@pytest.mark.parametrize("highest", [0, 2, 3, 5])
def test_a_later_broker_is_told_who_asks(highest: int) -> None:
    """One that lists ApiVersions 3. An older one would refuse it, and is not asked again."""
    session = Session("me", asks_versions=True)
    assert session.begin()
    ranges = [ApiVersionRange(3, 0, 7), ApiVersionRange(18, 0, highest)]
    listed = ApiVersionsResponse(0, ranges)
    assert session.advance(codec.encode_response(listed, 0)[SIZE.size :]) == b""
    named = session.advance(codec.encode_response(ListGroupsResponse(0, []), 1)[SIZE.size :])
    assert session.is_opening is (highest >= 3)
    if highest >= 3:
        request = ApiVersionsRequest("kafka08", __version__, version=3)
        assert named == codec.encode_request(request, 2, "me")
        listed.apis.append(ApiVersionRange(60, 0, 1))
        assert session.advance(codec.encode_response(listed, 2, 3)[SIZE.size :]) == b""
        assert not session.is_opening
    assert session.versions.highest(MetadataRequest, 0, 9) == 7
