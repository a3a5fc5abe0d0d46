from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08 import kernel
from kafka08.kernel.types import Buffer
from kafka08.log import recovery
from kafka08.log.offset_index import IndexEntry
from kafka08.log.recovery import Recovered, recover_messages
from kafka08.protocol import compression, message_set
from kafka08.runtime.disk import OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK
from tests.log.conftest import OpenLog, a_set, all_values, index_entries

FACTS = json.loads((Path(__file__).parent.parent / "data/extra-0.8.2.2.json").read_text())["facts"]
INTERVAL = 256
"""index.interval.bytes of the captured topic: the one that explains every captured entry."""


def recovered(path: Path, data: Buffer, interval: int = 4096) -> Recovered:
    path.write_bytes(data)
    file = SYSTEM_DISK.open(path, OpenMode.READ)
    return recover_messages(file, len(data), index_interval_bytes=interval)


def _like_captured() -> Iterator[bytearray]:
    """The entries of the captured segment, by offset, size and codec. Each wrapper contains the
    three messages that end at its offset."""
    positions = FACTS["set positions"]
    ends = [position for _, position, _ in positions[1:]] + [FACTS["log size after recovery"]]
    for (offset, position, codec), end in zip(positions, ends, strict=True):
        room = end - position - 26
        if codec:
            value = compression.compress(codec, a_set(b"", b"", b"", base_offset=offset - 2))
            yield kernel.build_set([(b"k" * (room - len(value)), value)], offset, codec)
        else:
            yield kernel.build_set([(None, b"v" * room)], offset)


def test_a_live_index_is_that_of_0_8_2_2(open_log: OpenLog) -> None:
    """The index equals the captured one for the same appends: sets of three messages and wrappers
    in turn. A set gets an entry, by its first offset, once more than the interval lies behind the
    last entry."""
    log = open_log(index_interval_bytes=INTERVAL)
    entries = list(_like_captured())
    wrapper = 3
    while entries:
        plain, entries = entries[:wrapper], entries[wrapper:]
        log.append_as_follower(bytearray().join(plain))
        if entries:
            log.append_as_follower(entries.pop(0))
        wrapper = 3
    live = [IndexEntry(offset, position) for offset, position in FACTS["index live"]]
    assert live == index_entries(log.active_segment.index)


def test_a_rebuilt_index_is_that_of_0_8_2_2(tmp_path: Path) -> None:
    """Recovery counts entries instead of sets, and indexes a wrapper by its first inner offset."""
    found = recovered(tmp_path / "log", bytearray().join(_like_captured()), interval=INTERVAL)
    rebuilt = [IndexEntry(offset, position) for offset, position in FACTS["index rebuilt"]]
    assert rebuilt == found.index_entries
    assert (FACTS["log size after recovery"], 35, None) == (
        found.valid_bytes,
        found.last_offset,
        found.problem,
    )


def test_every_cut_leaves_the_whole_entries(tmp_path: Path) -> None:
    """Wherever the file is cut, recovery keeps the whole entries before the cut."""
    data = a_set(b"a", b"bb", b"") + a_set(b"c" * 5, b"d", codec=1, base_offset=3)
    ends = [entry.position + entry.entry_size for entry in kernel.entries(data)]
    offsets = [entry.offset for entry in kernel.entries(data)]
    for size in range(len(data) + 1):
        whole = [end for end in ends if end <= size]
        found = recovered(tmp_path / "log", data[:size])
        assert (whole or [0])[-1] == found.valid_bytes
        assert [-1, *offsets][len(whole)] == found.last_offset
        assert (found.problem is None) == (size in {0, *ends})


def test_every_flipped_byte_behind_the_offset_is_seen(tmp_path: Path) -> None:
    """Recovery sees every flipped byte of size, CRC, attributes, lengths and content, and keeps the
    entries before it. The CRC does not cover offsets."""
    data = a_set(b"a", b"bb", b"ccc")
    second, third = 27, 27 + 28
    for at in range(second + 8, third):
        flipped = bytearray(data)
        flipped[at] ^= 0x40
        found = recovered(tmp_path / "log", flipped)
        assert (second, 0) == (found.valid_bytes, found.last_offset)
        assert found.problem is not None


def test_a_wrapper_that_cannot_be_unpacked_ends_nothing(tmp_path: Path) -> None:
    """Recovery unpacks a wrapper only where the index needs its first inner offset. If that fails,
    the wrapper stays, without an index entry: its CRC is correct, so it is what was stored. (One
    that unpacks to more than we allow is as sound; 0.8.2.2 cuts there.)"""
    data = a_set(b"a" * 50) + kernel.wrap(b"not gzip", 1, 1) + a_set(b"b", base_offset=2)
    found = recovered(tmp_path / "log", data, interval=10)
    assert (len(data), 2, None) == (found.valid_bytes, found.last_offset, found.problem)
    assert [2] == [entry.offset for entry in found.index_entries]
    assert len(found.index_entries) == len(found.time_entries)


def test_a_damaged_size_costs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that is larger than a chunk is read whole only after its CRC was found right: a size
    field may be damaged."""
    monkeypatch.setattr(recovery, "CHUNK_BYTES", 40)
    data = a_set(b"a", b"b" * 100, b"c")
    assert len(data) == recovered(tmp_path / "log", data).valid_bytes
    data[27 + 50] ^= 1

    found = recovered(tmp_path / "log", data)
    assert (27, "the crc of a large entry is wrong") == (found.valid_bytes, found.problem)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrong_crc_inside_a_wrapper_ends_nothing(tmp_path: Path, magic: int) -> None:
    """A follower stores what its leader sends. Recovery, as in Kafka, checks the CRC of the wrapper
    and indexes it by its first inner offset, so what follows it remains."""
    offset = 0 if magic else 10
    times = [5, 6] if magic else None
    inner = bytearray(message_set.encode([(None, b"a"), (None, b"b")], 0, offset, magic, times))
    inner[-1] ^= 1
    wrapper = message_set.pack(inner, compression.GZIP, 11, magic, 6)
    data = a_set(b"x", base_offset=9) + wrapper + a_set(b"c", base_offset=12)
    found = recovered(tmp_path / "log", data, interval=0)
    assert (len(data), 12, None) == (found.valid_bytes, found.last_offset, found.problem)
    assert [10, 12] == [entry.offset for entry in found.index_entries]


@pytest.mark.parametrize("interval", [0, 4096])
def test_offsets_that_fall_end_the_log(tmp_path: Path, interval: int) -> None:
    """Recovery cuts where offsets fall: a crash may leave old bytes that are valid messages.
    0.8.2.2 notices only where it makes an index entry, and then empties the whole segment (seen
    live). We keep the messages before."""
    data = a_set(b"a", b"b", b"c", base_offset=10) + a_set(b"d", b"e", base_offset=5)
    found = recovered(tmp_path / "log", data, interval=interval)
    assert (81, 12, "offsets do not ascend") == (
        found.valid_bytes,
        found.last_offset,
        found.problem,
    )


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=40),
    chunk_bytes=st.integers(12, 300),
    interval=st.integers(0, 500),
)
def test_chunks_do_not_show(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], chunk_bytes: int, interval: int
) -> None:
    """Result and index do not depend on the size of the reads."""
    data = a_set(*[b"x" * size for size in sizes])
    path = tmp_path_factory.mktemp("recovery") / "log"
    whole = recovered(path, data, interval=interval)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "CHUNK_BYTES", chunk_bytes)
        assert whole == recovered(path, data, interval=interval)
    assert (len(data), len(sizes) - 1) == (whole.valid_bytes, whole.last_offset)


@pytest.mark.parametrize("offset", [2**31, 2**40, 2**62])
def test_an_offset_that_no_index_can_hold_is_not_indexed(open_log: OpenLog, offset: int) -> None:
    """Recovery keeps a message whose offset does not fit into the index and leaves out its entry,
    as 0.8.2.2 does. The log end is behind it. The first offset of a segment may be so high: the
    leader is compacted."""
    log = open_log(index_interval_bytes=0)
    log.append_as_follower(a_set(b"a", b"b", base_offset=offset))
    again = open_log(index_interval_bytes=0)
    assert offset + 2 == again.log_end_offset
    assert [] == index_entries(again.active_segment.index)


FLIPPED_SETS = {
    "plain": [a_set(b"a", base_offset=n) for n in range(12)],
    "magic 0": [a_set(b"a", b"b", b"c", codec=1, base_offset=n) for n in range(0, 12, 3)],
    "magic 1": [
        bytearray(
            message_set.pack(message_set.encode([(b"k", b"v")] * 3, 0, 0, 1, [5] * 3), 1, n, 1, 5)
        )
        for n in (2, 5, 8, 11)
    ],
}


@pytest.mark.parametrize("kind", FLIPPED_SETS)
@pytest.mark.parametrize("chunk_bytes", [50, 1 << 20])
def test_a_flipped_bit_in_an_offset_deletes_nothing(
    tmp_path: Path, kind: str, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No CRC covers an offset. Whichever bit of one flips, every message stays, and the log ends
    where it did. Between two neighbours the right offset is known."""
    monkeypatch.setattr(recovery, "CHUNK_BYTES", chunk_bytes)
    sets = FLIPPED_SETS[kind]
    position = 0
    for data in sets[:-1]:
        for bit in range(64):
            flipped = bytearray(b"".join(sets))
            flipped[position + 7 - bit // 8] ^= 1 << bit % 8
            found = recovered(tmp_path / "log", flipped, interval=20)
            assert (len(flipped), 11, None) == (
                found.valid_bytes,
                found.last_offset,
                found.problem,
            )
            if kind != "magic 1" and found.fixes:
                (right,) = struct.unpack_from(">q", data)
                assert {position: right} == found.fixes
            assert found.fixes or kind != "plain"
        position += len(data)


def test_a_flipped_bit_is_written_right(open_log: OpenLog) -> None:
    """The start of a broker that was killed sets the offset right on disk, also where only the next
    segment shows that it is wrong."""
    log = open_log(index_interval_bytes=0)
    for number in range(8):
        log.append(a_set(b"%d" % number))
        if number == 3:
            log.roll()
    sound = [path.read_bytes() for path in sorted(log.directory.glob("*.log"))]
    for number, name in ((1, 0), (3, 0), (5, 4)):
        path = log.directory / f"{name:020d}.log"
        data = bytearray(path.read_bytes())
        data[27 * (number - name) + 3] ^= 1
        path.write_bytes(data)
    again = open_log(index_interval_bytes=0)
    assert list(range(8)) == [offset for offset, _ in all_values(again)]
    assert sound == [path.read_bytes() for path in sorted(log.directory.glob("*.log"))]


def test_a_message_above_a_lowered_limit_stays(open_log: OpenLog) -> None:
    """max.message.bytes is for producers. A start after a crash keeps a message that was stored
    before it was lowered, and rebuilds a lost index around it; 0.8.2.2 deletes all that follows."""
    log = open_log()
    for number in range(4):
        log.append(a_set(b"%d" % number * 200 * (1 + number % 2)))
        if number == 1:
            log.roll()
    (log.directory / f"{0:020d}.index").unlink()
    assert 4 == len(all_values(open_log(max_message_bytes=100)))
    assert 4 == len(all_values(open_log(max_message_bytes=100, recovery_point=4)))
