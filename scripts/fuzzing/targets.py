"""The fuzz targets. Each takes any bytes, and raises for a defect only: malformed bytes must end in
the documented error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kafka08 import kernel
from kafka08.broker.requests import fast_groups
from kafka08.errors import CorruptLog, KafkaError, ProtocolError, ZooKeeperError
from kafka08.format.v2 import stamp
from kafka08.kernel import _python as twin
from kafka08.kernel.types import (
    BadTimestamp,
    Buffer,
    CorruptMessage,
    EntryTooLarge,
    Rules,
    UnknownCodec,
    Unpacker,
)
from kafka08.levels import Level
from kafka08.log import aborted_transactions, producer_snapshot
from kafka08.log.leader_epochs import LeaderEpochs
from kafka08.log.producer_entries import producer_entries
from kafka08.protocol import compression, consumer_protocol, transaction_records
from kafka08.protocol.api_versions import NAMING_VERSION, ApiVersionsRequest
from kafka08.protocol.apis import APIS
from kafka08.protocol.codec import correlation_id_of, decode_request, decode_response
from kafka08.protocol.fetch import FetchRequest, read_news
from kafka08.protocol.frame import BufferPool, FrameReader
from kafka08.protocol.group_records import decode_group
from kafka08.protocol.message_set import pack
from kafka08.protocol.offset_fetch import STABLE_VERSION, OffsetFetchRequest
from kafka08.protocol.offset_records import decode_key, decode_offset_value
from kafka08.protocol.served import SERVED
from kafka08.protocol.txn_offset_commit import GENERATION_VERSION, TxnOffsetCommitRequest
from kafka08.zk import nodes
from kafka08.zk.producer_ids import ProducerIdBlock

DATA: Final = Path(__file__).parent.parent.parent / "tests" / "data"
UNPACKED_BYTES: Final = 1 << 20
FLEXIBLE_BODIES: Final[dict[tuple[type, int], str]] = {
    (ApiVersionsRequest, NAMING_VERSION): "00000001 0000 03 0012 0000 0005 00 000a 0000 0006 01"
    " 05 02 abcd 00000000 00",
    (OffsetFetchRequest, STABLE_VERSION): "00000001 01 05 02 abcd 00000000 02 02 74 03"
    " 00000000 0000000000000007 00000003 02 6d 0000 00"
    " 00000001 ffffffffffffffff ffffffff 00 0058 01 01 01 aa 00 0000 00",
    (TxnOffsetCommitRequest, GENERATION_VERSION): "00000001 00 00000000 02 02 74 03"
    " 00000000 0000 00 00000003 0016 01 00 01 ff 00 00",
}
"""(Request, version) → the payload of a response."""
FRAME_BYTES: Final = 1 << 16
LEVELS: Final = tuple(SERVED[level] for level in Level if level in SERVED)
RESPONSES: Final = tuple((api.request, row.version) for api in APIS for row in api.versions)
KNOWN: Final = (BadTimestamp, CorruptMessage, EntryTooLarge, UnknownCodec)
RULES: Final = (Rules(), Rules(magic=0), Rules(log_append_time=True), Rules(keys_required=True))
NEWS_VERSION_MAX: Final = 3
DECODE_NODE: Final[tuple[Callable[[str], object], ...]] = (
    nodes.decode_broker,
    nodes.decode_assignment,
    lambda text: nodes.decode_leader_and_isr(text, 0),
    nodes.decode_controller,
    nodes.decode_controller_epoch,
    nodes.decode_consumer,
    nodes.decode_topic_config,
    nodes.decode_config_change,
    nodes.decode_reassignment,
    nodes.decode_preferred_election,
    nodes.decode_isr_changes,
    nodes.decode_cluster_id,
    nodes.decode_offset,
    ProducerIdBlock.decode,
)


def request(data: bytes) -> None:
    """A request to a broker; the first byte chooses the level. Those of groups' members are read by
    the kernels too, which find the same fields."""
    if data:
        for form in (fast_groups.JOIN, fast_groups.SYNC, fast_groups.HEARTBEAT):
            position = 1 + fast_groups.CORRELATION_ID
            native, python = (one.unpack_fields(data, form, position) for one in (kernel, twin))
            assert native == python, (form, native, python)
        try:
            decode_request(memoryview(data)[1:], LEVELS[data[0] % len(LEVELS)])
        except KafkaError:  # ProtocolError, and what Served.row raises for unknown versions
            pass


def response(data: bytes) -> None:
    """A response to a client; the first byte chooses API and version."""
    if data:
        asked, version = RESPONSES[data[0] % len(RESPONSES)]
        payload, decoded = memoryview(data)[1:], None
        try:
            correlation_id_of(payload)
            _, decoded = decode_response(asked, payload, version)
        except ProtocolError:
            pass
        if asked is FetchRequest and version <= NEWS_VERSION_MAX:
            news = _news_read(payload, version)
            assert news is None or news == _news_of(decoded)


def _news_of(response: Any) -> list[tuple[str, Any]] | None:
    """The news for a consumer that has seen nothing in a FetchResponse; None if it is malformed."""
    if response is None:
        return None
    seen: set[tuple[str, int, int]] = set()
    found = []
    for topic in response.topics:
        for part in topic.partitions:
            mark = (topic.topic, part.partition, part.high_watermark)
            if part.message_set or part.error_code or mark not in seen:
                found.append((topic.topic, part))
            seen.add(mark)
    return found


def _news_read(payload: memoryview, version: int) -> list[tuple[str, Any]] | None:
    """The same as consumers read it, without the objects between; None if they refuse it, for which
    bytes behind the last part are enough."""
    try:
        return read_news(payload, version, {})
    except ProtocolError:
        return None


def record(data: bytes) -> None:
    """Keys and values of the internal topics, and the bytes that consumers exchange in a group."""
    for decode in (
        transaction_records.decode_key,
        transaction_records.decode_transaction,
        decode_key,
        decode_offset_value,
        decode_group,
        lambda rest: consumer_protocol.decode(consumer_protocol.Subscription, rest),
        lambda rest: consumer_protocol.decode(consumer_protocol.Assignment, rest),
    ):
        try:
            decode(data)
        except ProtocolError:
            continue


def znode(data: bytes) -> None:
    """The text of a znode; the first byte chooses its kind."""
    if data:
        try:
            DECODE_NODE[data[0] % len(DECODE_NODE)](data[1:].decode(errors="surrogateescape"))
        except ZooKeeperError:
            pass


def log_file(data: bytes) -> None:
    """A file of a partition directory beside its messages."""
    aborted_transactions.decode(data)
    for decode in (
        producer_snapshot.decode,
        lambda text: LeaderEpochs.decode(text.decode("latin-1")),
        lambda log: list(producer_entries(log)),
    ):
        try:
            decode(data)
        except (CorruptLog, CorruptMessage):
            continue


def frame(data: bytes) -> None:
    """A stream of frames: the same payloads and error whether the bytes arrive together or one by
    one."""
    together, apart = _frames([data]), _frames(data[i : i + 1] for i in range(len(data)))
    assert together == apart, (together, apart)


def _frames(pieces: Iterable[bytes]) -> tuple[list[bytes], str]:
    """The payloads, and the error after them: `feed` raises it, or the next `buffer`."""
    reader, found = FrameReader(FRAME_BYTES, BufferPool()), []
    try:
        for piece in pieces:
            found += [bytes(payload) for payload in reader.feed(piece)]
        reader.buffer()
    except ProtocolError as error:
        return found, str(error)
    return found, ""


def decompressed(data: bytes) -> None:
    """The value of a wrapper; the first byte chooses codec and rules. Never more than the limit.
    Both kernels unpack snappy to the same."""
    if data:
        native, python = (_unpacked_snappy(one, data[1:]) for one in (kernel, twin))
        assert native == python, (native, python)
        codec, strict, magic = data[0] & 3, bool(data[0] & 4), (None, 0, 1)[(data[0] >> 3) % 3]
        try:
            found = compression.decompress(
                codec, data[1:], UNPACKED_BYTES, strict=strict, magic=magic
            )
            assert len(found) <= UNPACKED_BYTES
            start = compression.decompress_start(codec, data[1:], 100)
            assert bytes(start) == bytes(found[:100])
        except compression.DecompressionError:
            pass


def _unpacked_snappy(one: Any, data: bytes) -> bytearray | str | None:
    try:
        found: bytearray | None = one.unpack_snappy(data, UNPACKED_BYTES)
    except ValueError as error:
        return str(error)
    return found


def message_set(data: bytes) -> None:
    """A message set: both kernels return the same and raise the same. CRCs are not verified where
    that is possible, or mutations would hardly get further."""
    results = [[_outcome(use, one, data) for use in SET_USES] for one in (kernel, twin)]
    for use, native, python in zip(SET_USES, *results, strict=True):
        assert native == python, (use.__name__, native, python)


def _unpack(codec: int, value: Buffer, max_bytes: int) -> bytes | bytearray:
    return compression.decompress(codec, value, max_bytes)


UNPACK: Final = Unpacker(_unpack, UNPACKED_BYTES)


def _validate(one: ModuleType | Any, data: bytes) -> Any:
    target = bytearray(data)
    found = one.validate_and_assign(target, 100, 1 << 16, verify_crc=False)
    return found.codec or (repr(found), target)


def _stamp(one: ModuleType | Any, data: bytes) -> Any:
    return [
        repr(one.check_messages(data, rules, 1000, magic, rules.magic == 1))
        for rules in RULES
        for magic in (-1, 1)
    ]


def _recover(one: ModuleType | Any, data: bytes) -> Any:
    found = one.recover(data, 30, 10)
    return found.valid_bytes, found.last_offset, found.index_points, repr(found.error)


def _entries(one: ModuleType | Any, data: bytes) -> Any:
    return [(e.offset, e.crc, e.key, e.value, e.timestamp_ms) for e in one.entries(data)]


def _messages(one: ModuleType | Any, data: bytes) -> Any:
    found = one.messages(data, "t", 0, 3, UNPACK, verify_crc=False)
    return list(map(repr, found)), found.next_offset


def _columns(one: ModuleType | Any, data: bytes) -> Any:
    batches = one.column_batches(
        data, 3, None, UNPACK, verify_crc=False, max_rows=5, timestamps=True
    )
    return [
        [bytes(value) if isinstance(value, bytearray) else value for value in astuple(batch)]
        for batch in batches
    ]


def _columns_in_place(one: ModuleType | Any, data: bytes) -> Any:
    batches = one.column_batches(bytearray(data), 3, None, UNPACK, max_rows=5, in_place=True)
    return [
        (bytes(batch.offsets), bytes(batch.value_offsets), bytes(batch.value_data), batch.more)
        for batch in batches
    ]


def _convert(one: ModuleType | Any, data: bytes) -> Any:
    target = bytearray(2 * len(data) + 100)
    return [(one.convert(data, target, magic), bytes(target)) for magic in (0, 1)]


def _search(one: ModuleType | Any, data: bytes) -> Any:
    return one.find_offset(data, 9), one.scan_timestamp(data, 5), one.runs(data)


SET_USES: Final = (
    _validate, _stamp, _recover, _entries, _messages, _columns, _columns_in_place, _convert,
    _search,
)  # fmt: skip


def _outcome(use: Callable[[Any, bytes], Any], one: ModuleType, data: bytes) -> Any:
    try:
        return use(one, data)
    except KNOWN as error:
        return type(error).__name__, str(error)


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "request": request,
    "response": response,
    "record": record,
    "znode": znode,
    "frame": frame,
    "decompress": decompressed,
    "set": message_set,
    "log": log_file,
}


def seeds(target: str) -> Iterator[bytes]:
    """Inputs to begin with: captured exchanges and znodes, and sets built here."""
    if target == "response":
        yield from _flexible_responses()
    if target in ("request", "response"):
        for file in sorted(DATA.glob("*api*.json")):
            for number, exchange in enumerate(_exchanges(json.loads(file.read_text()))):
                text = exchange.get(f"{target}_hex")
                if text:
                    yield bytes([number % 256]) + bytes.fromhex(text)[4:]
    elif target == "znode":
        for number, text in enumerate(
            _texts(json.loads((DATA / "znodes-0.8.2.2-live.json").read_text()))
        ):
            yield bytes([number % len(DECODE_NODE)]) + text.encode()
    elif target == "log":
        yield from _files(json.loads((DATA / "0.11-logs.json").read_text()))
    else:
        if target == "set":
            yield from _record_batches()
        for magic in (0, 1):
            for codec in range(4):
                inner = kernel.build_set(
                    [(b"k", b"v" * 20), (None, b""), (b"k", None)], 3, magic=magic
                )
                value = compression.compress(codec, inner, magic)
                if target == "decompress":
                    yield bytes([codec | magic << 3]) + bytes(value)
                elif target == "frame":
                    yield len(value).to_bytes(4) + bytes(value)
                else:
                    yield bytes(inner + (kernel.wrap(value, 5, codec, magic) if codec else b""))


def _record_batches() -> Iterator[bytes]:
    """Batches of magic 2, plain and compressed, of a producer and of none."""
    for codec in range(4):
        batch = kernel.build_from_lists([b"k", None], [b"v" * 20, None], 0, 2, 2, 1000)
        if codec:
            batch = pack(batch, codec, 1, 2)
        yield bytes(batch)
        stamp(batch, 7, 1, 3, is_transactional=True)
        yield bytes(batch)


def _flexible_responses() -> Iterator[bytes]:
    """One of each layout, as later brokers send them: with tagged fields in header and body."""
    for number, (asked, version) in enumerate(RESPONSES):
        text = FLEXIBLE_BODIES.get((asked, version))
        if text is not None:
            yield bytes([number]) + bytes.fromhex(text)


def _exchanges(found: Any) -> Iterator[dict[str, Any]]:
    """The objects with a request, at any depth."""
    if isinstance(found, dict):
        if isinstance(found.get("request_hex"), str):
            yield found
        for value in found.values():
            yield from _exchanges(value)
    elif isinstance(found, list):
        for value in found:
            yield from _exchanges(value)


def _files(found: Any) -> Iterator[bytes]:
    """The files that are not empty, at any depth."""
    if isinstance(found, dict):
        if found.get("hex"):
            yield bytes.fromhex(found["hex"])
        elif found.get("text"):
            yield found["text"].encode()
        else:
            for value in found.values():
                yield from _files(value)


def _texts(found: Any) -> Iterator[str]:
    """The texts that are JSON, at any depth."""
    if isinstance(found, dict):
        for value in found.values():
            yield from _texts(value)
    elif isinstance(found, list):
        for value in found:
            yield from _texts(value)
    elif isinstance(found, str) and found.startswith("{"):
        yield found
