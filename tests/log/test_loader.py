from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kafka08.errors import CorruptLog
from kafka08.log.log import Log
from kafka08.protocol import message_set
from tests.log.conftest import Deferred, OpenLog, a_set, all_values, names_in

DATA = Path(__file__).parent.parent / "data"
LOGS = json.loads((DATA / "logs-0.8.2.2.json").read_text())
SANDBOX = json.loads((DATA / "sandbox-logs-0.8.2.2.json").read_text())


def three_segments(open_log: OpenLog) -> Log:
    """A log with the offsets 0-1, 2-3 and 4-5, one index entry each, flushed up to offset 4."""
    log = open_log(index_interval_bytes=0)
    for number in range(6):
        log.append(a_set(b"%d" % number))
        if number == 3:
            log.flush()
        if number in {1, 3}:
            log.roll()
    return log


def path_of(log: Log, base_offset: int, suffix: str = "log") -> Path:
    return log.directory / f"{base_offset:020d}.{suffix}"


@pytest.mark.parametrize("kind", ["plain", "gzip", "snappy", "lz4", "acks"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_of_0_8_2_2_opens(
    tmp_path: Path, open_log: OpenLog, kind: str, clean: bool
) -> None:
    """Captured segments open with their end, every inner offset and value, and take an append:
    after a clean stop (with their empty index) and after a crash (without index)."""
    captured = LOGS[kind]
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / captured["file"]).write_bytes(bytes.fromhex(captured["hex"]))
    if clean:
        (directory / f"{0:020d}.index").touch()
    log = open_log(clean_shutdown=clean)
    expected = [
        (inner["offset"], inner["value"] and bytes.fromhex(inner["value"]["hex"]))
        for entry in captured["decoded"]
        for inner in entry.get("inner", [entry])
    ]
    assert (expected[-1][0] + 1, captured["size"]) == (log.log_end_offset, log.size)
    assert expected == all_values(log)
    for offset, value in expected:
        data = log.read(offset, 1 << 20).bytes()
        assert (offset, value) == _first(data, offset)
    log.append(a_set(b"ours"))
    assert b"ours" == all_values(log)[-1][1]


def _first(data: bytes, offset: int) -> tuple[int, bytes | None]:
    message = next(message_set.decode(data, offset))
    return message.offset, message.value


def test_a_captured_log_that_was_cut_is_truncated(tmp_path: Path, open_log: OpenLog) -> None:
    """The captured segment is cut within an entry. Recovery ends at the entry before."""
    captured = SANDBOX["producer segments"][1]
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / captured["file"]).write_bytes(bytes.fromhex(captured["hex"]))
    log = open_log()
    assert log.size < captured["truncated_to"]
    assert log.size == os.stat(directory / captured["file"]).st_size


def test_a_new_directory_gets_one_empty_segment(open_log: OpenLog) -> None:
    """A new directory gets a segment with base offset 0 and a pre-allocated index."""
    log = open_log()
    assert [f"{0:020d}.index", f"{0:020d}.log"] == names_in(log.directory)
    assert 10 << 20 == path_of(log, 0, "index").stat().st_size


def test_a_cleanly_closed_log_is_not_read_through(open_log: OpenLog) -> None:
    """After a clean stop only the very end of the log is read. The recovery point is the end."""
    log = three_segments(open_log)
    log.close()
    path_of(log, 2).write_bytes(path_of(log, 2).read_bytes()[:-1] + b"?")
    again = open_log(clean_shutdown=True)
    assert (6, 6) == (again.log_end_offset, again.recovery_point)
    path_of(log, 2).write_bytes(path_of(log, 2).read_bytes()[:-1] + b"3")


def test_recovery_begins_with_the_segment_of_the_recovery_point(open_log: OpenLog) -> None:
    """Segments below the recovery point were flushed and are not read. Above it the log ends before
    the first damage, and later segments are deleted."""
    three_segments(open_log)
    log = open_log(recovery_point=2, index_interval_bytes=0)
    data = bytearray(path_of(log, 2).read_bytes())
    data[-1] ^= 1
    path_of(log, 2).write_bytes(data)
    again = open_log(recovery_point=3, index_interval_bytes=0)
    assert (3, 3) == (again.log_end_offset, again.recovery_point)
    assert [(0, b"0"), (1, b"1"), (2, b"2")] == all_values(again)
    assert not path_of(log, 4).exists()


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("is_on_disk", [False, True])
def test_an_unflushed_segment_that_lost_its_end_is_the_last(
    open_log: OpenLog, background: Deferred, policy: str, is_on_disk: bool
) -> None:
    """Recovery deletes the segments behind one that lost its end. A power failure may keep the name
    of the next segment and shorten this one to whole messages, with nothing to cut. The next
    segment would leave a gap that neither follower nor consumer notices. Once the roll is on disk,
    a gap is no loss: somebody compacted the log, whatever its policy says now."""
    log = three_segments(open_log)
    if is_on_disk:
        background.run_all()
    os.truncate(path_of(log, 2), 27)
    again = open_log(recovery_point=2, index_interval_bytes=0, cleanup_policy=policy)
    assert (6 if is_on_disk else 3) == again.log_end_offset
    assert is_on_disk == path_of(log, 4).exists()


def test_recovery_syncs_its_truncation_and_deletions(open_log: OpenLog, synced: list[str]) -> None:
    """Recovery syncs what it cuts and deletes, because the next recovery begins behind it."""
    log = three_segments(open_log)
    os.truncate(path_of(log, 2), 40)
    synced.clear()
    open_log(recovery_point=2, index_interval_bytes=0)
    assert [f"{2:020d}.index", f"{2:020d}.log", "t-0"] == synced


def test_a_gap_below_the_recovery_point_stays(open_log: OpenLog) -> None:
    """Recovery does not read flushed messages, so a gap below the recovery point stays. The topic
    may have been compacted once."""
    log = three_segments(open_log)
    os.truncate(path_of(log, 2), 27)
    path_of(log, 2, "index").unlink()
    again = open_log(recovery_point=4, index_interval_bytes=0)
    assert (6, 5) == (again.log_end_offset, len(all_values(again)))


def test_an_unclean_end_is_cut_and_its_index_rebuilt(open_log: OpenLog) -> None:
    """After a crash, recovery cuts half an entry at the end and rebuilds the index, which is still
    pre-allocated."""
    log = three_segments(open_log)
    with path_of(log, 4).open("ab") as file:
        file.write(a_set(b"half")[:20])
    again = open_log(recovery_point=4, index_interval_bytes=0)
    assert (6, 4) == (again.log_end_offset, again.recovery_point)
    assert 6 == len(all_values(again))
    again.append(a_set(b"6"))
    assert (6, b"6") == all_values(again)[-1]


def test_a_marker_that_lies_about_the_end_is_not_believed(open_log: OpenLog) -> None:
    """The tail is checked even after a clean stop, so that no append follows damaged bytes."""
    log = three_segments(open_log)
    log.close()
    with path_of(log, 4).open("ab") as file:
        file.write(b"junk")
    again = open_log(clean_shutdown=True)
    assert (6, 2 * 27) == (again.log_end_offset, path_of(log, 4).stat().st_size)
    assert 6 == len(all_values(again))


def test_a_clean_start_keeps_messages_above_a_lowered_limit(open_log: OpenLog) -> None:
    """After a clean stop the tail is checked for damage alone. If max.message.bytes was lowered, or
    message.max.bytes, the larger messages stay, and so do all that follow them."""
    log = open_log()
    for value in (b"a", b"b" * 500, b"c"):
        log.append(a_set(value))
    log.close()
    again = open_log(clean_shutdown=True, max_message_bytes=100)
    assert [(0, b"a"), (1, b"b" * 500), (2, b"c")] == all_values(again)
    again.close()
    with path_of(log, 0).open("ab") as file:
        file.write(b"junk")
    again = open_log(clean_shutdown=True, max_message_bytes=100)
    assert (3, 3) == (again.log_end_offset, len(all_values(again)))


@pytest.mark.parametrize(
    "index", [None, b"", bytes(80), b"\0\0\0\1\0", bytes.fromhex("00000001ffffffff")]
)
@pytest.mark.parametrize("base_offset", [0, 4])
def test_a_missing_or_impossible_index_is_rebuilt(
    open_log: OpenLog, index: bytes | None, base_offset: int
) -> None:
    """A missing or impossible index is rebuilt, also after a clean stop. 0.8.2.2 then refuses to
    start. (Seen live: a start that fails leaves pre-allocated indexes and the marker.)"""
    log = three_segments(open_log)
    log.close()
    path = path_of(log, base_offset, "index")
    if index is None:
        path.unlink()
    else:
        path.write_bytes(index)
    again = open_log(clean_shutdown=True, index_interval_bytes=0)
    assert 6 == len(all_values(again))
    assert 6 == again.log_end_offset


def test_left_overs_are_swept(open_log: OpenLog) -> None:
    """A start finishes deletions, drops unfinished compactions, puts finished ones in place, and
    deletes an index without messages."""
    log = three_segments(open_log)
    log.flush()
    log.close()
    swapped = path_of(log, 2).read_bytes()
    for name in ("7.log.deleted", "7.index.deleted", "8.log.cleaned", "8.index.cleaned"):
        (log.directory / f"{0:019d}{name}").write_bytes(b"junk")
    (log.directory / f"{2:020d}.log.swap").write_bytes(swapped)
    (log.directory / f"{2:020d}.index.swap").write_bytes(b"junk")
    path_of(log, 2).unlink()
    path_of(log, 9, "index").write_bytes(b"junk")
    again = open_log(clean_shutdown=True)
    assert 6 == len(all_values(again))
    expected = [f"{base:020d}.{kind}" for base in (0, 2, 4) for kind in ("index", "log")]
    assert expected == names_in(log.directory)


def test_files_of_later_versions_are_left_alone(open_log: OpenLog) -> None:
    """A broker of 0.8 neither reads nor deletes a .timeindex (0.10.1)."""
    log = three_segments(open_log)
    log.close()
    path_of(log, 0, "timeindex").write_bytes(bytes(12))
    again = open_log(clean_shutdown=True)
    assert path_of(again, 0, "timeindex").exists()


@pytest.mark.usefixtures("broken_logs")
def test_a_log_file_of_no_offset_is_an_error(open_log: OpenLog) -> None:
    """A .log file without an offset in its name is a CorruptLog with its path. 0.8.2.2 dies with a
    NumberFormatException."""
    log = open_log()
    (log.directory / "notes.log").touch()
    with pytest.raises(CorruptLog, match=r"notes\.log"):
        open_log()


@pytest.mark.usefixtures("broken_logs")
def test_a_copy_beside_a_segment_is_an_error(open_log: OpenLog) -> None:
    """A copy such as `….bak.log` is a CorruptLog with its path, as 0.8.2.2 dies of it. Taken for a
    segment, it was the original a second time, and retention deleted that file under both."""
    log = open_log()
    log.append(a_set(b"a"))
    log.close()
    (log.directory / f"{0:020d}.bak.log").write_bytes(path_of(log, 0).read_bytes())
    with pytest.raises(CorruptLog, match=r"bak\.log"):
        open_log(clean_shutdown=True)


def test_two_names_of_one_base_offset_are_one_segment(open_log: OpenLog) -> None:
    """A name without leading zeros stands for the name with all of them, as in 0.8.2.2."""
    log = open_log()
    log.append(a_set(b"a"))
    log.close()
    short = log.directory / "0.log"
    short.touch()
    again = open_log(clean_shutdown=True)
    assert (1, [(0, b"a")]) == (again.segment_count, all_values(again))
    short.unlink()
