"""Time indexes: the entries equal those of a live 0.10.2.2; searches, truncation, recovery and
checks."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.errors import UnsupportedForMessageFormat
from kafka08.kernel.types import ENTRY_HEADER, ENTRY_HEADER_BYTES
from kafka08.levels import Level
from kafka08.log.check import check_log
from kafka08.log.log import Log
from kafka08.log.offset_index import INDEX_ENTRY
from kafka08.log.time_index import TIME_ENTRY, TimeIndex, TimestampOffset
from kafka08.protocol import message_set
from kafka08.protocol.compression import GZIP
from kafka08.runtime.system_disk import SystemFile
from tests.log.conftest import START_MS, ManualClock, OpenLog

DATA = Path(__file__).parent.parent / "data"
CAPTURED = json.loads((DATA / "0.10-timeindex.json").read_text())
SMALL = {"segment_bytes": 700, "index_interval_bytes": 150, "segment_index_bytes": 1200}
"""Settings of the captured topics d-ti and d-tj."""
T = 1_500_000_000_000


def later_log(open_log: OpenLog, **config: Any) -> Log:
    return open_log(**{"level": Level.V0_10_2, "segment_index_bytes": 4096, **config})


def captured(part: str, moment: str) -> dict[str, dict[str, Any]]:
    """File name → the captured facts about it."""
    return {file["file"]: file for file in CAPTURED[part][moment]["files"]}


def appended(files: dict[str, dict[str, Any]]) -> list[bytearray]:
    """The entries of the captured segments from offset 0 on, each as its producer sent it."""
    sets = []
    for name in sorted(files):
        data = bytes.fromhex(files[name]["hex"]) if name.endswith(".log") else b""
        while data:
            _, size = ENTRY_HEADER.unpack_from(data)
            entry, data = data[: ENTRY_HEADER_BYTES + size], data[ENTRY_HEADER_BYTES + size :]
            sets.append(bytearray(ENTRY_HEADER.pack(0, size) + entry[ENTRY_HEADER_BYTES:]))
    return sets


def indexes_under(directory: Path, names: dict[str, dict[str, Any]]) -> dict[str, tuple[int, str]]:
    """Index file → its size and its first bytes, as many as the capture has."""
    return {
        name: (
            (directory / name).stat().st_size,
            (directory / name).read_bytes()[: len(file["hex_head"]) // 2].hex(),
        )
        for name, file in names.items()
        if name.endswith("index")
    }


def of_capture(files: dict[str, dict[str, Any]]) -> dict[str, tuple[int, str]]:
    return {n: (f["size"], f["hex_head"]) for n, f in files.items() if n.endswith("index")}


def a_set(*timestamps: int, codec: int = 0) -> bytearray:
    messages = [(b"k", b"v" * 40)] * len(timestamps)
    return bytearray(message_set.encode(messages, codec, 0, 1, timestamps))


def entries_of(path: Path) -> list[tuple[int, int]]:
    data = path.read_bytes()
    return [TIME_ENTRY.unpack_from(data, at) for at in range(0, len(data), 12)]


class TestCaptured:
    """The segments of the captured 0.10.2.2, produced again, have the same indexes."""

    def test_a_live_log(self, open_log: OpenLog, tmp_path: Path) -> None:
        """Both indexes of three segments are equal; the last ones are pre-allocated."""
        files = captured("indexes, roll, retention", "d-ti live")
        log = later_log(open_log, **SMALL)
        for data in appended(files):
            log.append(data)
        assert of_capture(files) == indexes_under(tmp_path / "t-0", files)

    def test_a_clean_stop(self, open_log: OpenLog, tmp_path: Path) -> None:
        """A clean stop adds the largest timestamp and trims both indexes."""
        files = captured("restart, crash, damage", "after clean stop")
        log = later_log(open_log, **SMALL)
        for data in appended(files):
            log.append(data)
        log.close()
        assert of_capture(files) == indexes_under(tmp_path / "t-0", files)

    def test_roll_by_time(self, open_log: OpenLog, tmp_path: Path) -> None:
        """The log rolls where the largest timestamp of a set is too far from the segment's first
        one."""
        files = captured("indexes, roll, retention", "d-roll")
        log = later_log(open_log, segment_ms=1000, segment_index_bytes=10 << 20)
        for data in appended(files):
            log.append(data)
        assert of_capture(files) == indexes_under(tmp_path / "t-0", files)

    def test_a_first_message_without_time(
        self, open_log: OpenLog, tmp_path: Path, clock: ManualClock
    ) -> None:
        """Until a message has a timestamp, the age counts by the clock. A message without one never
        rolls the segment."""
        files = captured("indexes, roll, retention", "d-rollnots")
        log = later_log(open_log, segment_ms=1000, segment_index_bytes=10 << 20)
        for data, seconds in zip(appended(files), (0, 2, 2, 0), strict=True):
            clock.sleep(seconds)
            log.append(data)
        assert of_capture(files) == indexes_under(tmp_path / "t-0", files)

    @pytest.mark.parametrize("lost", ["cut", "descending", "missing", "empty", "none"])
    def test_recovery(self, open_log: OpenLog, tmp_path: Path, lost: str) -> None:
        """After a crash, recovery indexes everything above the recovery point again, and damaged
        indexes below it. 0.10.2.2 leaves a lost time index empty, and then finds no message there
        by time."""
        files = captured(
            "restart, crash, damage",
            "started after: timeindex of 8 cut by 5 bytes, timeindex of 0 made descending",
        )
        log = later_log(open_log, **SMALL)
        for data in appended(files):
            log.append(data)
        directory = tmp_path / "t-0"
        first = directory / "00000000000000000000.timeindex"
        second = directory / "00000000000000000008.timeindex"
        match lost:
            case "cut":
                second.write_bytes(second.read_bytes()[:-5])
            case "descending":
                first.write_bytes(first.read_bytes()[12:] + first.read_bytes()[:12])
            case "missing":
                first.unlink()
            case "empty":
                second.write_bytes(b"")
        again = later_log(open_log, recovery_point=16, **SMALL)
        assert of_capture(files) == indexes_under(directory, files)
        assert TimestampOffset(T + 300, 24) == again.offset_at_time(T + 222)


class TestLookup:
    def test_every_timestamp_finds_the_first_message_at_or_after_it(
        self, open_log: OpenLog
    ) -> None:
        """A search finds the first message at or after a timestamp in any segment, in sets and
        wrappers, although the clock goes back."""
        log = later_log(open_log, segment_bytes=600, index_interval_bytes=0)
        times = [(n * 37) % 50 + n // 2 for n in range(120)]
        for start in range(0, 120, 3):
            log.append(a_set(*times[start : start + 3], codec=GZIP if start % 2 else 0))
        assert len(log.segment_facts) > 5
        for target in range(-1, max(times) + 2):
            expected = next((o for o, time in enumerate(times) if time >= target), None)
            found = log.offset_at_time(target)
            assert expected == (found and found.offset), target
            assert found is None or times[found.offset] == found.timestamp_ms

    def test_a_power_failure_after_a_clean_stop_hides_no_message(
        self, open_log: OpenLog, tmp_path: Path
    ) -> None:
        """A stop adds the largest timestamp to the time index of the active segment and does not
        sync it, so after a power failure that entry may be missing beside the marker."""
        log = later_log(open_log, index_interval_bytes=0)
        for time in (1, 2, 5, 3):
            log.append(a_set(time))
        log.active_segment.bytes_since_index = 0  # the next set gets no entry
        log.append(a_set(9))
        log.close()
        path = tmp_path / "t-0" / "00000000000000000000.timeindex"
        path.write_bytes(path.read_bytes()[:-12])
        again = later_log(open_log, clean_shutdown=True)
        assert TimestampOffset(9, 4) == again.offset_at_time(6)
        again.close()
        assert (9, 4) == entries_of(path)[-1]

    def test_segments_without_timestamps_hide_no_later_message(self, open_log: OpenLog) -> None:
        """Segments of magic 0 have no timestamps, so the search continues behind them. 0.10.2.2
        uses their modification time, finds nothing in them and stops."""
        old = open_log()
        old.append(bytearray(message_set.encode([(None, b"old")] * 3)))
        old.close()
        log = later_log(open_log, clean_shutdown=True)
        log.roll()
        log.append(a_set(5, 7))
        assert TimestampOffset(7, 4) == log.offset_at_time(6)
        assert not (log.directory / "00000000000000000000.timeindex").read_bytes()

    def test_a_log_of_magic_0_is_not_searched(self, open_log: OpenLog) -> None:
        """A log with message format 0 is not searched, although it may have older messages with
        timestamps."""
        log = later_log(open_log, message_format_version="0.9.0")
        with pytest.raises(UnsupportedForMessageFormat):
            log.offset_at_time(5)


class TestTruncation:
    @pytest.mark.parametrize("offset", range(10))
    def test_the_largest_timestamp_is_that_of_the_remaining_messages(
        self, open_log: OpenLog, tmp_path: Path, offset: int
    ) -> None:
        """Entries at or above the offset go, and the messages behind the last entry are read for
        their timestamps."""
        times = [10, 30, 20, 40, 35, 60, 5, 70, 65]
        log = later_log(open_log, index_interval_bytes=150)
        for time in times:
            log.append(a_set(time))
        log.truncate_to(offset)
        left = times[:offset]
        newest = max(left, default=-1)
        if left:
            assert newest == log.segment_facts[-1].newest_ms
        log.close()
        entries = entries_of(tmp_path / "t-0" / "00000000000000000000.timeindex")
        assert ([(newest, left.index(newest))] if left else []) == entries[-1:]
        assert sorted(set(entries)) == entries

    @pytest.mark.parametrize(
        ("first", "last", "left"), [(-1, -1, -1), (-1, 7, -1), (50, 70, 50), (1, 70, 6)]
    )
    def test_little_is_read(
        self,
        open_log: OpenLog,
        monkeypatch: pytest.MonkeyPatch,
        first: int,
        last: int,
        left: int,
    ) -> None:
        """A truncation runs in the event loop. It reads the messages of about two index intervals,
        wherever the last entry of the time index is, also where no message has a timestamp."""
        log = later_log(open_log, index_interval_bytes=150)
        for time in (first, *[min(left, 5)] * 40, left):
            log.append(a_set(time))
        log.append(a_set(-1, last))
        reads: list[int] = []
        pread_into = SystemFile.pread_into

        def count(file: SystemFile, buffer: memoryview, position: int) -> int:
            reads.append(len(buffer))
            return pread_into(file, buffer, position)

        monkeypatch.setattr(SystemFile, "pread_into", count)
        log.truncate_to(43)
        assert sum(reads) <= 2 * (150 + len(a_set(0)))
        assert left == log.active_segment.largest.timestamp_ms

    def test_two_truncations_of_a_segment_keep_its_largest_timestamp(
        self, open_log: OpenLog
    ) -> None:
        """Each cuts inside a set, and so takes the time of the last index entry, which is at the
        start of the set. An earlier timestamp, which only the cut one had covered, stays known."""
        log = later_log(open_log, index_interval_bytes=140)
        for time in (100, 110, 120, 500):
            log.append(a_set(time))
        log.append(a_set(140, 150, 600))
        log.truncate_to(5)
        log.append(a_set(150))
        log.append(a_set(160))
        log.append(a_set(170, 180, 700))
        log.truncate_to(8)
        assert (500, 3) == log.active_segment.largest
        assert (500, 3) == log.offset_at_time(300)

    @pytest.mark.parametrize("seed", range(8))
    def test_any_truncations_keep_the_largest_timestamp(self, open_log: OpenLog, seed: int) -> None:
        """The largest timestamp is that of the messages that are left, after truncations inside and
        between sets, with stops between them."""
        rng = random.Random(seed)
        log = later_log(open_log, index_interval_bytes=140)
        times: list[int] = []
        for _ in range(400):
            match rng.randrange(4):
                case 0:
                    end = max(len(times) - rng.randrange(4), 0)
                    log.truncate_to(end)
                    del times[end:]
                case 1 if rng.random() < 0.1:
                    log.close()
                    log = later_log(open_log, index_interval_bytes=140)
                case _:
                    new = [len(times) + rng.randrange(20) for _ in range(rng.choice((1, 3)))]
                    log.append(a_set(*new))
                    times += new
            assert max(times, default=-1) == log.active_segment.largest.timestamp_ms

    def test_a_segment_that_was_emptied_counts_from_its_next_message(
        self, open_log: OpenLog
    ) -> None:
        """The age of an emptied segment counts from its next message, not from the one that was
        cut."""
        log = later_log(open_log, segment_ms=100)
        log.append(a_set(1000))
        log.truncate_to(0)
        log.append(a_set(5000))
        log.append(a_set(5100))
        assert 1 == len(log.segment_facts)
        log.append(a_set(5101))
        assert 2 == len(log.segment_facts)

    def test_after_a_restart_the_first_message_counts(self, open_log: OpenLog) -> None:
        """After a restart the age counts from the first message, as before where each set was one
        message."""
        log = later_log(open_log, segment_ms=100)
        log.append(a_set(1000))
        log.close()
        log = later_log(open_log, segment_ms=100, clean_shutdown=True)
        log.append(a_set(1101))
        assert 2 == len(log.segment_facts)


class TestFiles:
    def test_a_full_time_index_rolls(self, open_log: OpenLog) -> None:
        """The log rolls before the last entry: one place is kept for the entry that closes the
        segment."""
        log = later_log(open_log, segment_index_bytes=48, index_interval_bytes=0)
        for time in range(1, 9):
            log.append(a_set(time))
        assert [0, 4] == [facts.base_offset for facts in log.segment_facts]
        first = log.directory / "00000000000000000000.timeindex"
        assert [(2, 1), (3, 2), (4, 3)] == entries_of(first)

    def test_no_timestamps_no_entries(self, open_log: OpenLog, tmp_path: Path) -> None:
        """The timestamp -1 means none and gets no entry."""
        log = later_log(open_log, index_interval_bytes=0)
        for _ in range(3):
            log.append(a_set(-1, -1))
        log.close()
        assert [] == entries_of(tmp_path / "t-0" / "00000000000000000000.timeindex")

    def test_time_0_is_a_time(self, open_log: OpenLog, tmp_path: Path) -> None:
        """Timestamp 0 counts, although its entry at the base offset is all zeros."""
        log = later_log(open_log)
        log.append(a_set(0))
        log.close()
        path = tmp_path / "t-0" / "00000000000000000000.timeindex"
        assert [(0, 0)] == entries_of(path)
        assert TimestampOffset(0, 0) == TimeIndex(path, 0).last

    def test_below_0_10_there_is_none(self, open_log: OpenLog, tmp_path: Path) -> None:
        """Below 0.10 there is no time index, not even for messages of magic 1."""
        log = open_log()
        log.append(a_set(5))
        log.roll()
        log.close()
        assert not list((tmp_path / "t-0").glob("*.timeindex"))

    def test_one_without_messages_is_deleted(self, open_log: OpenLog, tmp_path: Path) -> None:
        """A time index without messages is deleted with a warning, as an offset index is."""
        later_log(open_log).close()
        orphan = tmp_path / "t-0" / "00000000000000000042.timeindex"
        orphan.write_bytes(bytes(12))
        later_log(open_log, clean_shutdown=True)
        assert not orphan.exists()

    def test_a_follower_has_the_leaders_index(self, open_log: OpenLog, tmp_path: Path) -> None:
        """A follower indexes entry by entry, a wrapper as one, and gets the leader's index."""
        leader, follower = (
            later_log(open_log, name=name, index_interval_bytes=100) for name in ("l-0", "f-0")
        )
        for number in range(12):
            leader.append(a_set(START_MS + number, codec=GZIP if number % 3 else 0))
            data = leader.read(number, 1 << 20).bytes()
            follower.append_as_follower(data)
        leader.close()
        follower.close()
        for name in ("00000000000000000000.index", "00000000000000000000.timeindex"):
            assert (tmp_path / "l-0" / name).read_bytes() == (tmp_path / "f-0" / name).read_bytes()


def test_offsets_inside_a_wrapper_are_indexed_again_as_they_were(
    open_log: OpenLog, tmp_path: Path
) -> None:
    """A wrapper of magic 1 has relative offsets. Recovery indexes its first absolute offset, as the
    append did."""
    log = later_log(open_log, index_interval_bytes=0)
    for start in range(0, 20, 4):
        log.append(a_set(*range(start, start + 4), codec=GZIP))
    log.close()
    path = tmp_path / "t-0" / "00000000000000000000.index"
    before = path.read_bytes()
    later_log(open_log, index_interval_bytes=0).close()
    assert before == path.read_bytes()
    assert [4, 8, 12, 16] == [offset for offset, _ in INDEX_ENTRY.iter_unpack(before)]


def test_a_lost_time_index_is_rebuilt_whatever_is_at_the_ends(
    open_log: OpenLog, tmp_path: Path
) -> None:
    """The first message and those behind the last index entry may have no time, while others
    have."""
    log = later_log(open_log, index_interval_bytes=0)
    for time in (-1, 10, 20, -1, -1):
        log.append(a_set(time))
    log.close()
    (tmp_path / "t-0" / f"{0:020d}.timeindex").unlink()
    assert (20, 2) == later_log(open_log, clean_shutdown=True).offset_at_time(15)


class TestCheck:
    """Problems that `log check` finds in a time index."""

    @pytest.fixture
    def directory(self, open_log: OpenLog, tmp_path: Path) -> Path:
        log = later_log(open_log, index_interval_bytes=0)
        for time in (5, 7, 6, 9):
            log.append(a_set(time, codec=GZIP if time > 6 else 0))
        log.close()
        return tmp_path / "t-0"

    @pytest.mark.usefixtures("broken_logs")
    @pytest.mark.parametrize(
        ("entries", "problem"),
        [
            ([(7, 1), (9, 3)], None),
            ([(7, 1), (9, 3), (0, 0), (0, 0)], None),
            ([(7, 1), (7, 3)], "is not above the last right entry"),
            ([(9, 3), (7, 1)], "is not above the last right entry"),
            ([(6, 0), (8, 2)], None),
            ([(7, 2)], "offset 1 has that timestamp or a later one"),
            ([(6, 2)], "offset 1 has that timestamp or a later one"),
            ([(10, 4)], "is above the last message"),
        ],
    )
    def test_entries(
        self, directory: Path, entries: list[tuple[int, int]], problem: str | None
    ) -> None:
        """Each entry is right if no message before the one it names has its timestamp or a later
        one, and zeros are no entries. A timestamp that no message has is right: 0.10.2.2 may have
        removed its message later."""
        path = directory / f"{0:020d}.timeindex"
        path.write_bytes(b"".join(TIME_ENTRY.pack(*entry) for entry in entries))
        found = [str(one) for one in check_log(directory)]
        assert ([] if problem is None else [problem]) == [
            text for text in (problem or "",) for one in found if text in one
        ]
        assert len(found) == (problem is not None)

    @pytest.mark.usefixtures("broken_logs")
    def test_every_wrong_entry_is_found(self, directory: Path) -> None:
        """Also those behind one that is wrong."""
        path = directory / f"{0:020d}.timeindex"
        path.write_bytes(
            b"".join(TIME_ENTRY.pack(*one) for one in [(8, 3), (7, 2), (6, 3), (9, 3)])
        )
        assert [12, 24] == [problem.position for problem in check_log(directory)]

    def test_times_of_appends_are_no_damage(
        self, open_log: OpenLog, tmp_path: Path, clock: ManualClock
    ) -> None:
        """With LogAppendTime and compression.type=uncompressed the messages of a producer that
        compresses keep their own times, as in 0.10.2.2, and the time index has those of the
        appends."""
        log = later_log(
            open_log,
            index_interval_bytes=0,
            message_timestamp_type="LogAppendTime",
            compression_type="uncompressed",
        )
        for _ in range(4):
            clock.now_ms += 1
            log.append(a_set(clock.now_ms + 1000, clock.now_ms - 3, codec=GZIP))
        log.close()
        assert [] == check_log(tmp_path / "t-0")

    @pytest.mark.usefixtures("broken_logs")
    @pytest.mark.parametrize(("timestamp_ms", "problems"), [(2000, 0), (1999, 1)])
    def test_messages_appended_at_one_time(
        self, open_log: OpenLog, tmp_path: Path, timestamp_ms: int, problems: int
    ) -> None:
        """0.10.2.2 may name the last of several messages with the same timestamp."""
        log = later_log(open_log, message_timestamp_type="LogAppendTime")
        log.append(a_set(5, 6, 7))
        log.close()
        data = (tmp_path / "t-0" / f"{0:020d}.log").read_bytes()
        (stamped_ms,) = {entry.timestamp_ms for entry in kernel.entries(data)}
        path = tmp_path / "t-0" / f"{0:020d}.timeindex"
        path.write_bytes(TIME_ENTRY.pack(stamped_ms + timestamp_ms - 2000, 2))
        assert len(list(check_log(tmp_path / "t-0"))) == problems

    @pytest.mark.usefixtures("broken_logs")
    def test_files(self, directory: Path) -> None:
        """A size that is no multiple of an entry is a problem, and an index without messages is
        one."""
        path = directory / f"{0:020d}.timeindex"
        path.write_bytes(path.read_bytes() + b"x")
        path.with_name(f"{77:020d}.timeindex").write_bytes(b"")
        found = [str(one) for one in check_log(directory)]
        assert ["not a multiple of 12 bytes", "an index without messages"] == [
            one.rpartition(": ")[2] for one in found
        ]

    @pytest.mark.usefixtures("broken_logs")
    def test_a_wrapper_that_names_another_time(self, directory: Path) -> None:
        """A wrapper whose timestamp is not its messages' is a problem, because a search would not
        find them."""
        path = directory / f"{0:020d}.log"
        data = bytearray(path.read_bytes())
        (wrapper, *_) = (e for e in kernel.entries(bytes(data)) if e.codec)
        kernel.set_wrapper(memoryview(data)[wrapper.position :], wrapper.offset, 6, False)
        path.write_bytes(data)
        found = [str(one) for one in check_log(directory)]
        assert "has timestamp 6, the largest inside is 7" in found[0]
