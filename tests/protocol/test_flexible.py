"""Flexible versions: compact lengths, and fields with numbers that are skipped."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import IllegalGeneration, ProtocolError
from kafka08.protocol import codec
from kafka08.protocol.add_partitions_to_txn import TxnPartitionResult, TxnTopicResult
from kafka08.protocol.api_versions import (
    NAMING_VERSION,
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka08.protocol.compiler import (
    FLEXIBLE_DECODERS,
    FLEXIBLE_ENCODERS,
    read_varint,
    skip_tags,
    varint,
)
from kafka08.protocol.txn_offset_commit import (
    GENERATION_VERSION,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafka08.protocol.types import (
    Bytes,
    Form,
    Int16,
    Int32,
    NotNullBytes,
    NullableString,
    Response,
    String,
)

OF_4_4 = (
    "00000068 0000 03 0000 0000 000d 00 0012 0000 0005 00 00000000"
    " 01 00 0a 01 05 6b 2e 76 00 00 00 01 00"
)
"""A response in the layout of 4.4: two APIs, and a tagged field with a list in it."""


@dataclass(slots=True)
class Item:
    number: Int16
    name: String


@dataclass(slots=True)
class Everything(Response):
    count: Int32
    name: String
    nothing: NullableString
    data: NotNullBytes
    more: Bytes
    items: list[Item]
    numbers: list[Int32]
    some: list[Item] | None


ITEMS = st.lists(st.builds(Item, st.integers(-5, 5), st.text(max_size=9)), max_size=300)


def encoded(message: Everything) -> bytes:
    pieces: list[bytes] = []
    FLEXIBLE_ENCODERS[Form(Everything)](message, pieces)  # type: ignore[arg-type]
    return b"".join(pieces)


@given(
    st.builds(
        Everything,
        st.integers(-9, 9),
        st.text(max_size=200),
        st.none() | st.text(max_size=9),
        st.binary(max_size=300),
        st.none() | st.binary(max_size=9),
        ITEMS,
        st.lists(st.integers(-9, 9), max_size=9),
        st.none() | ITEMS,
    )
)
def test_there_and_back(message: Everything) -> None:
    """Every kind of field, short and long; each cut is an error."""
    data = encoded(message)
    decoded, end = FLEXIBLE_DECODERS[Form(Everything)](memoryview(data), 0)
    assert end == len(data)
    assert decoded == message
    with pytest.raises(Exception, match=r"\w"):
        FLEXIBLE_DECODERS[Form(Everything)](memoryview(data[:-1]), 0)


def test_the_bytes_of_a_request() -> None:
    """As Java's broker reads it: a plain client id, and tags behind the header and the body."""
    request = ApiVersionsRequest("ref-client", "1.0", version=NAMING_VERSION)
    frame = codec.encode_request(request, 0x68, "ref")
    assert frame.hex() == ("0000001e00120003000000680003726566000b7265662d636c69656e7404312e3000")


def test_tagged_fields_of_a_response_are_skipped() -> None:
    """Whatever a later broker adds."""
    payload = bytes.fromhex(OF_4_4)
    number, response = codec.decode_response(ApiVersionsRequest, payload, NAMING_VERSION)
    assert number == 0x68
    assert response == ApiVersionsResponse(
        0, [ApiVersionRange(0, 0, 13), ApiVersionRange(18, 0, 5)]
    )
    for size in range(4, len(payload)):
        with pytest.raises(ProtocolError):
            codec.decode_response(ApiVersionsRequest, payload[:size], NAMING_VERSION)


def test_tagged_fields_of_a_response_header_are_skipped() -> None:
    """Those of all APIs but ApiVersions; each cut is an error that names the message."""
    payload = bytes.fromhex(
        "00000007 01 05 02 abcd"  # one tagged field in the header
        " 00000000 02 02 74 02 00000003 0016 00 00 00"
    )
    number, response = codec.decode_response(TxnOffsetCommitRequest, payload, GENERATION_VERSION)
    assert number == 7
    result = TxnPartitionResult(3, IllegalGeneration.code)
    assert response == TxnOffsetCommitResponse(0, [TxnTopicResult("t", [result])])
    assert codec.encode_response(response, 7, GENERATION_VERSION)[8:] == b"\0" + payload[9:]
    for size in range(4, len(payload)):
        with pytest.raises(ProtocolError, match="TxnOffsetCommitResponse"):
            codec.decode_response(TxnOffsetCommitRequest, payload[:size], GENERATION_VERSION)


@given(st.integers(0, (1 << 32) - 1))
def test_numbers(value: int) -> None:
    """A number takes as few bytes as it can."""
    assert read_varint(memoryview(varint(value)), 0) == (value, len(varint(value)))
    assert len(varint(value)) == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize("data", ["", "80", "ffffffffff01", "0200", "010005ab", "ffff7f"])
def test_what_is_no_number_or_field(data: str) -> None:
    """Counts and sizes are compared with what is left."""
    with pytest.raises(Exception, match=r"number|left"):
        skip_tags(memoryview(bytes.fromhex(data)), 0)
