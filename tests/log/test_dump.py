from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.log import Log
from kafka08.log.dump import LogDump
from kafka08.protocol import message_set
from tests.log.conftest import OpenLog, a_set

DATA = Path(__file__).parent.parent / "data"
SANDBOX = json.loads((DATA / "sandbox-logs-0.8.2.2.json").read_text())
TOOLS = json.loads((DATA / "tools-output-0.8.2.2.json").read_text())


@pytest.fixture
def captured(tmp_path: Path, open_log: OpenLog) -> Path:
    """The segment that the captured outputs dumped, with an index as a running broker has it."""
    directory = tmp_path / "tt-0"
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    path.write_bytes(bytes.fromhex(SANDBOX["producer segments"][0]["hex"]))
    open_log("tt-0")
    return path


def segment(log: Log, suffix: str = "log") -> Path:
    return log.directory / f"{log.log_start_offset:020d}.{suffix}"


def dump_file(path: Path) -> Iterator[str]:
    """The lines of one file, and after them the complaints about it."""
    dump = LogDump()
    yield from dump.lines(path)
    yield from dump.complaints()


def test_shallow_dump_is_that_of_the_tool(captured: Path) -> None:
    """Captured output of DumpLogSegments, verbatim but for the path (the capture keeps its
    beginning)."""
    _, expected = TOOLS["dump-log shallow"]["stdout"].split("\n", maxsplit=1)
    first, *lines = dump_file(captured)
    assert f"Dumping {captured}" == first
    assert expected == "\n".join(lines)[: len(expected)]


def test_deep_dump_is_that_of_the_tool(captured: Path) -> None:
    """With contents: the capture keeps the middle."""
    dump = LogDump(deep_iteration=True, print_data_log=True)
    ours = "".join(f"{line}\n" for line in dump.lines(captured))
    assert TOOLS["dump-log"]["stdout"] in ours


def test_an_empty_preallocated_index_prints_one_line(captured: Path) -> None:
    """As the tool does for the zeros behind the last entry."""
    expected = TOOLS["dump-index"]["stdout"].splitlines()[1:]
    index = captured.with_suffix(".index")
    assert 10 << 20 == index.stat().st_size
    assert [f"Dumping {index}", *expected] == list(dump_file(index))


def test_deep_dump_prints_inner_messages_at_the_wrapper(open_log: OpenLog) -> None:
    """Position and order are the wrapper's, CRCs and offsets the messages' own; keys and values
    on request, null as `null`."""
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
    """A bad CRC is a line with `isvalid: false`; bytes that are no entry are counted."""
    log = open_log()
    log.append(a_set(b"a", b"b"))
    data = bytearray(segment(log).read_bytes())
    data[26] ^= 1
    segment(log).write_bytes(data + b"junk")
    lines = list(dump_file(segment(log)))
    assert ["isvalid: false" in line for line in lines] == [False, False, True, False, False]
    assert f"Found 4 invalid bytes at the end of {0:020d}.log" == lines[-1]


def test_gaps_are_complained_about(open_log: OpenLog) -> None:
    """In the tool's own spelling, the last finding first."""
    log = open_log()
    for offset in (0, 3, 9):
        log.append_as_follower(a_set(b"a", base_offset=offset))
    assert [
        f"Non-secutive offsets in :{segment(log)}",
        "  3 is followed by 9",
        "  0 is followed by 3",
    ] == list(dump_file(segment(log)))[-3:]


def test_an_index_is_compared_with_the_messages(open_log: OpenLog) -> None:
    """Entries are printed; mismatches are complaints. A wrapper is known by its first message."""
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
    """The tool dies on it; there is nothing to compare with."""
    log = open_log()
    assert [f"Dumping {segment(log, 'index')}"] == list(dump_file(segment(log, "index")))


@pytest.mark.usefixtures("broken_logs")
def test_what_cannot_be_dumped_is_named(open_log: OpenLog) -> None:
    """An index that leads nowhere, an unknown codec, a message above the limit."""
    log = open_log()
    log.append(a_set(b"a" * 100))
    with pytest.raises(CorruptLog, match=r"largest allowable message size \(50\)"):
        list(LogDump(max_message_bytes=50).lines(segment(log)))
    segment(log, "index").write_bytes(bytes.fromhex("0000000100000fff"))
    with pytest.raises(CorruptLog, match="points to byte 4095"):
        list(dump_file(segment(log, "index")))
    segment(log).write_bytes(kernel.build_set([(None, b"x")], attributes=5))
    with pytest.raises(CorruptLog, match="5 is an unknown codec"):
        list(dump_file(segment(log)))


def test_large_files_are_read_in_pieces(open_log: OpenLog) -> None:
    """Entries across the borders of reads, and one larger than a read."""
    log = open_log(max_message_bytes=3 << 20)
    for size in (700_000, 700_000, 2_500_000, 10):
        log.append(a_set(b"x" * size))
    lines = list(dump_file(segment(log)))[2:]
    assert [0, 1, 2, 3] == [int(line.split()[1]) for line in lines]
    assert all("isvalid: true" in line for line in lines)


def test_other_files_have_no_dump(tmp_path: Path) -> None:
    """Nothing is printed for them, as the tool has it."""
    assert [] == list(dump_file(tmp_path / "x.snapshot"))
