"""Sets for old consumers, held against what a live 0.10.2.2 sent them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import kernel
from kafka08.kernel import build_set, entries, wrap
from kafka08.protocol import compression, message_set
from kafka08.protocol.compression import GZIP, LZ4, SNAPPY
from kafka08.protocol.conversion import Converter
from tests import strategies

DATA = Path(__file__).parent.parent / "data"
THREE: list[tuple[bytes | None, bytes | None]] = [(b"k", b"value"), (None, b"x" * 10), (b"", None)]
MANY = 1 << 20

each_codec = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=compression.CODECS.get)


def convert(data: bytes, magic: int = 0, piece_bytes: int = MANY) -> bytes:
    converter = Converter(magic)
    pieces = [data[at : at + piece_bytes] for at in range(0, len(data), piece_bytes)]
    return b"".join(bytes(part) for piece in pieces for part in converter.convert(piece))


def rows(data: bytes) -> list[Any]:
    return [(m.offset, m.key, m.value, m.timestamp) for m in message_set.decode(data)]


def fetched(name: str) -> tuple[str, bytes]:
    """(topic, the set) of a captured Fetch."""
    for exchange in json.loads((DATA / "0.10-api-data.json").read_text()):
        if exchange["name"] == name:
            (topic,) = exchange["response"]["body"]["topics"]
            return topic["topic"], bytes.fromhex(topic["parts"][0]["set"]["hex"])
    raise KeyError(name)


def log_of(topic: str) -> bytes:
    log = json.loads((DATA / "0.10-logs.json").read_text())[f"{topic}-0"]
    return bytes.fromhex(log["hex"])


@pytest.mark.parametrize("name", ["fetch-v0-b-plain", "fetch-v0-b-m0"])
def test_plain_sets_are_those_of_0_10_2_2(name: str) -> None:
    """Converted plain sets equal those of 0.10.2.2 byte for byte."""
    topic, expected = fetched(name)
    assert expected == convert(log_of(topic))


@pytest.mark.parametrize(
    "name", ["fetch-v0-b-gzip", "fetch-v0-b-lz4", "fetch-v1-b-snappy", "fetch-v0-b-misc2"]
)
def test_compressed_sets_have_the_messages_of_0_10_2_2(name: str) -> None:
    """The messages of magic 0 are the same; 0.10.2.2 packs all of a response into one wrapper, or
    into none if the first message is plain."""
    topic, expected = fetched(name)
    found = convert(log_of(topic))
    assert rows(expected) == rows(found)
    assert flat(expected) == flat(found)
    assert {0} == {entry.magic for entry in entries(found, verify_crc=True)}


@pytest.mark.parametrize("codec", [compression.NONE, GZIP])
def test_a_large_message_is_looked_at_once(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pieces bring it, the bytes given to the kernel grow like the message."""
    large = message_set.encode([(b"k", bytes(random.randbytes(MANY)))], codec, magic=1)
    seen = 0
    convert_entries = kernel.convert

    def counted(data: Any, *rest: Any) -> Any:
        nonlocal seen
        seen += len(data)
        return convert_entries(data, *rest)

    monkeypatch.setattr(kernel, "convert", counted)
    found = convert(large, piece_bytes=MANY // 64)
    assert rows(found) == [(0, b"k", rows(large)[0][2], -1)]
    assert seen < 3 * len(large)


def flat(data: bytes) -> bytes:
    """The messages of a set of magic 0 without its wrappers."""
    return b"".join(
        bytes(message_set.unpack(entry.codec, entry.value or b""))
        if entry.codec
        else data[entry.position : entry.position + entry.entry_size]
        for entry in entries(data)
    )


@each_codec
def test_wrapper_is_converted_to_magic_0(codec: int) -> None:
    """Codec and offset stay, inner offsets are absolute with their gaps, timestamps go; 0.8.2.2 can
    read it."""
    inner = build_set(THREE[:2], 1, 0, 1, [5, 6]) + build_set(THREE[2:], 7, 0, 1, [7])
    data = wrap(compression.compress(codec, inner, 1), 107, codec, 1, 9000, True)
    (entry,) = entries(convert(bytes(data)), verify_crc=True)
    assert (107, 0, codec) == (entry.offset, entry.magic, entry.attributes)
    found = compression.decompress(codec, entry.value or b"", MANY, strict=True)
    assert build_set(THREE[:2], 101) + build_set(THREE[2:], 107) == found


@each_codec
def test_wrapper_is_converted_to_magic_1(codec: int) -> None:
    """Inner offsets are relative, there are no timestamps, and lz4 has the header of magic 1."""
    (entry,) = entries(convert(message_set.encode(THREE, codec, 100), 1), verify_crc=True)
    assert (102, 1, codec, -1) == (entry.offset, entry.magic, entry.attributes, entry.timestamp_ms)
    found = compression.decompress(codec, entry.value or b"", MANY, magic=1)
    assert build_set(THREE, magic=1) == found


def test_entries_of_the_wanted_magic_stay() -> None:
    """Wrappers of that magic are not even unpacked."""
    broken = bytes(wrap(b"not gzip", 3, GZIP))
    data = bytes(build_set(THREE)) + broken + bytes(build_set(THREE, 4))
    assert data == convert(data)


@given(
    pairs=strategies.pairs,
    codec=st.sampled_from([0, GZIP, SNAPPY, LZ4]),
    magic=st.integers(0, 1),
    piece_bytes=st.integers(1, 300),
)
def test_pieces_make_no_difference(
    pairs: list[Any], codec: int, magic: int, piece_bytes: int
) -> None:
    """Cut anywhere, the pieces convert to the same bytes as the whole."""
    times = [None, list(range(len(pairs)))][magic]
    data = message_set.encode(THREE, 0, 90) + message_set.encode(pairs, codec, 100, magic, times)
    target = 1 - magic
    whole = convert(data, target)
    assert whole == convert(data, target, piece_bytes)
    assert [row[:3] for row in rows(data)] == [row[:3] for row in rows(whole)]
    assert {target} >= {entry.magic for entry in entries(whole, verify_crc=True)}


def test_a_cut_entry_waits() -> None:
    """A cut entry gives no bytes until its rest arrives."""
    converter = Converter(0)
    data = bytes(build_set(THREE, magic=1))
    assert [] == converter.convert(data[:30])
    assert converter.pending == 30
    assert build_set(THREE) == b"".join(bytes(part) for part in converter.convert(data[30:]))
    assert converter.pending == 0


def wrapper_around(inner: bytearray) -> bytes:
    return bytes(wrap(compression.compress(GZIP, inner), 3, GZIP, 1))


@pytest.mark.parametrize(
    "broken",
    [
        bytes(wrap(b"not gzip", 3, GZIP, 1)),
        wrapper_around(wrap(b"", 0, GZIP, 1)),
        bytes(build_set(THREE[:1], magic=1))[:-1] + b"x",
        wrapper_around(build_set(THREE[:2], magic=1)[:-1] + b"y"),
        wrapper_around(build_set(THREE[:2])[:-1] + b"y"),
        bytes(12),
    ],
    ids=["undecodable", "nested", "crc", "crc inside", "crc inside of magic 0", "size"],
)
def test_broken_entry(broken: bytes) -> None:
    """The entries before it are converted, and the next call raises."""
    converter = Converter(0)
    data = bytes(build_set(THREE, magic=1)) + broken
    parts = converter.convert(data)
    assert rows(b"".join(bytes(part) for part in parts))[:3] == rows(bytes(build_set(THREE)))
    with pytest.raises(ValueError):
        converter.convert(b"")


def test_budget_of_a_wrapper() -> None:
    """The size of a wrapper's contents is limited before they are unpacked."""
    data = message_set.encode([(None, bytes(1000))], GZIP, 0, 1)
    assert Converter(0, 1034).convert(data)
    with pytest.raises(compression.UnpacksToMore):
        Converter(0, 1033).convert(data)


@given(data=st.binary(max_size=120), magic=st.integers(0, 1))
def test_noise_is_a_clean_error(data: bytes, magic: int) -> None:
    """Any bytes are converted, left, or a ValueError."""
    try:
        Converter(magic).convert(data)
    except ValueError:
        pass
