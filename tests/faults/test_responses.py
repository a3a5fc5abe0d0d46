"""Changed responses decode as what was asked for."""

from __future__ import annotations

from kafka08.faults.responses import with_addresses, with_throttle_ms
from kafka08.protocol.api import Api
from kafka08.protocol.codec import decode_response, encode_response
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.fetch import API as FETCH
from kafka08.protocol.fetch import FetchResponse
from kafka08.protocol.metadata import BrokerEndpoint, MetadataRequest, MetadataResponse
from kafka08.protocol.produce import API as PRODUCE
from kafka08.protocol.produce import ProduceResponse
from kafka08.protocol.types import Response


def test_the_throttle_time_is_set_where_there_is_one() -> None:
    """In each version of Produce and Fetch that has the field it says the time; version 0, without
    it, is unchanged."""
    empty: list[tuple[Api, Response]] = [
        (PRODUCE, ProduceResponse([])), (FETCH, FetchResponse([]))
    ]  # fmt: skip
    for api, response in empty:
        for row in api.versions:
            frame = encode_response(response, 5, row.version)
            changed = with_throttle_ms(frame, row, 250)
            _, decoded = decode_response(api.request, changed[4:], row.version)
            assert (decoded.topics, decoded.throttle_ms) == ([], 250 if row.version else 0)


def test_addresses_are_replaced() -> None:
    """Of the brokers in a response those named have the new address."""
    response = MetadataResponse([BrokerEndpoint(0, "a", 1), BrokerEndpoint(1, "b", 2)], [], 0)
    request = MetadataRequest([])
    request.version = 1
    changed = with_addresses(encode_response(response, 5, 1), request, {1: "[::1]:9"})
    _, decoded = decode_response(MetadataRequest, changed[4:], 1)
    assert decoded.brokers == [BrokerEndpoint(0, "a", 1), BrokerEndpoint(1, "::1", 9)]


def test_a_coordinators_address_is_replaced() -> None:
    """Only if it is the broker named."""
    frame = encode_response(ConsumerMetadataResponse(0, 1, "b", 2), 5)
    request = ConsumerMetadataRequest("g")
    changed = with_addresses(frame, request, {1: "c:3"})
    _, decoded = decode_response(ConsumerMetadataRequest, changed[4:])
    assert (decoded.host, decoded.port) == ("c", 3)
    assert with_addresses(frame, request, {0: "c:3"}) == frame
