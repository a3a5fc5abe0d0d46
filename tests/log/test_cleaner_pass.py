"""One pass of the cleaner over one log."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.levels import Level
from kafka08.log.cleaned_segment import CleanedSegment
from kafka08.log.cleaner_chunks import plain_entries
from kafka08.log.cleaner_pass import CleaningAborted, CleaningFailed
from kafka08.log.cleaner_plan import CleanerConfig
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.retention import Retention
from kafka08.log.throttle import Throttle
from kafka08.protocol import message_set
from kafka08.protocol.compression import GZIP
from tests.log.compaction import (
    captured,
    cleaning,
    keyed,
    keys_config,
    latest,
    messages_of,
    set_modified,
)
from tests.log.conftest import Deferred, OpenLog, index_entries, names_in
from tests.mock_clock import MockClock


def segments_of(log: Log, *sets: bytearray) -> None:
    """A log with one sealed segment for each set, and an empty active segment."""
    for data in sets:
        log.append(data)
        log.roll()


def bases(log: Log) -> list[int]:
    return [facts.base_offset for facts in log.segment_facts]


# What stays


def test_the_last_message_of_each_key_stays(open_log: OpenLog) -> None:
    """The last message of each key keeps its offset (kafka.log.CleanerTest.testCleanSegments)."""
    log = open_log(segment_bytes=200)
    for number in range(40):
        log.append(keyed((b"%d" % (number % 7), b"value %d" % number)))
    before = messages_of(log)
    sealed = [message for message in before if message[0] < log.active_base_offset]
    assert log.active_base_offset == cleaning(log).run()
    kept = set(latest(sealed).values())
    assert [m for m in before if m in kept or m[0] >= log.active_base_offset] == messages_of(log)


def test_a_second_pass_changes_nothing(open_log: OpenLog) -> None:
    """A second pass from the end of the first finds nothing to map and keeps every message."""
    log = open_log()
    segments_of(log, keyed((b"a", b"1"), (b"b", b"2")), keyed((b"a", b"3")))
    end = cleaning(log).run()
    once = messages_of(log)
    again = cleaning(log, end)
    assert end == again.run()
    assert once == messages_of(log)
    assert 0 == again.stats.map_bytes


def test_the_active_segment_is_never_cleaned(open_log: OpenLog) -> None:
    """A pass neither cleans the active segment nor reads its keys: a message in the sealed part
    stays, although the active segment has a later one of its key."""
    log = open_log()
    segments_of(log, keyed((b"a", b"1")))
    log.append(keyed((b"a", b"2"), (b"a", b"3")))
    assert 1 == cleaning(log).run()
    assert [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"a", b"3")] == messages_of(log)


def test_only_the_dirty_part_is_mapped(open_log: OpenLog) -> None:
    """The pass maps the dirty part alone. The clean part loses the messages that have a later one
    in the dirty part, and no others."""
    log = open_log()
    segments_of(log, keyed((b"a", b"1"), (b"b", b"2")), keyed((b"a", b"3")))
    one = cleaning(log, 2)
    one.run()
    assert [(1, b"b", b"2"), (2, b"a", b"3")] == messages_of(log)
    assert one.stats.map_bytes < one.stats.bytes_read


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_survivors_of_compressed_sets_are_written_plain(open_log: OpenLog, codec: int) -> None:
    """Messages that survive from a compressed set are written uncompressed, as 0.8.2.2 does. They
    keep offset and bytes."""
    log = open_log()
    first = keyed((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), codec=codec)
    segments_of(log, first, keyed((b"b", b"4"), codec=codec))
    cleaning(log).run()
    assert [(0, b"a", b"1"), (2, b"c", b"3"), (3, b"b", b"4")] == messages_of(log)
    expected = keyed((b"a", b"1")) + keyed((b"c", b"3"), base_offset=2)
    assert expected + keyed((b"b", b"4"), base_offset=3) == log.read(0, 10_000).bytes()


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_at_0_9_survivors_of_a_compressed_set_are_compressed_again(
    open_log: OpenLog, codec: int
) -> None:
    """At 0.9.0 the survivors of a compressed message become a compressed message again, as
    0.9.0.1's compressMessages makes it: with its codec, magic 0, absolute inner offsets, and the
    offset of its last survivor. One that loses nothing keeps its bytes."""
    log = open_log(level=Level.V0_9_0, cleanup_policy="compact")
    first = keyed((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), codec=codec)
    segments_of(log, first, keyed((b"b", b"4"), codec=codec))
    whole = log.read(3, 10_000).bytes()
    cleaning(log).run()
    assert [(0, b"a", b"1"), (2, b"c", b"3"), (3, b"b", b"4")] == messages_of(log)
    packed = next(kernel.entries(log.read(0, 10_000).bytes()))
    assert (2, codec, 0) == (packed.offset, packed.codec, packed.magic)
    survivors = keyed((b"a", b"1")) + keyed((b"c", b"3"), base_offset=2)
    assert survivors == message_set.unpack(codec, packed.value or b"")
    assert whole == log.read(3, 10_000).bytes()


def test_messages_without_a_key_are_dropped_and_counted(open_log: OpenLog) -> None:
    """The pass drops messages without a key and counts them. The cleaner of 0.8.2.2 dies at the
    first one."""
    log = open_log()
    segments_of(log, keyed((None, b"1"), (b"a", b"2"), (None, None)), keyed((b"", b"3")))
    one = cleaning(log)
    one.run()
    assert [(1, b"a", b"2"), (3, b"", b"3")] == messages_of(log)
    assert 2 == one.stats.messages_unkeyed


def test_keys_are_compared_whole(open_log: OpenLog) -> None:
    """Long keys that differ only at their end are different keys, and the empty key is a key."""
    log = open_log()
    long = b"k" * 300
    segments_of(log, keyed((long + b"1", b"1"), (long + b"2", b"2"), (b"", b"3"), (b"", b"4")))
    cleaning(log).run()
    assert [0, 1, 3] == [offset for offset, _, _ in messages_of(log)]


def test_a_pass_as_the_jvm_made_it(open_log: OpenLog) -> None:
    """The log of the capture, written again and cleaned, has the same survivors in the same
    segments. A segment without survivors stays, compressed sets are unpacked, and tombstones go
    with their keys."""
    compaction = captured()["compaction"]
    log = open_log()
    counter = 0
    for _ in range(12):
        pairs = [(b"key%d" % (counter % 4), b"v"), (b"gz%d" % (counter % 3), b"v")]
        log.append(keyed(*pairs, codec=1))
        for _ in range(4):
            counter += 1
            if log.log_end_offset in (27, 53):
                log.roll()
            value = None if counter % 10 == 9 else b"v"
            log.append(keyed((b"key%d" % (counter % 4), value)))
        counter += 1
    log.config = LogConfig(segment_bytes=log.segment_facts[0].size)
    assert compaction["before_offset_codec_key_tombstone"] == _listing(log)
    assert 53 == cleaning(log).run()
    assert compaction["after"] == _listing(log)
    assert compaction["dir_listings_over_time"][-1] == names_in(log.directory)


def _listing(log: Log) -> dict[str, list[list[Any]]]:
    """[offset, codec, key, tombstone] of the entries of each segment, as in the capture."""
    found = {}
    for path in sorted(log.directory.glob("*.log")):
        entries = kernel.entries(path.read_bytes())
        found[path.name] = [
            [e.offset, e.codec, (e.key or b"").decode(), e.value is None] for e in entries
        ]
    return found


# Tombstones


def test_a_tombstone_outlives_its_key_by_delete_retention(open_log: OpenLog) -> None:
    """The first pass removes the values and keeps the tombstone. A later pass removes the tombstone
    once delete.retention.ms have passed since the clean part was last written."""
    log = open_log(delete_retention_ms=1000, segment_bytes=100)
    segments_of(log, keyed((b"a", b"1" * 50)), keyed((b"a", None), (b"b", b"2" * 20)))
    set_modified(log, 5_000, 6_000)
    end = cleaning(log).run()
    assert [(1, b"a", None), (2, b"b", b"2" * 20)] == messages_of(log)
    assert [5_000, 6_000] == [facts.newest_ms for facts in log.segment_facts[:2]]

    segments_of(log, keyed((b"c", b"3" * 50)))
    end = cleaning(log, end).run()
    assert 1 == messages_of(log)[0][0]

    segments_of(log, keyed((b"d", b"4" * 50)))
    assert [0, 3, 4, 5] == bases(log)
    set_modified(log, 5_501, 6_500)
    cleaning(log, end).run()
    assert 1 == messages_of(log)[0][0]
    set_modified(log, 5_500, 6_500)
    cleaning(log, end).run()
    assert [2, 3, 4] == [offset for offset, _, _ in messages_of(log)]


def test_a_tombstone_that_found_no_room_in_the_map_stays(open_log: OpenLog) -> None:
    """A tombstone that is old enough stays if this round had no room for it in the map. Without
    that rule the value that it deleted came back (found by the model)."""
    log = open_log(delete_retention_ms=0)
    segments_of(log, keyed((b"a", b"1")))
    end = cleaning(log).run()
    segments_of(log, keyed((b"b", b"2"), (b"a", None)))
    set_modified(log, 5_000, 1_000)
    cleaning(log, end, config=keys_config(1)).run()
    assert [(1, b"b", b"2"), (2, b"a", None)] == messages_of(log)


def test_a_tombstone_in_the_dirty_part_stays(open_log: OpenLog) -> None:
    """A tombstone in the dirty part stays, even with delete.retention.ms=0, as long as nothing is
    clean."""
    log = open_log(delete_retention_ms=0)
    segments_of(log, keyed((b"a", b"1")), keyed((b"a", None)))
    cleaning(log).run()
    assert [(1, b"a", None)] == messages_of(log)


# Segments


def test_small_segments_become_one(open_log: OpenLog) -> None:
    """Small segments are merged up to segment.bytes. The new segment has the first base offset and
    the last modification time."""
    log = open_log(segment_bytes=10_000)
    segments_of(log, *(keyed((b"%d" % number, b"x")) for number in range(5)))
    set_modified(log, 1_000, 2_000, 3_000, 4_000, 5_123)
    cleaning(log).run()
    assert [0, 5] == bases(log)
    assert 5_123 == log.segment_facts[0].newest_ms
    assert 5 == len(messages_of(log))
    assert [0, 1, 2, 3, 4] == [log.read(o, 40).offset for o in range(5)]


def test_a_segment_of_nothing_but_outdated_messages_stays_empty(open_log: OpenLog) -> None:
    """A segment that loses all messages stays as an empty one: its base offset is the log start,
    and reads continue behind it."""
    log = open_log(segment_bytes=40)
    segments_of(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    cleaning(log).run()
    assert [0, 1, 2] == bases(log)
    assert 0 == log.segment_facts[0].size
    assert [(1, b"a", b"2")] == messages_of(log)
    assert [(1, b"a", b"2")] == messages_of(open_log(cleanup_policy="compact"))


@pytest.mark.parametrize("interval", [0, 100, 1000])
def test_the_new_index_leads_to_every_message(open_log: OpenLog, interval: int) -> None:
    """The index of the new segment has an entry about every index.interval.bytes, whatever the size
    of the chunks. (check_log checks that the entries are right.)"""
    log = open_log(index_interval_bytes=interval)
    for number in range(200):
        log.append(keyed((b"%d" % (number % 50), b"x" * (number % 7)), codec=number % 3))
    log.roll()
    cleaning(log, config=CleanerConfig(chunk_bytes=333)).run()
    (segment,) = log.sealed_segments
    assert (49 if interval == 0 else segment.size // (interval + 40)) <= segment.index.entries
    for offset, key, value in messages_of(log):
        found = next(iter(message_set.decode(log.read(offset, 200).bytes(), offset)))
        assert (offset, key, value) == (found.offset, found.key, found.value)


def test_an_index_that_would_be_too_large_ends_early(open_log: OpenLog) -> None:
    """An index that is full ends early, as when it is rebuilt. A scan finds the messages behind its
    end."""
    log = open_log(index_interval_bytes=0, segment_index_bytes=24)
    log.append(keyed(*((b"%d" % number, b"x") for number in range(50))))
    log.roll()
    cleaning(log).run()
    assert 3 == log.sealed_segments[0].index.entries
    assert 50 == len(messages_of(log, 40))


def test_messages_larger_than_a_chunk(open_log: OpenLog) -> None:
    """A message larger than chunk_bytes is mapped and copied whole."""
    log = open_log()
    segments_of(log, keyed((b"a", b"x" * 5000), (b"b", b"y" * 5000)), keyed((b"a", b"z" * 5000)))
    cleaning(log, config=CleanerConfig(chunk_bytes=1)).run()
    assert [(1, b"b", b"y" * 5000), (2, b"a", b"z" * 5000)] == messages_of(log)


def test_a_log_without_sealed_segments(open_log: OpenLog) -> None:
    """In a log without sealed segments a pass ends where it begins."""
    log = open_log()
    log.append(keyed((b"a", b"1")))
    assert 0 == cleaning(log).run()


# Memory


def test_more_keys_than_the_map_takes(open_log: OpenLog) -> None:
    """Whole segments are mapped as long as their keys fit. The next pass begins where this one
    ended."""
    log = open_log()
    segments_of(
        log,
        keyed((b"a", b"1"), (b"b", b"2")),
        keyed((b"c", b"3"), (b"a", b"4")),
        keyed((b"d", b"5"), (b"e", b"6"), (b"b", b"7")),
    )
    config = keys_config(3)
    assert 4 == cleaning(log, config=config).run()
    assert [1, 2, 3, 4, 5, 6] == [offset for offset, _, _ in messages_of(log)]
    assert 7 == cleaning(log, 4, config=config).run()
    assert [2, 3, 4, 5, 6] == [offset for offset, _, _ in messages_of(log)]


@pytest.mark.parametrize("keys", [1, 2, 3, 5])
@pytest.mark.parametrize("codec", [0, 1])
def test_a_segment_with_more_keys_than_the_map_takes(
    open_log: OpenLog, keys: int, codec: int
) -> None:
    """A segment with more keys than fit is cleaned in several rounds, with the same result. The
    cleaner of 0.8.2.2 dies of it."""
    log = open_log()
    pairs = [(b"%d" % (number * 5 % 7), b"%d" % number) for number in range(30)]
    segments_of(log, *(keyed(*pairs[at : at + 10], codec=codec) for at in (0, 10, 20)))
    kept = sorted(latest(messages_of(log)).values())
    end = 0
    while end < 30:
        before, end = end, cleaning(log, end, config=keys_config(keys)).run()
        assert before < end
        assert end in (10, 20, 30)
    assert kept == messages_of(log)


# Pace


def test_reading_and_writing_are_held_to_the_rate(open_log: OpenLog) -> None:
    """The limit log.cleaner.io.max.bytes.per.second counts each byte that is read twice and written
    once."""
    log = open_log()
    segments_of(log, keyed(*((b"%d" % number, b"x" * 100) for number in range(100))))
    size = log.size
    clock = MockClock()
    start = clock.monotonic()

    def take_time(call: Callable[..., Any], *args: object) -> Any:
        clock.advance(0.1)
        return call(*args)

    one = cleaning(
        log,
        config=CleanerConfig(chunk_bytes=1000),
        clock=clock,
        throttle=Throttle(1000, clock),
        native=take_time,
    )
    one.run()
    assert 3 * size / 1000 == pytest.approx(clock.monotonic() - start, abs=3)
    assert one.stats.seconds == pytest.approx(clock.monotonic() - start)


# What others do meanwhile


class At:
    """Runs jobs, and calls a function before the n-th of them ends."""

    def __init__(self, number: int, meanwhile: Callable[[], object]) -> None:
        self.left = number
        self.meanwhile = meanwhile

    def __call__(self, call: Callable[..., Any], *args: object) -> Any:
        result = call(*args)
        if self.left == 0:
            self.meanwhile()
        self.left -= 1
        return result


JOBS = 5
"""Of the log below: two chunks mapped, two cleaned, one put on disk."""


@pytest.fixture
def two_segments(open_log: OpenLog) -> Log:
    log = open_log()
    segments_of(log, keyed((b"a", b"1"), (b"b", b"2")), keyed((b"a", b"3"), (b"c", b"4")))
    return log


@pytest.mark.parametrize("number", range(JOBS))
def test_appends_and_rolls_continue(two_segments: Log, number: int) -> None:
    """Messages that arrive during a pass stay as they are, and the pass does not read them."""
    log = two_segments

    def meanwhile() -> None:
        segments_of(log, keyed((b"b", b"5")))
        log.append(keyed((b"b", b"6")))

    assert 4 == cleaning(log, native=At(number, meanwhile)).run()
    assert [1, 2, 3, 4, 5] == [offset for offset, _, _ in messages_of(log)]


@pytest.mark.parametrize("number", range(JOBS))
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_a_truncation_ends_the_pass(two_segments: Log, number: int, offset: int) -> None:
    """After a truncation during a pass, the log has what truncation and later appends left. No file
    of the pass remains."""
    log = two_segments

    def meanwhile() -> None:
        log.truncate_to(offset)
        segments_of(log, keyed((b"new", b"5")))

    with pytest.raises(CleaningAborted):
        cleaning(log, native=At(number, meanwhile)).run()
    assert (offset, b"new", b"5") == messages_of(log)[-1]
    assert list(range(offset + 1)) == [at for at, _, _ in messages_of(log)]
    assert not list(log.directory.glob("*.cleaned"))


@pytest.mark.parametrize("number", range(JOBS))
def test_a_truncation_of_the_active_segment_does_not(two_segments: Log, number: int) -> None:
    """A truncation of the active segment does not end the pass: the sealed segments, on which it
    works, are untouched."""
    log = two_segments
    log.append(keyed((b"d", b"5")))
    assert 4 == cleaning(log, native=At(number, lambda: log.truncate_to(4))).run()
    assert [1, 2, 3] == [offset for offset, _, _ in messages_of(log)]


@pytest.mark.parametrize("number", range(JOBS))
@pytest.mark.parametrize("how", ["close", "delete", "start anew", "retention"])
def test_a_log_that_goes_ends_the_pass(two_segments: Log, number: int, how: str) -> None:
    """A log that is deleted or closed ends the pass with CleaningAborted at any point, and no file
    of the pass remains."""
    log = two_segments
    ways: dict[str, Callable[[], object]] = {
        "close": log.close,
        "delete": log.delete,
        "start anew": lambda: log.truncate_fully_and_start_at(100),
        "retention": lambda: log.delete_old_segments(Retention(-(10**14))),
    }
    with pytest.raises(CleaningAborted):
        cleaning(log, native=At(number, ways[how])).run()
    assert not list(log.directory.parent.rglob("*.cleaned"))


def test_readers_are_not_cut(two_segments: Log, background: Deferred) -> None:
    """A slice that was returned before the swap still reads its bytes after the files are gone."""
    log = two_segments
    expected = log.read(0, 1000).bytes()
    old = log.read(0, 1000)
    seen: list[bytes] = []
    cleaning(log, native=At(3, lambda: seen.append(log.read(0, 1000).bytes()))).run()
    background.run_all()
    assert [expected] == seen
    assert expected == old.bytes()
    assert expected != log.read(0, 1000).bytes()


def test_replaced_files_are_deleted_later(two_segments: Log, background: Deferred) -> None:
    """Replaced files are deleted after file.delete.delay.ms, as those of retention are."""
    log = two_segments
    background.flushes.clear()
    cleaning(log).run()
    expected = [f"{base:020d}.{kind}.deleted" for base in (0, 2) for kind in ("index", "log")]
    assert expected == [name for name in names_in(log.directory) if name.endswith(".deleted")]
    assert [log.config.file_delete_delay_ms] * 2 == [delay for delay, _ in background.tasks]
    background.run_all()
    assert 4 == len(names_in(log.directory))


def test_the_swap_is_on_disk_before_the_originals_go(
    two_segments: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename to *.swap is on disk before the originals are renamed. After a power failure with
    only *.deleted and *.cleaned files, the next load would delete both."""
    listings: list[list[str]] = []

    def fsync(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            listings.append(names_in(two_segments.directory))

    monkeypatch.setattr(os, "fsync", fsync)
    cleaning(two_segments).run()
    originals = {f"{base:020d}.log" for base in (0, 2)}
    swaps = {f"{0:020d}.{kind}.swap" for kind in ("index", "log")}
    assert originals | swaps <= set(listings[-1])


def test_a_flush_under_way_is_not_disturbed(two_segments: Log, background: Deferred) -> None:
    """A flush that runs during the swap syncs the files for which it was started."""
    assert background.flushes
    cleaning(two_segments).run()
    background.run_all()
    assert 4 == two_segments.recovery_point


def test_an_offset_that_no_index_can_hold_is_not_indexed(tmp_path: Path) -> None:
    """The pass leaves out the index entry of an offset that does not fit in 32 bits; a disk may
    have changed it, and no CRC covers offsets. (The pass used to end with a struct.error.)"""
    cleaned = CleanedSegment(tmp_path, 0, index_interval_bytes=0, index_bytes=1000)
    for offset in (0, 1, 2**40):
        cleaned.append(message_set.encode([(b"k", b"v")], base_offset=offset))
    cleaned.finish(0)
    assert 8 == (tmp_path / f"{0:020d}.index.cleaned").stat().st_size


# What cannot be cleaned


def test_a_broken_segment_is_left_as_it_is(open_log: OpenLog) -> None:
    """A message size that is impossible is an error with file and byte, and nothing changes."""
    log = open_log()
    segments_of(log, keyed((b"a", b"1"), (b"b", b"2")))
    path = log.sealed_segments[0].log_path
    good = path.read_bytes()
    for damaged in (
        good[:28] + good[28 + 20 :] + bytes(20),
        good[:8] + struct.pack(">i", 5) + good[12:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(CleaningFailed, match=r"0\.log, from byte 0 on"):
            cleaning(log).run()
        assert damaged == path.read_bytes()
    path.write_bytes(good)
    assert not list(log.directory.glob("*.cleaned"))


def test_a_wrapper_that_cannot_be_unpacked(open_log: OpenLog) -> None:
    """A wrapper that cannot be unpacked is a CleaningFailed with the codec's reason."""
    log = open_log()
    wrapper = kernel.wrap(b"no gzip", 0, 1)
    log.append_as_follower(wrapper)
    log.roll()
    with pytest.raises(CleaningFailed, match="gzip"):
        cleaning(log).run()
    log.truncate_to(0)


@pytest.mark.usefixtures("broken_logs")
def test_a_wrong_crc_is_copied_as_it_is(open_log: OpenLog) -> None:
    """A message with a wrong CRC is copied unchanged, as in 0.8.2.2, so that its reader sees it.
    The index continues after it."""
    log = open_log(index_interval_bytes=0)
    segments_of(log, keyed((b"a", b"1"), (b"b", b"2"), (b"c", b"3")))
    path = log.sealed_segments[0].log_path
    data = bytearray(path.read_bytes())
    data[12 + 28] ^= 1
    path.write_bytes(data)
    cleaning(log).run()
    assert bytes(data) == log.read(0, 1000).bytes()
    assert [2] == [entry.offset for entry in index_entries(log.sealed_segments[0].index)]


@pytest.mark.usefixtures("broken_logs")
@pytest.mark.parametrize("level", list(Level))
def test_a_wrong_crc_in_a_compressed_set_is_copied_as_it_is(
    open_log: OpenLog, level: Level
) -> None:
    """A follower stores what its leader sends. The pass copies the message unchanged, like one in a
    plain set, and the log is cleaned."""
    log = open_log(level=level, cleanup_policy="compact")
    plain = keyed((b"a", b"1"), (b"b", b"2"))
    plain[-1] ^= 1
    log.append_as_follower(message_set.pack(plain, GZIP, 1))
    log.roll()
    log.append(keyed((b"a", b"3")))
    log.roll()
    cleaning(log).run()
    left = bytearray().join(plain_entries(memoryview(log.read(0, 1000).bytes())))
    assert [1, 2] == [one.offset for one in kernel.entries(left)]
    assert left.startswith(plain[len(plain) // 2 :])


@pytest.mark.parametrize("call", ["pwrite", "fsync", "utime"])
def test_a_full_disk_ends_the_pass_alone(
    two_segments: Log, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A full disk ends this pass alone. The incomplete copy is removed, which frees its space, and
    the log is as before."""
    before = messages_of(two_segments)

    def refuse(*args: object, **keywords: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(CleaningFailed, match="No space left on device"):
            cleaning(two_segments).run()
    assert before == messages_of(two_segments)
    assert not list(two_segments.directory.glob("*.cleaned"))


def test_no_room_for_the_new_files(two_segments: Log) -> None:
    """An error of the file system is a CleaningFailed with the system's reason."""
    in_the_way = two_segments.directory / f"{0:020d}.log.cleaned"
    in_the_way.mkdir()
    with pytest.raises(CleaningFailed, match="Is a directory"):
        cleaning(two_segments).run()
    in_the_way.rmdir()
