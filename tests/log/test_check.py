from __future__ import annotations

from pathlib import Path

import pytest

from kafka08 import kernel
from kafka08.log.check import check_log
from kafka08.log.log import Log
from tests.log.conftest import OpenLog, a_set

pytestmark = pytest.mark.usefixtures("broken_logs")


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    """A log with the segments 0-2 and 3-5. Message 5 is the last of a wrapper. Every set is
    indexed."""
    log = open_log(index_interval_bytes=0, segment_index_bytes=800)
    for number in range(3):
        log.append(a_set(b"%d" % number))
    log.roll()
    log.append(a_set(b"3"))
    log.append(a_set(b"4", b"5", codec=1))
    return log


def segment(log: Log, base_offset: int, suffix: str = "log") -> Path:
    return log.directory / f"{base_offset:020d}.{suffix}"


def texts(log: Log) -> list[str]:
    return [problem.text for problem in check_log(log.directory)]


def test_a_log_in_use_and_a_closed_one_are_sound(log: Log) -> None:
    """The check reports no problem; the pre-allocated index of the active segment is not one."""
    assert [] == check_log(log.directory)
    log.close()
    assert [] == check_log(log.directory)


def test_every_cut_of_the_messages_is_found(log: Log) -> None:
    """The check reports a segment that ends within an entry, and an index that leads beyond the
    end."""
    path = segment(log, 3)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        found = check_log(log.directory)
        assert found if size != 27 else [segment(log, 3, "index")] == [p.path for p in found]


@pytest.mark.parametrize("offset", [0, 7])
def test_the_first_offset_that_does_not_ascend_is_named(log: Log, offset: int) -> None:
    """With its place. (It named the first byte and the last offset of all that was checked.)"""
    path = segment(log, 3)
    data = bytearray(path.read_bytes())
    data[:8] = offset.to_bytes(8, "big")
    path.write_bytes(data)
    place = 0 if offset < 3 else 27
    said = {0: "offset 0 is not above offset 2", 7: "offset 5 is not above offset 7"}[offset]
    [problem] = [found for found in check_log(log.directory) if found.path == path]
    assert (place, said) == (problem.position, problem.text.partition(",")[0])


def test_every_flipped_byte_is_found(log: Log) -> None:
    """The check reports every flipped byte in the messages of a middle segment. A changed offset
    shows by the order or by the index."""
    path = segment(log, 0)
    data = path.read_bytes()
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0x20
        path.write_bytes(flipped)
        assert check_log(log.directory), f"byte {at}"


def test_every_flipped_byte_of_an_index_is_found(log: Log) -> None:
    """The check reports every index entry that does not lead to its message."""
    path = segment(log, 0, "index")
    data = path.read_bytes()
    assert 16 == len(data)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1
        path.write_bytes(flipped)
        assert check_log(log.directory), f"byte {at}"


def test_problems_say_where(log: Log) -> None:
    """A problem has path, byte and reason, as `kafka08 log check` prints them."""
    data = bytearray(segment(log, 0).read_bytes())
    data[-1] ^= 1
    segment(log, 0).write_bytes(data)
    (problem,) = check_log(log.directory)
    assert f"{segment(log, 0)} at byte 54: stored crc" in str(problem)


def test_every_problem_of_a_segment_is_found(log: Log) -> None:
    """A CRC that is wrong, an offset, an index entry: none hides what is behind it."""
    for number in range(6, 20):
        log.append(a_set(b"%d" % number * 10))
    log.close()
    path, index = segment(log, 3), segment(log, 3, "index")
    data, places = bytearray(path.read_bytes()), [log.position_of(n).position for n in range(6, 20)]
    for number in (1, 5):
        data[places[number] + 30] ^= 1
    for number in (3, 8):
        data[places[number] + 6] ^= 1  # 256 more
    path.write_bytes(data)
    entries = bytearray(index.read_bytes())
    entries[3] ^= 64  # the offset of the first
    entries[8 * 3 + 7] ^= 1  # the position of a later one
    index.write_bytes(entries)
    found = [(problem.path, problem.position) for problem in check_log(log.directory)]
    assert {(path, places[number]) for number in (1, 4, 5, 9)} <= set(found)
    assert {(index, 0), (index, 24)} <= set(found)


def test_bytes_that_are_lost_are_counted(log: Log) -> None:
    """An impossible size ends the segment. What the index says of the bytes behind it is left
    out."""
    path = segment(log, 0)
    data = bytearray(path.read_bytes())
    data[27 + 8 : 27 + 12] = (5).to_bytes(4, "big")
    path.write_bytes(data)
    [problem] = check_log(log.directory)
    assert (27, "the last 54 bytes are lost: message with corrupt size 5 (offset 1)") == (
        problem.position,
        problem.text,
    )


def test_a_large_entry_with_a_wrong_crc_ends_nothing(open_log: OpenLog) -> None:
    """Of an entry that is larger than one read, too."""
    log = open_log(max_message_bytes=4 << 20)
    log.append(a_set(b"x" * (3 << 20)))
    log.append(a_set(b"7"))
    with segment(log, 0).open("r+b") as file:
        file.seek(2 << 20)
        file.write(b"y")
    [problem] = check_log(log.directory)
    assert (0, "the crc of a large entry is wrong") == (problem.position, problem.text)


def test_overlapping_segments_are_found(log: Log) -> None:
    """The base offset of a segment must be above every offset before it."""
    segment(log, 3).rename(segment(log, 2))
    segment(log, 3, "index").unlink()
    assert ["its base offset is not above offset 2 before", "is missing"] == texts(log)


def test_a_wrapper_must_keep_its_word(log: Log) -> None:
    """A wrapper must unpack, and its offset must be that of its last message."""
    with segment(log, 3).open("ab") as file:
        file.write(kernel.wrap(a_set(b"6", base_offset=6), 8, 0)[:0])
        file.write(_wrapper(8, a_set(b"a", b"b", base_offset=6)))
    assert ["the wrapper at offset 8 holds offsets 6 to 7"] == texts(log)
    with segment(log, 3).open("ab") as file:
        file.write(kernel.wrap(b"no gzip", 9, 1))
    assert texts(log)[1].startswith("the wrapper at offset 9: ")


def _wrapper(offset: int, inner: bytes | bytearray) -> bytes | bytearray:
    from kafka08.protocol import compression

    return kernel.wrap(compression.compress(2, inner), offset, 2)


def test_left_overs_of_a_compaction_are_named(log: Log) -> None:
    """A *.deleted file waits for its deletion and is no problem. The check reports the other files
    that a compaction leaves behind."""
    segment(log, 3, "log.swap").touch()
    segment(log, 9, "index").touch()
    segment(log, 8, "log.deleted").touch()
    assert ["left over from an interrupted compaction", "an index without messages"] == texts(log)


def test_half_an_index_entry_is_found(log: Log) -> None:
    """The check reports an index whose size is no multiple of an entry."""
    with segment(log, 0, "index").open("ab") as file:
        file.write(b"\0")
    assert ["not a multiple of 8 bytes"] == texts(log)


@pytest.mark.parametrize("tail", [b"abc", b"abcdefgh"], ids=["half an entry", "an entry"])
def test_zeros_in_front_of_a_damaged_end_are_one_problem(log: Log, tail: bytes) -> None:
    """A full index has 10 MB of zeros for the messages to come."""
    with segment(log, 3, "index").open("ab") as index:
        index.write(bytes(80_000) + tail)
    assert 3 >= len(check_log(log.directory)) > 0
