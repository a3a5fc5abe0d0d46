"""Produced record batches and down-conversion, held against a live 0.11.0.3."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.errors import ApiError
from kafka08.format import FORMATS, Message, RecordFormat, batches
from kafka08.kernel.types import Rules, Unpacker
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.protocol import compression, message_set
from kafka08.protocol.compression import CODECS, GZIP, NONE
from kafka08.protocol.conversion import Converter
from kafka08.protocol.record_batches import as_messages, prepare
from tests.format.captures import LOGS

DATA = Path(__file__).parent.parent / "data"
EXCHANGES = {one["name"]: one for one in json.loads((DATA / "0.11-api-data.json").read_text())}
TARGETS = {"v-ct-gzip": GZIP, "v-ct-unc": NONE}
CAPTURED_MS = 1_795_312_000_000
DAY_MS = 86_400_000
LIMIT = 1_000_012
DEPARTURES = {
    # 0.11 gives the same offset twice.
    *("produce-v3-lastdelta-7", "produce-v3-lastdelta-7-gzip"),
    *("produce-v3-deltas-0-5-9", "produce-v3-deltas-gap-gzip"),
}
OF_ITS_OWN = {
    "v-m0",
    "v-m0z",
    "v-m1",
    "v-m1z",
    "v-small",
    "u-small",
    "__consumer_offsets",
    "nope-x",
}
"""Topics of older formats, or with other limits."""
V2 = FORMATS[2]
assert isinstance(V2, RecordFormat)


def produced(name: str) -> tuple[str, bytearray, Any] | None:
    """Topic, set and the partition's response of a captured Produce; None for other requests."""
    exchange = EXCHANGES[name]
    if exchange["api_key"] != 0 or not exchange.get("response"):
        return None
    topic = exchange["request"]["body"]["topics"][0]
    answer = exchange["response"]["body"]["topics"][0]["parts"][0]
    stored = topic["parts"][0]["set"]
    if stored is None or topic["topic"] in OF_ITS_OWN or answer["part"]:
        return None
    return topic["topic"], bytearray.fromhex(stored["hex"]), answer


NOT_OF_THE_SET = {45, 47, 21, 3}
"""Errors of sequences, acks, partitions."""
PRODUCED = [
    name
    for name in EXCHANGES
    if (found := produced(name)) and found[2]["err"] not in NOT_OF_THE_SET
]


def rules_of(topic: str, answer: Any) -> tuple[Rules, int]:
    """The topic's rules, and the time of the append."""
    if answer.get("ts", -1) >= 0 and topic.startswith("v-l"):
        return Rules(magic=2, log_append_time=True), answer["ts"]
    if topic == "v-diff":
        return Rules(magic=2, max_difference_ms=DAY_MS), CAPTURED_MS
    return Rules(magic=2, keys_required=topic == "v-cmp"), CAPTURED_MS


def rows(data: bytes | memoryview) -> list[Any]:
    assert isinstance(V2, RecordFormat)
    view = memoryview(data)
    return [
        (
            batch._replace(position=0, size=0, crc=0),
            [plain_row(record) for record in V2.records(view, batch, message_set.unpack)],
        )
        for batch in batches(view)
    ]


def plain_row(record: Message) -> Any:
    key, value = (None if field is None else bytes(field) for field in record[1:3])
    return record.offset, key, value, record.timestamp_ms, record.timestamp_type, record.headers


@pytest.mark.parametrize("name", PRODUCED)
def test_a_leader_stores_what_0_11_0_3_stores(name: str) -> None:
    """The same error, or the same batch: byte for byte, unless it was compressed again."""
    found = produced(name)
    assert found is not None
    topic, data, answer = found
    rules, now_ms = rules_of(topic, answer)
    offset = max(0, answer["offset"])
    target = TARGETS.get(topic)
    if answer["err"] or name in DEPARTURES:
        with pytest.raises(ApiError) as error:
            prepare(data, offset, now_ms, rules, LIMIT, 1 << 30, target)
        assert (answer["err"] or 2) == error.value.code
        return
    sent = [batch.codec for batch in batches(data)]
    prepared = prepare(data, offset, now_ms, rules, LIMIT, 1 << 30, target)
    assert offset == prepared.first_offset
    log = next((log for at, (log, _) in LOGS.items() if at.startswith(f"{topic}-0/")), None)
    if log is None or "duplicate" in name or "again" in name or "repeat" in name:
        return
    stored = [
        log[batch.position : batch.end]
        for batch in batches(log)
        if offset <= batch.base_offset <= prepared.last_offset
    ]
    stored = stored[: len(sent)]  # of v-misc2 later ones overlap: see DEPARTURES
    if not stored:
        return  # in another segment
    if sent == [batch.codec for batch in batches(prepared.data)] and "v3" in name:
        assert b"".join(stored) == bytes(prepared.data)
    assert rows(b"".join(stored)) == rows(bytes(prepared.data))


@pytest.mark.parametrize(("topic", "magic"), [("v-m1", 1), ("v-m1z", 1), ("v-m0", 0), ("v-m0z", 0)])
def test_a_topic_of_an_older_format_gets_messages(topic: str, magic: int) -> None:
    """What 0.11.0.3 stored of batches without headers and producers; plain sets byte for byte."""
    log, _ = LOGS[f"{topic}-0/{0:020d}.log"]
    config = LogConfig(level=Level.V0_11_0, message_format_version=f"0.{8 + 2 * magic}.0")
    stored = bytearray()
    offset = 0
    for exchange in EXCHANGES.values():
        if exchange["api_key"] or exchange["request"]["body"]["topics"][0]["topic"] != topic:
            continue
        (part,) = exchange["request"]["body"]["topics"][0]["parts"]
        (answer,) = exchange["response"]["body"]["topics"][0]["parts"]
        data = bytearray.fromhex(part["set"]["hex"])
        if answer["err"]:
            with pytest.raises(ApiError) as error:
                config.prepare(data, offset, CAPTURED_MS)
            assert answer["err"] == error.value.code
            continue
        prepared = config.prepare(data, offset, CAPTURED_MS)
        assert answer["offset"] == prepared.first_offset
        stored += prepared.data
        offset = prepared.last_offset + 1
    assert list(message_set.decode(log)) == list(message_set.decode(stored))
    if not topic.endswith("z"):
        assert log == stored


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_of_older_producers_become_a_batch(codec: int, magic: int) -> None:
    """Of each codec: lz4 of magic 0 has a header of its own."""
    data = message_set.encode([(b"k", b"a"), (None, b"b")], codec, magic=magic)
    prepared = prepare(
        bytearray(data), 5, CAPTURED_MS, Rules(magic=2), LIMIT, LIMIT, leader_epoch=0
    )
    (batch,) = batches(prepared.data)
    assert (2, codec, 5, 6) == (batch.magic, batch.codec, batch.base_offset, batch.last_offset)
    found = [(m.key, m.value) for m in message_set.decode(prepared.data)]
    assert found == [(b"k", b"a"), (None, b"b")]
    lowered = as_messages(prepared.data, 0, from_offset=0)
    unpack = Unpacker(partial(compression.decompress, strict=True), LIMIT)  # as 0.8.2.2 does
    assert found == [(m.key, m.value) for m in kernel.messages(lowered, "", 0, 0, unpack)]


def test_a_batch_has_the_epoch_of_its_leader() -> None:
    """Whatever the producer wrote there."""
    config = LogConfig(level=Level.V0_11_0, message_format_version="0.11.0")
    found = produced("produce-v3-plain")
    assert found is not None
    (batch,) = batches(config.prepare(found[1], 5, CAPTURED_MS, leader_epoch=7).data)
    assert (5, 7) == (batch.base_offset, batch.leader_epoch)


def fetched(name: str) -> tuple[str, bytes]:
    exchange = EXCHANGES[name]
    (topic,) = exchange["response"]["body"]["topics"]
    return topic["topic"], bytes.fromhex(topic["parts"][0]["set"]["hex"])


DOWN = [
    name
    for name, one in EXCHANGES.items()
    if one["api_key"] == 1
    and one["api_version"] < 4
    and (one.get("response") or {}).get("body", {}).get("topics")
    and "hex" in (one["response"]["body"]["topics"][0]["parts"][0]["set"] or {})
    and f"{one['response']['body']['topics'][0]['topic']}-0/{0:020d}.log" in LOGS
]


@pytest.mark.parametrize("name", DOWN)
def test_old_consumers_get_the_messages_of_0_11_0_3(name: str) -> None:
    """Offsets, keys, values and timestamps of what an old fetch got; plain sets byte for byte."""
    topic, expected = fetched(name)
    magic = 1 if EXCHANGES[name]["api_version"] >= 2 else 0
    data, _ = LOGS[f"{topic}-0/{0:020d}.log"]
    if not expected or {batch.magic for batch in batches(expected)} != {magic}:
        return  # unconverted, since nothing was whole
    wanted = list(message_set.decode(expected))
    converted = b"".join(bytes(part) for part in Converter(magic).convert(data))
    first, last = wanted[0].offset, wanted[-1].offset
    found = [one for one in message_set.decode(converted, first) if one.offset <= last]
    assert wanted == found
    if not any(batch.codec for batch in batches(expected)):
        assert expected in converted


def test_headers_are_dropped_or_refused() -> None:
    """A consumer goes on behind a batch with headers; a producer is refused."""
    data, _ = LOGS["v-hdr-0/00000000000000000000.log"]
    assert 3 == len(list(message_set.decode(as_messages(data, 1))))
    with pytest.raises(ValueError, match="no headers"):
        as_messages(data, 1, drops_headers=False)
