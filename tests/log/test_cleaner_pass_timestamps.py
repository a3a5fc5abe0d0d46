"""The cleaner and retention at level 0.10.2: wrappers remain wrappers, and timestamps decide the
age."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.levels import Level
from kafka08.log.cleaner import LogCleaner
from kafka08.log.cleaner_plan import CleanerConfig
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.retention import Retention
from kafka08.log.time_index import TIME_ENTRY
from kafka08.protocol import message_set
from kafka08.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from kafka08.structs import TopicPartition
from tests.log.compaction import KeyedValue, cleaning, messages_of
from tests.log.conftest import START_MS, ManualClock, OpenLog

FIRST: list[KeyedValue] = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4")]
SECOND: list[KeyedValue] = [(b"a", b"5"), (b"c", b"6")]
LEFT = [(1, b"b", b"2"), (3, b"d", b"4"), (4, b"a", b"5"), (5, b"c", b"6")]


def later_log(open_log: OpenLog, **config: Any) -> Log:
    return open_log(
        **{"level": Level.V0_10_2, "segment_index_bytes": 4096, "cleanup_policy": "compact"}
        | config
    )


def keyed(pairs: list[KeyedValue], codec: int = NONE, magic: int = 1, time: int = 10) -> bytearray:
    """A set of keyed messages, whose timestamps count from `time`."""
    times = range(time, time + len(pairs)) if magic else None
    return bytearray(message_set.encode(pairs, codec, 0, magic, times))


def cleaned(log: Log, *sets: bytearray) -> list[kernel.MessageAndOffset]:
    """Returns the entries that remain after a pass over one sealed segment per set."""
    for data in sets:
        log.append(data)
        log.roll()
    cleaning(log).run()
    return list(kernel.entries(log.read(0, 1 << 20).bytes()))


def time_entries(log: Log, base_offset: int = 0) -> list[tuple[int, int]]:
    data = (log.directory / f"{base_offset:020d}.timeindex").read_bytes()
    return [TIME_ENTRY.unpack_from(data, at) for at in range(0, len(data), 12)]


@pytest.mark.usefixtures("broken_logs")
def test_a_wrong_crc_in_a_wrapper_is_copied_as_it_is(open_log: OpenLog) -> None:
    """A follower stores what its leader sends. The message stays so, and the log is cleaned."""
    log = later_log(open_log)
    plain = keyed([(b"a", b"1"), (b"b", b"2")])
    plain[-1] ^= 1
    log.append_as_follower(message_set.pack(plain, GZIP, 1, 1, 11))
    log.roll()
    [wrapper, *_] = cleaned(log, keyed([(b"a", b"3")]))
    inner = bytes(message_set.unpack(GZIP, wrapper.value or b""))
    half = len(plain) // 2
    assert inner[12:] == plain[half + 12 :], "but for its offset"


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_survivors_are_packed_again(open_log: OpenLog, codec: int) -> None:
    """The new wrapper has the offset of its last survivor and the largest timestamp of the
    survivors. Inner offsets count from the first one, with gaps."""
    log = later_log(open_log)
    first, second = cleaned(log, keyed(FIRST, codec), keyed(SECOND, codec))
    assert LEFT == messages_of(log)
    assert (3, codec, 1, 13) == (first.offset, first.codec, first.magic, first.timestamp_ms)
    inner = kernel.entries(message_set.unpack(codec, first.value or b""))
    assert [(0, 11), (2, 13)] == [(entry.offset, entry.timestamp_ms) for entry in inner]
    assert 5 == second.offset
    times = [m.timestamp for m in message_set.decode(log.read(0, 1 << 20).bytes())]
    assert [11, 13, 10, 11] == times


def test_a_wrapper_that_loses_nothing_keeps_its_bytes(open_log: OpenLog) -> None:
    """A wrapper that loses no message keeps its bytes: our codec need not compress as the
    producer's did."""
    log = later_log(open_log)
    log.append(keyed(SECOND, GZIP))
    before = log.read(0, 1 << 20).bytes()
    log.roll()
    cleaning(log).run()
    assert before == log.read(0, 1 << 20).bytes()


def test_the_brokers_time_stays(open_log: OpenLog, clock: ManualClock) -> None:
    """A wrapper with LogAppendTime keeps its time and type."""
    log = later_log(open_log, message_timestamp_type="LogAppendTime")
    first, _ = cleaned(log, keyed(FIRST, GZIP), keyed(SECOND, GZIP))
    assert (START_MS, 1) == (first.timestamp_ms, first.timestamp_type)


def test_magics_may_be_mixed(open_log: OpenLog) -> None:
    """Messages of magic 0 from before an upgrade keep their magic, also in wrappers."""
    old = open_log(cleanup_policy="compact")
    for codec in (NONE, GZIP):
        old.append(keyed(FIRST, codec, magic=0))
    old.roll()
    old.close()
    log = later_log(open_log, clean_shutdown=True)
    entries = cleaned(log, keyed(SECOND, SNAPPY))
    assert [(0, GZIP), (1, SNAPPY)] == [(entry.magic, entry.codec) for entry in entries]
    assert [(5, b"b"), (7, b"d"), (8, b"a"), (9, b"c")] == [m[:2] for m in messages_of(log)]


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_times_are_found_in_cleaned_segments(open_log: OpenLog, codec: int) -> None:
    """A search by time works after a cleaning: the new time index ends with the largest
    timestamp."""
    log = later_log(open_log, index_interval_bytes=0)
    cleaned(log, keyed(FIRST, codec), keyed(SECOND, codec, time=20))
    assert [(21, 5)] == time_entries(log)[-1:]
    for target, offset in ((5, 1), (12, 3), (13, 3), (14, 4), (21, 5)):
        found = log.offset_at_time(target)
        assert found is not None
        assert offset == found.offset


def manager_of(tmp_path: Path, clock: ManualClock, **config: Any) -> LogManager:
    manager = LogManager(
        [tmp_path],
        LogConfig(level=Level.V0_10_2, segment_index_bytes=4096, **config),
        clock=clock,
    )
    manager.load()
    return manager


def test_young_messages_are_not_cleaned(tmp_path: Path, clock: ManualClock) -> None:
    """With min.compaction.lag.ms a pass ends before the first segment that is too young."""
    manager = manager_of(
        tmp_path,
        clock,
        cleanup_policy="compact",
        min_compaction_lag_ms=1000,
        min_cleanable_dirty_ratio=0.1,
    )
    log = manager.get_or_create(TopicPartition("t", 0))
    for number in range(3):
        log.append(keyed(SECOND, time=START_MS + number * 500))
        log.roll()
    cleaner = LogCleaner(manager, CleanerConfig(map_bytes=4096), clock=clock)
    assert not cleaner.clean_one()
    clock.now_ms += 1501
    assert cleaner.clean_one()
    assert [2, 3, 4, 5] == [m[0] for m in messages_of(log)]
    clock.now_ms += 1000
    assert cleaner.clean_one()
    assert [4, 5] == [m[0] for m in messages_of(log)]


class TestRetention:
    """Retention by time, as captured from 0.10.2.2 (d-ret, d-retfuture, d-retnots, d-retneg)."""

    def retained(self, tmp_path: Path, clock: ManualClock, *times: int, **config: Any) -> list[int]:
        """The base offsets that retention leaves of a log with one segment per timestamp."""
        settings = {"retention_ms": 600_000, "segment_ms": 1, **config}
        manager = manager_of(tmp_path, clock, **settings)
        log = manager.get_or_create(TopicPartition("t", 0))
        for time in times:
            log.append(keyed([(b"k", b"v")], time=time))
        manager.retain()
        return [facts.base_offset for facts in log.segment_facts]

    def test_the_largest_timestamp_is_the_age(self, tmp_path: Path, clock: ManualClock) -> None:
        """The largest timestamp is the age of a segment, however young its file is. The active
        segment may go too; then the log rolls first."""
        assert [1] == self.retained(tmp_path, clock, START_MS - 600_001)
        assert [0] == self.retained(tmp_path / "young", clock, START_MS - 600_000)

    def test_one_from_the_future_keeps_all_behind_it(
        self, tmp_path: Path, clock: ManualClock
    ) -> None:
        """A segment with a timestamp in the future stays, and with it all segments behind it."""
        times = (START_MS - 10**9, START_MS + 10**9, START_MS + 2 * 10**9)
        assert [1, 2] == self.retained(tmp_path, clock, *times)

    def test_without_timestamps_the_file_is_the_age(
        self, tmp_path: Path, clock: ManualClock
    ) -> None:
        """Without timestamps the modification time of the file counts."""
        clock.now_ms = 0
        assert [0] == self.retained(tmp_path, clock, -1)

    def test_a_negative_limit_is_none(self, tmp_path: Path, clock: ManualClock) -> None:
        """From 0.9 on, retention.ms -1 means no limit."""
        assert [0] == self.retained(tmp_path, clock, 5, retention_ms=-1)
        for level, segments in ((Level.V0_8_2, 1), (Level.V0_9_0, 0)):
            policy = Retention(LogConfig(level=level, retention_ms=-1).retention_limit_ms)
            manager = manager_of(tmp_path / str(level), clock)
            log = manager.get_or_create(TopicPartition("t", 0))
            log.append(keyed(SECOND))
            assert segments == policy.expired(log.segment_facts, clock.now_ms)

    @pytest.mark.parametrize(
        ("policy", "deletes"), [("delete", True), ("compact", False), ("compact,delete", True)]
    )
    def test_the_policy_says_whether(
        self, tmp_path: Path, clock: ManualClock, policy: str, deletes: bool
    ) -> None:
        """With cleanup.policy compact,delete a log is compacted and loses its old segments."""
        kept = self.retained(tmp_path, clock, 5, cleanup_policy=policy)
        assert [1 if deletes else 0] == kept

    def test_a_log_that_is_being_cleaned_waits(self, tmp_path: Path, clock: ManualClock) -> None:
        """Retention skips a log while the cleaner works on it: a deletion aborts the cleaning, and
        a cleaning that takes longer than the interval of retention would never finish."""
        manager = manager_of(tmp_path, clock, retention_ms=1, cleanup_policy="compact,delete")
        log = manager.get_or_create(TopicPartition("t", 0))
        log.append(keyed(SECOND))
        log.is_being_cleaned = True
        assert 0 == manager.retain()
        log.is_being_cleaned = False
        assert 1 == manager.retain()
