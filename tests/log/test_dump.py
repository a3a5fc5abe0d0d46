from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08 import kernel
from kafka08.levels import Level
from kafka08.log.dump import LogDump
from kafka08.log.log import Log
from kafka08.log.time_index import TIME_ENTRY
from kafka08.protocol import message_set
from tests.log.conftest import OpenLog, a_set

DATA = Path(__file__).parent.parent / "data"
SANDBOX = json.loads((DATA / "sandbox-logs-0.8.2.2.json").read_text())
TOOLS = json.loads((DATA / "tools-output-0.8.2.2.json").read_text())


@pytest.fixture
def captured(tmp_path: Path, open_log: OpenLog) -> Path:
    """The segment of the captured outputs, with an index as a running broker has it."""
    directory = tmp_path / "tt-0"
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    path.write_bytes(bytes.fromhex(SANDBOX["producer segments"][0]["hex"]))
    open_log("tt-0")
    return path


def segment(log: Log, suffix: str = "log") -> Path:
    return log.directory / f"{log.log_start_offset:020d}.{suffix}"


def dump_file(path: Path) -> Iterator[str]:
    """The lines of the dump of one file, followed by its complaints."""
    dump = LogDump()
    yield from dump.lines(path)
    yield from dump.complaints()


def test_shallow_dump_is_that_of_the_tool(captured: Path) -> None:
    """The output is that of DumpLogSegments but for the path. (The capture has its beginning.)"""
    _, expected = TOOLS["dump-log shallow"]["stdout"].split("\n", maxsplit=1)
    first, *lines = dump_file(captured)
    assert f"Dumping {captured}" == first
    assert expected == "\n".join(lines)[: len(expected)]


def test_deep_dump_is_that_of_the_tool(captured: Path) -> None:
    """The output with message contents is that of DumpLogSegments. (The capture has its middle.)"""
    dump = LogDump(deep_iteration=True, print_data_log=True)
    ours = "".join(f"{line}\n" for line in dump.lines(captured))
    assert TOOLS["dump-log"]["stdout"] in ours


def test_an_empty_preallocated_index_prints_one_line(captured: Path) -> None:
    """A pre-allocated index that is empty gives one line, as in the tool, for the zeros behind the
    last entry."""
    expected = TOOLS["dump-index"]["stdout"].splitlines()[1:]
    index = captured.with_suffix(".index")
    assert 10 << 20 == index.stat().st_size
    assert [f"Dumping {index}", *expected] == list(dump_file(index))


def test_deep_dump_prints_inner_messages_at_the_wrapper(open_log: OpenLog) -> None:
    """An inner message has the wrapper's position and order, and its own CRC and offset. Keys and
    values are printed on request, null as `null`."""
    log = open_log()
    log.append(bytearray(message_set.encode([(b"k", b"v")])))
    log.append(bytearray(message_set.encode([(None, b"a"), (b"", None)], codec=2)))
    dump = LogDump(deep_iteration=True, print_data_log=True)
    messages = message_set.encode([(b"k", b"v"), (None, b"a"), (b"", None)])
    crcs = [entry.crc for entry in kernel.entries(messages)]
    head = "isvalid: true payloadsize: {} magic: 0 compresscodec: NoCompressionCodec crc: {}"
    assert [
        f"Dumping {segment(log)}",
        "Starting offset: 0",
        f"offset: 0 position: 0 {head.format(1, crcs[0])} keysize: 1 key: k payload: v",
        f"offset: 1 position: 28 {head.format(1, crcs[1])} payload: a",
        f"offset: 2 position: 28 {head.format(-1, crcs[2])} keysize: 0 key:  payload: null",
    ] == list(dump.lines(segment(log)))
    assert [] == list(dump.complaints())
    shallow = list(dump_file(segment(log)))[-1]
    assert "offset: 2 position: 28 isvalid: true" in shallow
    assert "compresscodec: SnappyCompressionCodec" in shallow


@pytest.mark.usefixtures("broken_logs")
def test_damage_is_shown_not_hidden(open_log: OpenLog) -> None:
    """A bad CRC is a line with `isvalid: false`. Bytes that are no entry are counted."""
    log = open_log()
    log.append(a_set(b"a", b"b"))
    data = bytearray(segment(log).read_bytes())
    data[26] ^= 1
    segment(log).write_bytes(data + b"junk")
    *lines, found, sound = dump_file(segment(log))
    assert ["isvalid: false" in line for line in lines] == [False, False, True, False]
    assert f"Found 4 invalid bytes at the end of {0:020d}.log" == found
    assert sound == f"Damaged :{segment(log)}: 1 of 2 entries are sound, 27 of 58 bytes"


@pytest.mark.usefixtures("broken_logs")
@pytest.mark.parametrize("deep", [False, True])
def test_a_damaged_length_hides_no_message(open_log: OpenLog, deep: bool) -> None:
    """As in both DumpLogSegments the size of an entry leads to the next one, whatever is inside."""
    log = open_log()
    for value in (b"a", b"b", b"c", b"d"):
        log.append(a_set(value))
    log.append(a_set(b"e", b"f", codec=1))
    data = bytearray(segment(log).read_bytes())
    data[2 * 27 + 18 + 4] = 9  # the length of a value
    data[4 * 27 + 40] ^= 1  # in a compressed value
    segment(log).write_bytes(data)
    dump = LogDump(deep_iteration=deep)
    rows = [row for row in dump.rows(segment(log)) if not isinstance(row, str)]
    valid = {0: True, 1: True, 2: False, 3: True, 5: False}
    assert valid == {row["offset"]: row["isvalid"] for row in rows}
    assert "key or value extends beyond the message" == rows[2]["problem"]
    assert ("problem" in rows[4]) == deep
    assert dump.found_damage
    [sound] = dump.complaints()
    assert sound.endswith(f"3 of 5 entries are sound, 81 of {len(data)} bytes")


@pytest.mark.usefixtures("broken_logs")
def test_a_large_message_with_a_wrong_crc_hides_none(open_log: OpenLog) -> None:
    """One that is larger than a read is not read whole unless its CRC is right: its size may be
    what is damaged."""
    log = open_log(max_message_bytes=3 << 20)
    for size in (10, 2_500_000, 10):
        log.append(a_set(b"x" * size))
    data = bytearray(segment(log).read_bytes())
    data[1_500_000] ^= 1
    segment(log).write_bytes(data)
    rows = [row for row in LogDump().rows(segment(log)) if not isinstance(row, str)]
    assert [(0, True), (1, False), (2, True)] == [(row["offset"], row["isvalid"]) for row in rows]
    assert "wrong crc" == rows[1]["problem"]


def test_gaps_are_complained_about(open_log: OpenLog) -> None:
    """A gap is a complaint in the tool's own spelling. The last one found comes first."""
    log = open_log()
    for offset in (0, 3, 9):
        log.append_as_follower(a_set(b"a", base_offset=offset))
    assert [
        f"Non-secutive offsets in :{segment(log)}",
        "  3 is followed by 9",
        "  0 is followed by 3",
    ] == list(dump_file(segment(log)))[-3:]


def test_an_index_is_compared_with_the_messages(open_log: OpenLog) -> None:
    """Index entries are printed, and each mismatch is a complaint. An entry for a wrapper has the
    offset of its first message."""
    log = open_log(index_interval_bytes=0)
    log.append(a_set(b"a"))
    log.append(a_set(b"b", b"c", codec=1))
    log.append_as_follower(a_set(b"d", base_offset=7))
    log.close()
    index = segment(log, "index")
    expected = ["offset: 1 position: 27", f"offset: 3 position: {log.position_of(7).position}"]
    assert expected == list(dump_file(index))[1:3]
    only = LogDump(verify_index_only=True)
    assert [f"Dumping {index}"] == list(only.lines(index))
    assert [f"Mismatches in :{index}", "  Index offset: 3, log offset: 7"] == list(
        only.complaints()
    )


def test_the_index_of_an_empty_segment_is_empty(open_log: OpenLog) -> None:
    """The index of an empty segment has nothing to compare with and gives no complaint. The tool
    dies of it."""
    log = open_log()
    assert [f"Dumping {segment(log, 'index')}"] == list(dump_file(segment(log, "index")))


@pytest.mark.usefixtures("broken_logs")
def test_index_entries_that_lead_nowhere_are_complaints(open_log: OpenLog) -> None:
    """An entry that leads beyond the messages, or to one that cannot be read, ends no dump."""
    log = open_log(index_interval_bytes=0)
    log.append(a_set(b"a"))
    for value in (b"b", b"c"):
        log.append(a_set(value, codec=1))
    log.close()
    index, place = segment(log, "index"), log.position_of(1).position
    data = bytearray(segment(log).read_bytes())
    data[place + 40] ^= 1
    segment(log).write_bytes(data)
    entries = index.read_bytes()
    index.write_bytes(bytes.fromhex("0000000100000fff") + entries)
    dump = LogDump()
    rows = list(dump.rows(index))
    assert [1, 1, 2] == [row["offset"] for row in rows if not isinstance(row, str)]
    assert [
        f"The following index entries lead to no message that can be read in :{index}",
        "  Index offset: 1, position: 4095",
        f"  Index offset: 1, position: {place}",
    ] == list(dump.complaints())
    assert dump.found_damage


@pytest.mark.usefixtures("broken_logs")
def test_an_unknown_codec_is_named(open_log: OpenLog) -> None:
    """Its message cannot be shown; the next one is."""
    log = open_log()
    odd = kernel.build_set([(None, b"x")], attributes=5)
    segment(log).write_bytes(odd + a_set(b"y", base_offset=1))
    first, second = [row for row in LogDump().rows(segment(log)) if not isinstance(row, str)]
    assert (False, "5 is an unknown codec") == (first["isvalid"], first["problem"])
    assert second["isvalid"]


@pytest.mark.usefixtures("broken_logs")
def test_a_wrapper_without_messages_has_no_time(open_log: OpenLog) -> None:
    """A time index may name one. (The dump ended with a traceback.)"""
    log = open_log(level=Level.V0_10_2)
    segment(log).write_bytes(message_set.pack(b"", 1, 0, 1, 5))
    times = segment(log, "timeindex")
    times.write_bytes(TIME_ENTRY.pack(5, 0))
    assert f"Found timestamp mismatch in :{times}" in list(dump_file(times))


def test_large_files_are_read_in_pieces(open_log: OpenLog) -> None:
    """The dump has entries that cross the borders of reads, and an entry larger than one read."""
    log = open_log(max_message_bytes=3 << 20)
    for size in (700_000, 700_000, 2_500_000, 10):
        log.append(a_set(b"x" * size))
    lines = list(dump_file(segment(log)))[2:]
    assert [0, 1, 2, 3] == [int(line.split()[1]) for line in lines]
    assert all("isvalid: true" in line for line in lines)


def test_other_files_have_no_dump(tmp_path: Path) -> None:
    """Other files have no dump, as in the tool."""
    assert [] == list(dump_file(tmp_path / "x.checkpoint"))
