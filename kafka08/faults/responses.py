"""Changes of a response before it is sent. Pure."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from kafka08.faults.rule import split_address
from kafka08.protocol.api import ApiVersion
from kafka08.protocol.codec import decode_response, encode_response
from kafka08.protocol.consumer_metadata import ConsumerMetadataResponse
from kafka08.protocol.frame import SIZE
from kafka08.protocol.layout import layout_of
from kafka08.protocol.metadata import MetadataResponse
from kafka08.protocol.types import Request

INT32: Final = struct.Struct(">i")
HEADER_BYTES: Final = SIZE.size + INT32.size
"""Frame size and correlation id."""


def with_throttle_ms(
    first: bytes | bytearray, row: ApiVersion, throttle_ms: int
) -> bytes | bytearray:
    """The frame, or its first piece, with that throttle time; unchanged if the version has no such
    field."""
    names = [name for name, _ in layout_of(row.response_form).fields]
    if "throttle_ms" not in names:
        return first
    changed = bytearray(first)
    at = HEADER_BYTES if names[0] == "throttle_ms" else len(changed) - INT32.size
    INT32.pack_into(changed, at, throttle_ms)
    return changed


def with_addresses(
    frame: bytes | bytearray, request: Request, addresses: Mapping[int, str]
) -> bytes:
    """The frame of a response to Metadata or FindCoordinator with these addresses of brokers."""
    correlation_id, response = decode_response(
        type(request), memoryview(frame)[SIZE.size :], request.version
    )
    assert isinstance(response, MetadataResponse | ConsumerMetadataResponse)
    if isinstance(response, ConsumerMetadataResponse):
        if (address := addresses.get(response.coordinator_id)) is not None:
            response.host, response.port = split_address("addresses", address)
    else:
        for broker in response.brokers:
            if (address := addresses.get(broker.broker_id)) is not None:
                broker.host, broker.port = split_address("addresses", address)
    return encode_response(response, correlation_id, request.version)
