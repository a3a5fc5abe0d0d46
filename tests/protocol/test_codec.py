"""The codec beyond the captures: any message round-trips, wrong input is refused and named."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol import codec
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.apis import APIS
from kafka08.protocol.controlled_shutdown import ControlledShutdownRequest
from kafka08.protocol.describe_configs import DescribeConfigsRequest, DescribedResource
from kafka08.protocol.fetch import FetchRequest, FetchResponse
from kafka08.protocol.frame import SIZE
from kafka08.protocol.metadata import MetadataRequest, MetadataRequestV0
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitRequestV0,
    OffsetCommitRequestV1,
    OffsetCommitTopic,
)
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic
from kafka08.protocol.served import SERVED, Served, UnknownApi, UnservedVersion
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.types import (
    NULL_NAME,
    Bytes,
    Form,
    Int16,
    Int32,
    Int64,
    NullableString,
    Request,
    String,
)
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from tests.protocol.captures import accepted_exchanges
from tests.strategies import messages

ROWS = [(api, row) for api in APIS for row in api.versions if row.since is not None]
COMPLETE = {level: Served(level) for level in Level}
"""As SERVED, with the rows that no handler serves yet."""
INT32_MAX = (1 << 31) - 1

by_row = pytest.mark.parametrize(
    ("api", "row"), ROWS, ids=[f"{api.name}-{row.version}-{row.since}" for api, row in ROWS]
)
correlation_ids = st.integers(-(1 << 31), INT32_MAX)


def produce(topic: str = "t", message_set: bytes = b"set") -> ProduceRequest:
    return ProduceRequest(1, 1000, [ProduceTopic(topic, [ProducePartition(0, message_set)])])


def payload_of(request: Request, client_id: str | None = "c") -> bytearray:
    return bytearray(codec.encode_request(request, 7, client_id)[SIZE.size :])


@by_row
@settings(max_examples=50)
@given(data=st.data(), correlation_id=correlation_ids, client_id=st.none() | st.text(max_size=20))
def test_any_request_round_trips(
    api: Api, row: ApiVersion, data: st.DataObject, correlation_id: int, client_id: str | None
) -> None:
    """decode(encode(request)) is the same header and request, and the frame has the right size."""
    oldest = next(one for one in api.versions if one.version == row.version)  # encodes it
    assert row.since is not None
    request = data.draw(messages(oldest.request_form, null_names=row.since < Level.V0_10_2))
    request.version = row.version
    frame = codec.encode_request(request, correlation_id, client_id)
    header, decoded = codec.decode_request(frame[SIZE.size :], COMPLETE[row.since])
    assert len(frame) - SIZE.size == SIZE.unpack_from(frame)[0]
    expected_client_id = client_id if row.has_client_id else None
    assert (api.key, row.version, correlation_id, expected_client_id) == header
    assert request == decoded


@by_row
@settings(max_examples=50)
@given(data=st.data(), correlation_id=correlation_ids)
def test_any_response_round_trips(
    api: Api, row: ApiVersion, data: st.DataObject, correlation_id: int
) -> None:
    """decode(encode(response)) is the same correlation id and response."""
    response = data.draw(messages(row.response_form))
    payload = codec.encode_response(response, correlation_id, row.version)[SIZE.size :]
    assert (correlation_id, response) == codec.decode_response(api.request, payload, row.version)


@settings(max_examples=1000)
@given(
    level=st.sampled_from(Level),
    key=st.integers(-1, 35),
    version=st.integers(-1, 6),
    rest=st.binary(max_size=200),
)
def test_garbage_is_a_request_or_a_protocol_error(
    level: Level, key: int, version: int, rest: bytes
) -> None:
    """Any bytes behind any key and version decode or raise ProtocolError."""
    try:
        codec.decode_request(struct.pack(">hh", key, version) + rest, COMPLETE[level])
    except ProtocolError:
        pass


@dataclass(slots=True)
class OffsetRecord:
    """A message as other packages than this one declare them: fields of every kind, no API key."""

    version: Int16
    group: String
    offset: Int64
    metadata: NullableString
    state: Bytes
    members: list[String]


@given(
    record=messages(Form(OffsetRecord)), before=st.binary(max_size=5), after=st.binary(max_size=5)
)
def test_a_declared_body_round_trips_at_any_position(
    record: OffsetRecord, before: bytes, after: bytes
) -> None:
    """decode_body decodes the message behind `before` and returns where `after` begins."""
    body = codec.encode_body(record)
    buffer = before + body + after
    assert (record, len(before + body)) == codec.decode_body(OffsetRecord, buffer, len(before))


def test_byte_fields_are_writable_slices_of_the_payload() -> None:
    """A message set is not copied: writing to it writes to the payload."""
    payload = payload_of(produce(message_set=b"abc"))
    _, request = codec.decode_request(payload)
    request.topics[0].partitions[0].message_set[0:1] = b"X"
    assert payload.endswith(b"Xbc")


def test_any_buffer_can_be_sent() -> None:
    """bytes, bytearray and memoryviews of any item size encode to the same frame."""
    words = memoryview(bytearray(b"12345678")).cast("q")
    for buffer in (b"12345678", bytearray(b"12345678"), words):
        request = ProduceRequest(1, 0, [ProduceTopic("t", [ProducePartition(0, buffer)])])
        _, decoded = codec.decode_request(payload_of(request))
        assert decoded.topics[0].partitions[0].message_set == b"12345678"


class TestVersions:
    """The version rule of 0.8.2.2 (kafka.api.*.readFrom)."""

    OF_0_8_2 = SERVED[Level.V0_8_2]

    def test_offset_commit_has_two_versions(self) -> None:
        """Version 0 is ZooKeeper's layout, 1 that of the offsets topic; any other is refused."""
        assert OffsetCommitRequestV0 is self.OF_0_8_2.row(8, 0).request
        assert OffsetCommitRequestV1 is self.OF_0_8_2.row(8, 1).request
        for version in (-1, 2, 32767):
            with pytest.raises(UnservedVersion, match=f"OffsetCommit version {version}"):
                self.OF_0_8_2.row(8, version)

    def test_offset_fetch_version_zero_reads_zookeeper_and_any_other_the_topic(self) -> None:
        """Version 0 reads ZooKeeper; 1, 2 and -1 all decode as 1."""
        assert 0 == self.OF_0_8_2.row(9, 0).version
        for version in (1, 2, -1):
            assert 1 == self.OF_0_8_2.row(9, version).version

    @pytest.mark.parametrize("key", [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12])
    def test_other_keys_ignore_the_version(self, key: int) -> None:
        """Any version of the other keys decodes as version 0."""
        for version in (-1, 1, 2, 32767):
            assert self.OF_0_8_2.rows[key, 0] is self.OF_0_8_2.row(key, version)

    @pytest.mark.parametrize("key", [-1, 13, 18, 99])
    def test_an_unknown_key_is_its_own_error(self, key: int) -> None:
        """A key that 0.8.2.2 does not have is UnknownApi, whatever follows it."""
        with pytest.raises(UnknownApi, match=str(key)):
            codec.decode_request(struct.pack(">hhih", key, 0, 1, -1))


def test_0_10_reads_by_the_schemas_of_the_java_library() -> None:
    """From level 0.10.2 on alone, a null name is refused, and any flag but 0 is true."""
    name = struct.pack(">hhihih", 3, 0, 5, -1, 1, -1)
    flag = payload_of(StopReplicaRequest(1, 1, 1, []), None)
    flag[18] = 2
    with pytest.raises(ProtocolError, match=r"MetadataRequest\.topics"):
        codec.decode_request(name, SERVED[Level.V0_10_2])
    assert codec.decode_request(flag, SERVED[Level.V0_10_2])[1].delete_partitions is True
    for level in (Level.V0_8_2, Level.V0_9_0):
        assert codec.decode_request(name, SERVED[level])[1].topics == [NULL_NAME]
        with pytest.raises(ProtocolError, match="0 or 1"):
            codec.decode_request(flag, SERVED[level])


class TestStrings:
    """Malformed strings are decoded as by the JVM (kafka.api.ApiUtils)."""

    def test_bytes_that_are_not_utf8_become_replacement_characters(self) -> None:
        """Decoding equals `new String(bytes, "UTF-8")`, and the result can be encoded again."""
        payload = payload_of(MetadataRequest(["ab"])).replace(b"ab", b"\xff\xfe")
        _, request = codec.decode_request(payload)
        assert request.topics == ["\ufffd\ufffd"]
        codec.encode_request(request, 1, None)

    def test_any_negative_length_is_null(self) -> None:
        """0.8: every length below 0 means null in a nullable field; we write -1."""
        for length in (-1, -2, -32768):
            payload = struct.pack(">hhihi", 3, 0, 5, length, 0)
            assert codec.decode_request(payload)[0].client_id is None

    def test_null_metadata_is_kept_apart_from_empty(self) -> None:
        """A commit's metadata may be null, which differs from ""."""
        for metadata in (None, ""):
            topic = OffsetCommitTopic("t", [OffsetCommitPartition(0, 1, metadata)])
            request = OffsetCommitRequest("g", [topic], version=1)
            assert request == codec.decode_request(payload_of(request))[1]

    def test_a_null_name_is_refused(self) -> None:
        """No handler gets None for a topic, or takes null for a topic called "null"."""
        payload = struct.pack(">hhihih", 3, 0, 5, -1, 1, -1)
        _, request = codec.decode_request(payload)
        assert [NULL_NAME] == request.topics
        assert "null" not in {NULL_NAME: 0}
        assert payload[10:] == codec.encode_body(request, Form(MetadataRequestV0))

    def test_a_null_host_is_refused(self) -> None:
        """A host in a controller's request must not be null."""
        payload = struct.pack(">hhihiiiiihi", 6, 0, 5, -1, 9, 1, 0, 1, 1, -1, 9)
        with pytest.raises(ProtocolError, match=r"UpdateMetadataRequest\.live_brokers\.host"):
            codec.decode_request(payload)

    def test_a_newer_sender_is_named(self) -> None:
        """Level 0.8.2 reads every version as one that it knows. If that fails, the error says that
        the sender is newer, as a controller of 0.10.2 is."""
        brokers = [LiveBroker.plaintext(number, "127.0.0.1", 9092) for number in (1, 2)]
        request = UpdateMetadataRequest(1, 1, [], brokers)
        request.version = 2
        newer = "it has version 2 and was read as 0, the latest at this broker's level"
        with pytest.raises(ProtocolError, match=newer):
            codec.decode_request(codec.encode_request(request, 1, "c")[4:])

    def test_the_longest_string_is_32767_bytes_of_utf8(self) -> None:
        """A longer one, and a lone surrogate, are refused with the field's name."""
        codec.encode_request(produce(topic="x" * 32767), 1, "c" * 32767)
        for topic in ("x" * 32768, "é" * 16384, "\ud800"):
            with pytest.raises(ProtocolError, match=r"ProduceRequest\.topics\.topic: "):
                codec.encode_request(produce(topic=topic), 1, None)
        for client_id in ("x" * 32768, "\ud800"):
            with pytest.raises(ProtocolError, match="request header"):
                codec.encode_request(produce(), 1, client_id)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (ProduceRequest(40000, 1, []), "ProduceRequest.required_acks"),
        (ProduceRequest(1, 1 << 31, []), "ProduceRequest.timeout_ms"),
        (produce(topic="x" * 40000), "ProduceRequest.topics.topic"),
        (StopReplicaRequest(1, 1, 2, []), "StopReplicaRequest.delete_partitions"),
        (ControlledShutdownRequest(1 << 31), "ControlledShutdownRequest.broker_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_out_of_range_is_named(request_: Request, field: str) -> None:
    """A value that does not fit its field is a ProtocolError with the field's name; no value is
    truncated."""
    with pytest.raises(ProtocolError) as caught:
        codec.encode_request(request_, 1, "c")
    assert field in str(caught.value)


def test_correlation_ids_out_of_range_are_refused() -> None:
    """A correlation id is an int32, in requests and in responses."""
    with pytest.raises(ProtocolError, match="request header"):
        codec.encode_request(produce(), 1 << 31, "c")
    with pytest.raises(ProtocolError, match="ProduceResponse"):
        codec.encode_response(ProduceResponse([]), 1 << 31)


def test_a_delete_flag_of_two_is_refused() -> None:
    """StopReplica's flag is 0 or 1; kafka.api.StopReplicaRequest throws for others."""
    payload = payload_of(StopReplicaRequest(1, 1, 1, []), None)
    payload[18] = 2
    with pytest.raises(ProtocolError, match=r"StopReplicaRequest\.delete_partitions: 2"):
        codec.decode_request(payload)


@pytest.mark.parametrize(
    ("cut", "field"),
    [
        (5, "request header"),
        (10, "ProduceRequest client_id"),
        (15, "ProduceRequest.required_acks, ProduceRequest.timeout_ms, ProduceRequest.topics"),
        (27, "ProduceRequest.topics.topic"),
        (30, "ProduceRequest.topics.partitions"),
        (42, "ProduceRequest.topics.partitions.message_set"),
    ],
)
def test_a_short_body_is_named(cut: int, field: str) -> None:
    """The error has the message and the field where the bytes ended."""
    with pytest.raises(ProtocolError) as caught:
        codec.decode_request(payload_of(produce("topic"))[:cut])
    assert str(caught.value).startswith(f"{field}: ")


def test_counts_and_lengths_allocate_nothing_before_they_are_checked() -> None:
    """2^31-1 or -1 in place of any four bytes of any request allocates no more than the message."""
    requests = {
        (COMPLETE[exchange.level], exchange.request[4:8]): exchange.request
        for exchange in accepted_exchanges()
    }
    for (served, _), request in requests.items():
        codec.decode_request(request[SIZE.size :], served)
    tracemalloc.start()
    try:
        for (served, _), request in requests.items():
            for position in range(SIZE.size, len(request) - 3):
                for value in (INT32_MAX, -1):
                    payload = bytearray(request)
                    SIZE.pack_into(payload, position, value)
                    tracemalloc.reset_peak()
                    before, _ = tracemalloc.get_traced_memory()
                    try:
                        codec.decode_request(memoryview(payload)[SIZE.size :], served)
                    except ProtocolError:
                        pass
                    _, peak = tracemalloc.get_traced_memory()
                    assert peak - before < 64 * 1024
    finally:
        tracemalloc.stop()


def test_the_items_of_all_lists_are_counted_before_they_are_decoded() -> None:
    """Many small lists are bounded together, as one large one is."""
    wanted = ProduceRequest.ITEMS_MAX
    topics = [ProduceTopic(f"t{n}", [ProducePartition(0, b"")]) for n in range(wanted // 2)]
    fits = codec.encode_request(ProduceRequest(1, 0, topics), 1, "c")[4:]
    assert len(topics) == len(codec.decode_request(fits)[1].topics)
    one = ProduceTopic("more", [ProducePartition(0, b"")])
    too_many = codec.encode_request(ProduceRequest(1, 0, [*topics, one]), 1, "c")[4:]
    with pytest.raises(ProtocolError, match=r"partitions: more than 40000 items"):
        codec.decode_request(too_many)


def test_described_topics_are_few() -> None:
    """Each costs 2 KB of the response, 200 times the bytes of its name."""
    named = [DescribedResource(2, f"t{n}", None) for n in range(DescribeConfigsRequest.ITEMS_MAX)]
    fits = codec.encode_request(DescribeConfigsRequest(named), 1, "c")[4:]
    assert len(codec.decode_request(fits, SERVED[Level.V0_11_0])[1].resources) == len(named)
    too_many = codec.encode_request(DescribeConfigsRequest([*named, named[0]]), 1, "c")[4:]
    with pytest.raises(ProtocolError, match="resources: more than 10000 items"):
        codec.decode_request(too_many, SERVED[Level.V0_11_0])


def test_a_million_items_cost_no_memory() -> None:
    """8 MB of partitions are refused by their count."""
    head = struct.pack(">hhihhiihi", 0, 0, 1, -1, 1, 0, 1, 0, 1_000_000)
    data = head + bytes(8_000_000)
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="partitions: more than 40000 items"):
        codec.decode_request(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20  # with what compiles the decoder


def test_the_items_of_a_response_are_counted_too() -> None:
    """20 MB of Metadata of a broker that is none took a client 362 MB and 7 s."""
    payload = struct.pack(">iiihhi", 7, 0, 1, 0, 0, 1_000_000) + bytes(18_000_000)
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="partitions: more than 500000 items"):
        codec.decode_response(MetadataRequest, payload)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20  # with what compiles the decoder


def test_a_set_larger_than_the_response_is_refused() -> None:
    """The size of a set is compared with the remaining bytes of the response."""
    payload = struct.pack(">iihsiihqi", 1, 1, 1, b"t", 1, 0, 0, 5, INT32_MAX) + b"abc"
    with pytest.raises(ProtocolError, match=r"a length of 2147483647, but only 3 bytes left"):
        codec.decode_response(FetchRequest, payload)


def test_bytes_behind_the_body_are_ignored() -> None:
    """Requests and responses may have bytes behind their body, as in 0.8.2.2 (capture:
    trailing-bytes)."""
    request = produce()
    assert request == codec.decode_request(payload_of(request) + b"xyz")[1]
    response = FetchResponse([])
    frame = codec.encode_response(response, 1) + b"xyz"
    assert (1, response) == codec.decode_response(FetchRequest, frame[SIZE.size :])


def test_a_field_that_is_no_wire_type_is_refused_when_first_used() -> None:
    """A class with other annotations raises at its first use, with the field's name."""

    @dataclass
    class Wrong:
        count: int

    with pytest.raises(TypeError, match=r"Wrong\.count"):
        codec.encode_body(Wrong(1))


@dataclass(slots=True)
class Point:
    """Nested as a field of its own, not as the item of a list."""

    x: Int32
    y: Int32


@dataclass(slots=True)
class Line:
    start: Point
    label: String
    end: Point


@given(line=messages(Form(Line)))
def test_records_nest_as_fields(line: Line) -> None:
    """A record may be a field of another, and its bytes are at that place."""
    assert (line, 18 + len(line.label.encode())) == codec.decode_body(Line, codec.encode_body(line))
