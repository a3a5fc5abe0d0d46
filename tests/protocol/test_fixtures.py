"""Every captured exchange with real brokers: same meaning, same bytes, same refusals."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol import codec
from kafka08.protocol.frame import SIZE, FrameReader
from kafka08.protocol.types import Buffer, Request
from tests.protocol.captures import Exchange, accepted_exchanges, exchanges, refused_exchanges

REQUEST_MAX_BYTES = 104857600
"""socket.request.max.bytes of the broker that was recorded."""

STATED_NAMES: dict[str, str] = {
    "acks": "required_acks",
    "timeout": "timeout_ms",
    "part": "partition",
    "parts": "partitions partitions_remaining",
    "set": "message_set",
    "err": "error_code",
    "offset": "offset base_offset",
    "replica": "replica_id",
    "maxwait": "max_wait_ms",
    "minbytes": "min_bytes",
    "max": "max_bytes",
    "hw": "high_watermark",
    "time": "time_ms",
    "maxnum": "max_offsets",
    "id": "broker_id coordinator_id",
    "controller": "controller_id",
    "cepoch": "controller_epoch",
    "states": "partition_states",
    "lepoch": "leader_epoch",
    "zkver": "zk_version",
    "brokers": "brokers live_brokers",
    "delete": "delete_partitions",
    "broker": "broker_id",
    "ts": "timestamp_ms",
    "meta": "metadata",
    "member": "member consumer_id",
    "session": "session_timeout_ms",
    "consumer": "consumer_id",
    "strategy": "partition_assignment_strategy",
}
"""Name in the recordings → our names for it; a name that is not here is the same in both."""

ACCEPTED = accepted_exchanges()
ANSWERED = [exchange for exchange in ACCEPTED if exchange.response is not None]


def assert_means(stated: Any, message: Any) -> None:
    """`message` has the stated values under names that say the same."""
    match stated:
        case {"hex": hex_bytes}:
            assert bytes.fromhex(hex_bytes) == bytes(message)
        case {"hex_head": head, "len": size}:
            assert bytes(message).hex().startswith(head)
            assert size == len(message)
        case dict():
            fields = {field.name for field in dataclasses.fields(message)}
            for name, value in stated.items():
                (ours,) = fields.intersection((STATED_NAMES.get(name) or name).split())
                fields.remove(ours)
                assert_means(value, getattr(message, ours))
        case list():
            assert len(stated) == len(message)
            for value, item in zip(stated, message, strict=True):
                assert_means(value, item)
        case _:
            assert stated == message


def asked(exchange: Exchange) -> tuple[type[Request], int]:
    """What class and version the request of an exchange was read as."""
    _, request = codec.decode_request(exchange.request[SIZE.size :])
    return type(request), request.version


def decode_response(exchange: Exchange, payload: Buffer) -> tuple[int, Any]:
    request, version = asked(exchange)
    return codec.decode_response(request, payload, version)


def test_the_recordings_are_all_here() -> None:
    """The files hold the requests that they held when this was written, and most have answers."""
    assert (len(exchanges()), len(refused_exchanges())) == (319, 14)
    assert len(ANSWERED) > 230


@pytest.mark.parametrize("exchange", ACCEPTED, ids=str)
def test_request_means_what_was_recorded_and_encodes_back(exchange: Exchange) -> None:
    """A captured request decodes to its stated header and body and re-encodes to its own bytes,
    with the version it was parsed as."""
    header, request = codec.decode_request(exchange.request[SIZE.size :])
    stated = exchange.stated_request
    if stated is not None:
        named = (stated["api_key"], stated["version"], stated["corr"], stated["client_id"])
        assert named == header
        assert_means(stated["body"], request)
    encoded = codec.encode_request(request, header.correlation_id, header.client_id)
    trailing = (stated or {}).get("trailing_bytes", 0)
    sent = bytearray(exchange.request[SIZE.size : len(exchange.request) - trailing])
    sent[2:4] = request.version.to_bytes(2, "big")
    assert sent == encoded[SIZE.size :]
    assert len(encoded) - SIZE.size == SIZE.unpack_from(encoded)[0]


@pytest.mark.parametrize("exchange", ANSWERED, ids=str)
def test_response_means_what_was_recorded_and_encodes_back(exchange: Exchange) -> None:
    """A captured response decodes to its stated body and re-encodes to its own bytes."""
    assert exchange.response is not None
    correlation_id, response = decode_response(exchange, exchange.response[SIZE.size :])
    if exchange.stated_response is not None:
        assert exchange.stated_response["corr"] == correlation_id
        assert_means(exchange.stated_response["body"], response)
    version = asked(exchange)[1]
    assert exchange.response == codec.encode_response(response, correlation_id, version)


@pytest.mark.parametrize("exchange", refused_exchanges(), ids=str)
def test_what_closed_the_connection_is_a_protocol_error(exchange: Exchange) -> None:
    """The broker that was recorded closed the connection on these bytes; so do we, by frame size,
    API key, version or body."""
    assert exchange.outcome == "connection closed by broker"
    with pytest.raises(ProtocolError):
        list(map(codec.decode_request, FrameReader(REQUEST_MAX_BYTES).feed(exchange.request)))


@pytest.mark.parametrize("exchange", ACCEPTED, ids=str)
def test_a_request_cut_anywhere_is_a_protocol_error(exchange: Exchange) -> None:
    """Each byte of a request is needed: every shorter payload is refused, by ProtocolError."""
    trailing = (exchange.stated_request or {}).get("trailing_bytes", 0)
    payload = memoryview(exchange.request)[SIZE.size : len(exchange.request) - trailing]
    for end in range(len(payload)):
        with pytest.raises(ProtocolError):
            codec.decode_request(payload[:end])


@pytest.mark.parametrize("exchange", ANSWERED, ids=str)
def test_a_response_cut_anywhere_is_a_protocol_error(exchange: Exchange) -> None:
    """Each byte of a response is needed: every shorter payload is refused, by ProtocolError."""
    assert exchange.response is not None
    request, version = asked(exchange)
    payload = memoryview(exchange.response)[SIZE.size :]
    for end in range(len(payload)):
        with pytest.raises(ProtocolError):
            codec.decode_response(request, payload[:end], version)


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF], ids=hex)
def test_a_flipped_byte_gives_another_request_or_a_protocol_error(flip: int) -> None:
    """Whatever a damaged request decodes to can be encoded and read again; or it is refused."""
    for request in {exchange.request for exchange in exchanges()}:
        payload = bytearray(request[SIZE.size :])
        for position in range(len(payload)):
            payload[position] ^= flip
            try:
                header, body = codec.decode_request(payload)
            except ProtocolError:
                pass
            else:
                frame = codec.encode_request(body, header.correlation_id, header.client_id)
                _, again = codec.decode_request(frame[SIZE.size :])
                assert body == again
            payload[position] ^= flip


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF], ids=hex)
def test_a_flipped_byte_gives_another_response_or_a_protocol_error(flip: int) -> None:
    """Whatever a damaged response decodes to can be encoded and read again; or it is refused."""
    for (cls, version), response in {(asked(e), e.response) for e in ANSWERED if e.response}:
        payload = bytearray(response[SIZE.size :])
        for position in range(len(payload)):
            payload[position] ^= flip
            try:
                correlation_id, body = codec.decode_response(cls, payload, version)
            except ProtocolError:
                pass
            else:
                frame = codec.encode_response(body, correlation_id, version)
                again = codec.decode_response(cls, frame[SIZE.size :], version)
                assert (correlation_id, body) == again
            payload[position] ^= flip
