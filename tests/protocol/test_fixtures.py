"""Every captured exchange with real brokers: same meaning, same bytes, same refusals."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol import codec
from kafka08.protocol.apis import APIS
from kafka08.protocol.frame import SIZE, FrameReader
from kafka08.protocol.served import Served
from kafka08.protocol.types import Buffer, Request
from kafka08.protocol.update_metadata import LiveBroker, LiveBrokerV0
from tests.in_turn import in_turn
from tests.protocol.captures import (
    CLOSED,
    NO_RESPONSE,
    Exchange,
    accepted_exchanges,
    exchanges,
    refused_exchanges,
)

REQUEST_MAX_BYTES = 104857600
"""socket.request.max.bytes of the broker that was recorded."""

STATED_NAMES: dict[str, str] = {
    "acks": "required_acks",
    "timeout": "timeout_ms transaction_timeout_ms",
    "part": "partition",
    "parts": "partitions partitions_remaining",
    "set": "message_set",
    "err": "error_code",
    "offset": "offset base_offset",
    "replica": "replica_id",
    "maxwait": "max_wait_ms",
    "minbytes": "min_bytes",
    "max": "max_bytes max_version",
    "maxbytes": "max_bytes",
    "min": "min_version",
    "validate": "validate_only",
    "msg": "message",
    "ptype": "protocol_type",
    "assign": "assignment",
    "client": "client_id",
    "host": "host client_host",
    "throttle": "throttle_ms",
    "rebalance": "rebalance_timeout_ms",
    "leader": "leader leader_id",
    "proto": "security_protocol",
    "cluster": "cluster_id",
    "rf": "replication_factor",
    "retention": "retention_ms",
    "internal": "is_internal",
    "hw": "high_watermark",
    "time": "time_ms",
    "maxnum": "max_offsets",
    "id": "broker_id coordinator_id",
    "controller": "controller_id",
    "cepoch": "controller_epoch coordinator_epoch",
    "states": "partition_states",
    "lepoch": "leader_epoch",
    "zkver": "zk_version",
    "brokers": "brokers live_brokers",
    "delete": "delete_partitions",
    "broker": "broker_id",
    "ts": "timestamp_ms log_append_time_ms",
    "meta": "metadata",
    "member": "member member_id consumer_id",
    "session": "session_timeout_ms",
    "consumer": "consumer_id",
    "txid": "transactional_id",
    "pid": "producer_id",
    "epoch": "producer_epoch leader_epoch",
    "isolation": "isolation_level",
    "lso": "last_stable_offset",
    "logstart": "log_start_offset",
    "first": "first_offset",
    "key": "key group",
    "type": "coordinator_type resource_type",
    "autocreate": "allow_auto_topic_creation",
    "low": "low_watermark",
    "end": "end_offset",
    "commit": "commits",
    "rtype": "resource_type",
    "rname": "resource_name",
    "name": "name resource_name",
    "op": "operation",
    "perm": "permission_type",
    "readonly": "is_read_only",
    "default": "is_default",
    "sensitive": "is_sensitive",
    "strategy": "partition_assignment_strategy",
}
"""Name in the recordings → our names for it; a name that is not here is the same in both."""

API_VERSIONS_KEY = 18

COMPLETE = {level: Served(level) for level in Level}
"""As SERVED, with the rows that no handler serves yet."""

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
        case {"part": partition} if isinstance(message, int) and len(stated) == 1:
            assert partition == message
        case {"undecoded": _}:
            pass
        case [] if message is None:
            pass
        case {"host": _} if isinstance(message, LiveBroker):
            assert_means(stated, LiveBrokerV0.show(message))
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
    """Class and version as which the request of an exchange was read."""
    _, request = decode_request(exchange, exchange.request[SIZE.size :])
    return type(request), request.version


def decode_request(exchange: Exchange, payload: Buffer) -> tuple[codec.RequestHeader, Any]:
    """As a broker of the level of `exchange` reads it."""
    return codec.decode_request(payload, COMPLETE[exchange.level])


def decode_response(exchange: Exchange, payload: Buffer) -> tuple[int, Any]:
    request, version = asked(exchange)
    return codec.decode_response(request, payload, version)


@pytest.mark.parametrize("level", Level, ids=str)
def test_every_version_was_captured(level: Level) -> None:
    """Each (key, version) of a level has a request and a response in the recordings of that level
    or an older one, which the tests below compare."""
    captured = {asked(exchange) for exchange in ANSWERED if exchange.level == level}
    below = {asked(exchange) for exchange in ANSWERED if exchange.level < level}
    served = {
        (api.request, row.version)
        for api in APIS
        for row in api.versions
        if row.exists_at(level) and (api.request, row.version) not in below
    }
    assert set() == served - captured


def trailing(exchange: Exchange) -> int:
    """Bytes behind the body. What the recording could not decode is a body to us, but for
    ApiVersions."""
    stated = exchange.stated_request or {}
    if stated.get("api_key") != API_VERSIONS_KEY and "undecoded" in stated.get("body", ()):
        return 0
    return int(stated.get("trailing_bytes", 0))


def test_the_recordings_are_all_here() -> None:
    """The files have at least the requests that they had when this test was written, and most have
    responses."""
    assert (len(exchanges()), len(refused_exchanges())) == (1606, 65)
    assert len(ANSWERED) > 230


@in_turn("exchange", ACCEPTED)
def test_request_decodes_as_recorded_and_encodes_back(exchange: Exchange) -> None:
    """A captured request decodes to its stated header and body and re-encodes to its own bytes,
    with the version it was parsed as."""
    header, request = decode_request(exchange, exchange.request[SIZE.size :])
    stated = exchange.stated_request
    if stated is not None:
        named = (stated["api_key"], stated["version"], stated["corr"], stated["client_id"])
        assert named == header
        assert_means(stated["body"], request)
    encoded = codec.encode_request(request, header.correlation_id, header.client_id)
    sent = bytearray(exchange.request[SIZE.size : len(exchange.request) - trailing(exchange)])
    sent[2:4] = request.version.to_bytes(2, "big")
    assert sent == encoded[SIZE.size :]
    assert len(encoded) - SIZE.size == SIZE.unpack_from(encoded)[0]


@in_turn("exchange", ANSWERED)
def test_response_decodes_as_recorded_and_encodes_back(exchange: Exchange) -> None:
    """A captured response decodes to its stated body and re-encodes to its own bytes."""
    assert exchange.response is not None
    correlation_id, response = decode_response(exchange, exchange.response[SIZE.size :])
    if exchange.stated_response is not None:
        assert exchange.stated_response["corr"] == correlation_id
        assert_means(exchange.stated_response["body"], response)
    version = asked(exchange)[1]
    assert exchange.response == codec.encode_response(response, correlation_id, version)


@in_turn("exchange", refused_exchanges())
def test_requests_that_closed_the_connection_are_a_protocol_error(exchange: Exchange) -> None:
    """The recorded broker closed the connection on these bytes (0.9.0.1: sent no response); we
    refuse them too, by frame size, API key, version or body."""
    assert exchange.outcome == (NO_RESPONSE if exchange.level == Level.V0_9_0 else CLOSED)
    with pytest.raises(ProtocolError):
        [decode_request(exchange, p) for p in FrameReader(REQUEST_MAX_BYTES).feed(exchange.request)]


@in_turn("exchange", ACCEPTED)
def test_a_request_cut_anywhere_is_a_protocol_error(exchange: Exchange) -> None:
    """Each byte of a request is needed: every shorter payload is refused, by ProtocolError."""
    end = len(exchange.request) - trailing(exchange)
    payload = memoryview(exchange.request)[SIZE.size : end]
    for end in range(len(payload)):
        with pytest.raises(ProtocolError):
            decode_request(exchange, payload[:end])


@in_turn("exchange", ANSWERED)
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
    """A damaged request is refused, or decodes to one that can be encoded and decoded again."""
    for exchange in {(e.request, e.level): e for e in exchanges()}.values():
        payload = bytearray(exchange.request[SIZE.size :])
        for position in range(len(payload)):
            payload[position] ^= flip
            try:
                header, body = decode_request(exchange, payload)
            except ProtocolError:
                pass
            else:
                frame = codec.encode_request(body, header.correlation_id, header.client_id)
                _, again = decode_request(exchange, frame[SIZE.size :])
                assert body == again
            payload[position] ^= flip


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF], ids=hex)
def test_a_flipped_byte_gives_another_response_or_a_protocol_error(flip: int) -> None:
    """A damaged response is refused, or decodes to one that can be encoded and decoded again."""
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
