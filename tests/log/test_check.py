from __future__ import annotations

from pathlib import Path

import pytest

from kafka08 import kernel
from kafka08.log import Log
from kafka08.log.check import check_log
from tests.log.conftest import OpenLog, a_set

pytestmark = pytest.mark.usefixtures("broken_logs")


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    """Segments 0-2 and 3-5; message 5 is the last of a wrapper; every set is indexed."""
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
    """The pre-allocated index of the active segment is no problem."""
    assert [] == check_log(log.directory)
    log.close()
    assert [] == check_log(log.directory)


def test_every_cut_of_the_messages_is_found(log: Log) -> None:
    """Whole entries are needed, and the index must not lead behind the end."""
    path = segment(log, 3)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        found = check_log(log.directory)
        assert found if size != 27 else [segment(log, 3, "index")] == [p.path for p in found]


def test_every_flipped_byte_is_found(log: Log) -> None:
    """Of the messages of a middle segment: offsets by their order or by the index."""
    path = segment(log, 0)
    data = path.read_bytes()
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0x20
        path.write_bytes(flipped)
        assert check_log(log.directory), f"byte {at}"


def test_every_flipped_byte_of_an_index_is_found(log: Log) -> None:
    """Each entry must lead to its message and nowhere else."""
    path = segment(log, 0, "index")
    data = path.read_bytes()
    assert 16 == len(data)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1
        path.write_bytes(flipped)
        assert check_log(log.directory), f"byte {at}"


def test_problems_say_where(log: Log) -> None:
    """Path, byte and reason, as `kafka08 log check` prints them."""
    data = bytearray(segment(log, 0).read_bytes())
    data[-1] ^= 1
    segment(log, 0).write_bytes(data)
    (problem,) = check_log(log.directory)
    assert f"{segment(log, 0)} at byte 54: stored crc" in str(problem)


def test_overlapping_segments_are_found(log: Log) -> None:
    """A base offset must be above everything before it."""
    segment(log, 3).rename(segment(log, 2))
    segment(log, 3, "index").unlink()
    assert ["its base offset is not above offset 2 before", "is missing"] == texts(log)


def test_a_wrapper_must_keep_its_word(log: Log) -> None:
    """Its offset is that of the last message inside; it must unpack."""
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
    """*.deleted files wait for their time and are no problem."""
    segment(log, 3, "log.swap").touch()
    segment(log, 9, "index").touch()
    segment(log, 8, "log.deleted").touch()
    assert ["left over from an interrupted compaction", "an index without messages"] == texts(log)


def test_half_an_index_entry_is_found(log: Log) -> None:
    """Indexes are whole entries."""
    with segment(log, 0, "index").open("ab") as file:
        file.write(b"\0")
    assert ["not a multiple of 8 bytes"] == texts(log)
