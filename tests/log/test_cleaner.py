"""LogCleaner: which logs it cleans, what it checkpoints, which logs it sets aside."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.log import crashpoints
from kafka08.log.cleaner import LogCleaner
from kafka08.log.cleaner_plan import CleanerConfig
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.structs import TopicPartition
from tests.log.compaction import keyed, messages_of
from tests.log.conftest import CrashAt, Deferred, Died, ManualClock

A, B, C = (TopicPartition(name, 0) for name in "abc")
COMPACT = {"cleanup.policy": "compact"}


@pytest.fixture
def manager(tmp_path: Path, clock: ManualClock, background: Deferred) -> Iterator[LogManager]:
    """A manager with the compacted topics a and b, and others that are not compacted."""
    opened = LogManager(
        [tmp_path / "1", tmp_path / "2"],
        LogConfig(),
        {"a": COMPACT, "b": COMPACT},
        clock=clock,
        background=background,
    )
    opened.load()
    yield opened
    opened._release()


def cleaner_of(manager: LogManager, **keywords: Any) -> LogCleaner:
    return LogCleaner(manager, CleanerConfig(), clock=ManualClock(), **keywords)


def fill(manager: LogManager, topic_partition: TopicPartition, segments: int = 2) -> Log:
    """Appends sealed segments of two messages each; all have the same two keys."""
    log = manager.get_or_create(topic_partition)
    for _ in range(segments):
        log.append(keyed((b"k", b"v"), (b"l", b"v")))
        log.roll()
    return log


def offsets_of(log: Log) -> list[int]:
    return [offset for offset, _, _ in messages_of(log)]


def test_only_compacted_logs_are_cleaned(manager: LogManager) -> None:
    """The cleaner cleans the compacted logs in turn, until none is dirty enough. Other topics keep
    every message."""
    logs = [fill(manager, tp) for tp in (A, B, C)]
    cleaner = cleaner_of(manager)
    assert [True, True, False] == [cleaner.clean_one() for _ in range(3)]
    assert [[2, 3], [2, 3], [0, 1, 2, 3]] == [offsets_of(log) for log in logs]


def test_a_topic_may_become_compacted(manager: LogManager) -> None:
    """Once its topic is compacted, the whole log counts as dirty."""
    log = fill(manager, C)
    cleaner = cleaner_of(manager)
    assert not cleaner.clean_one()
    manager.update_topic_config("c", COMPACT)
    assert cleaner.clean_one()
    assert [2, 3] == offsets_of(log)


def test_the_dirtiest_goes_first(manager: LogManager) -> None:
    """A log that was just cleaned must become as dirty again before it is cleaned next."""
    cleaner = cleaner_of(manager)
    fill(manager, A, 4)
    assert cleaner.clean_one()
    fill(manager, A, 1)
    assert cleaner.filthiest() is None
    fill(manager, A, 1)
    fill(manager, B)
    dirty = cleaner.filthiest()
    assert dirty is not None
    assert (B, 0, 1.0) == (dirty.topic_partition, dirty.first_dirty_offset, dirty.dirty_ratio)
    assert cleaner.clean_one()
    dirty = cleaner.filthiest()
    assert dirty is not None
    assert (A, 8) == (dirty.topic_partition, dirty.first_dirty_offset)


def test_the_threshold_is_the_topics_own(manager: LogManager) -> None:
    """The topic's min.cleanable.dirty.ratio overrides the broker's."""
    fill(manager, A)
    manager.update_topic_config("a", {**COMPACT, "min.cleanable.dirty.ratio": "1.0"})
    assert cleaner_of(manager).filthiest() is None


def test_nothing_goes_for_a_message_that_may_vanish(manager: LogManager) -> None:
    """The cleaner does not read segments above the high watermark. A truncation could remove the
    later message after the cleaner removed the earlier one of the same key. 0.8.2.2 loses messages
    in this way."""
    log = fill(manager, A, 3)
    committed = [3]
    cleaner = cleaner_of(manager, committed=lambda _tp: committed[0])
    assert [True, False] == [cleaner.clean_one() for _ in range(2)]
    assert list(range(6)) == offsets_of(log)
    committed[0] = 4
    assert [False, 2] == [
        cleaner.clean_one(),
        manager.cleaner_points.get(manager.directories[0], A),
    ]
    committed[0] = 6
    assert [True, False] == [cleaner.clean_one() for _ in range(2)]
    assert [4, 5] == offsets_of(log)


def test_cleaned_offsets_survive_a_restart(manager: LogManager, tmp_path: Path) -> None:
    """The checkpoint of each log directory has the cleaned offsets, and cleaning continues there
    after a restart."""
    fill(manager, A)
    fill(manager, B)
    cleaner = cleaner_of(manager)
    while cleaner.clean_one():
        pass
    texts = [(tmp_path / name / "cleaner-offset-checkpoint").read_text() for name in "12"]
    assert ["0\n1\na 0 4\n", "0\n1\nb 0 4\n"] == texts
    manager.shutdown()
    again = LogManager(manager.directories, LogConfig(), {"a": COMPACT, "b": COMPACT})
    again.load()
    assert cleaner_of(again).filthiest() is None
    fill(again, A)
    dirty = cleaner_of(again).filthiest()
    assert dirty is not None
    assert 4 == dirty.first_dirty_offset
    again.shutdown()


def test_a_log_is_cleaned_by_one_at_a_time(manager: LogManager) -> None:
    """Two workers never clean the same log at the same time."""
    fill(manager, A)
    seen: list[object] = []

    def look(call: Callable[..., Any], *args: object) -> Any:
        seen.append(cleaner.filthiest())
        return call(*args)

    cleaner = cleaner_of(manager, native=look)
    assert cleaner.clean_one()
    assert [None] == list(dict.fromkeys(seen))


def test_a_log_deleted_meanwhile(manager: LogManager, caplog: pytest.LogCaptureFixture) -> None:
    """The cleaner gives up a log that is deleted during its pass, and checkpoints nothing for
    it."""
    caplog.set_level(logging.INFO)
    fill(manager, A)

    def delete(call: Callable[..., Any], *args: object) -> Any:
        manager.delete(A)
        return call(*args)

    cleaner = cleaner_of(manager, native=delete)
    assert cleaner.clean_one()
    assert not cleaner.clean_one()
    assert "The cleaning for partition [a,0] is aborted" in caplog.text
    assert manager.cleaner_points.get(manager.directories[0], A) is None


def test_a_log_truncated_meanwhile_is_cleaned_again(manager: LogManager) -> None:
    """A pass that meets a truncation changes nothing, and the next pass cleans the log."""
    log = fill(manager, A)
    left = [1]

    def truncate(call: Callable[..., Any], *args: object) -> Any:
        if left:
            manager.truncate_to({A: left.pop()})
            fill(manager, A)
        return call(*args)

    cleaner = cleaner_of(manager, native=truncate)
    assert [True, True, False] == [cleaner.clean_one() for _ in range(3)]
    assert [3, 4] == offsets_of(log)


def test_a_log_that_cannot_be_cleaned_is_set_aside(
    manager: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    """The cleaner continues with the other logs, and tries this one again after it has rolled. The
    cleaner of 0.8.2.2 stops for good."""
    broken, sound = fill(manager, A), fill(manager, B)
    path = broken.sealed_segments[0].log_path
    good = path.read_bytes()
    path.write_bytes(good[:8] + bytes(4) + good[12:])
    cleaner = cleaner_of(manager)
    assert [True, True, False] == [cleaner.clean_one() for _ in range(3)]
    assert "Cannot clean log for partition [a,0]: " in caplog.text
    assert "corrupt size 0" in caplog.text
    assert [2, 3] == offsets_of(sound)
    path.write_bytes(good)
    fill(manager, A, 1)
    assert [True, False] == [cleaner.clean_one() for _ in range(2)]
    assert [4, 5] == offsets_of(broken)


def spoil(log: Log) -> None:
    """Gives the first sealed segment a message of size 0."""
    path = log.sealed_segments[0].log_path
    good = path.read_bytes()
    path.write_bytes(good[:8] + bytes(4) + good[12:])


def test_a_new_log_of_a_deleted_topic_is_not_set_aside(manager: LogManager) -> None:
    """A new log of the same name is cleaned, although it rolled at the offset where the deleted log
    was set aside."""
    spoil(fill(manager, A))
    cleaner = cleaner_of(manager)
    assert [True, False] == [cleaner.clean_one() for _ in range(2)]
    manager.delete(A)
    manager.update_topic_config("a", COMPACT)
    again = fill(manager, A)
    assert [True, False] == [cleaner.clean_one() for _ in range(2)]
    assert [2, 3] == offsets_of(again)


def test_a_log_deleted_while_its_cleaning_fails(manager: LogManager) -> None:
    """The cleaner continues with the next log, and keeps no entry for the deleted one."""
    spoil(fill(manager, A))
    sound = fill(manager, B)

    def delete(call: Callable[..., Any], *args: object) -> Any:
        try:
            return call(*args)
        finally:
            if A in manager.logs:
                manager.delete(A)

    cleaner = cleaner_of(manager, native=delete)
    assert [True, True, False] == [cleaner.clean_one() for _ in range(3)]
    assert [2, 3] == offsets_of(sound)
    assert {} == cleaner._set_aside


def test_messages_without_a_key_are_logged(
    manager: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    """A compacted log cannot keep messages without a key. The cleaner counts them and logs them
    with the log's name."""
    log = manager.get_or_create(A)
    log.append(keyed((None, b"1"), (b"a", b"2"), (None, b"3")))
    log.roll()
    cleaner = cleaner_of(manager)
    cleaner.clean_one()
    assert 2 == cleaner.messages_unkeyed
    assert "Dropped 2 messages without a key from compacted log a-0" in caplog.text


def test_log_lines_have_kafkas_words(manager: LogManager, caplog: pytest.LogCaptureFixture) -> None:
    """The log lines have the sentences of kafka.log.LogCleaner, so operators find them by
    searching."""
    caplog.set_level(logging.INFO, "kafka.log.LogCleaner")
    fill(manager, A)
    cleaner_of(manager).clean_one()
    assert "cleaned log a-0 (dirty section = [0, 4])" in caplog.text
    assert "50.0% size reduction (50.0% fewer messages)" in caplog.text
    assert "Start size: 0.0 MB (4 messages)" in caplog.text


PASSES = {
    crashpoints.ROLL_LOG_CREATED: 1,
    crashpoints.CLEANED_WRITTEN: 1,
    crashpoints.SWAP_LOG_RENAMED: 2,
    crashpoints.SWAP_BEGUN: 1,
    crashpoints.DELETE_LOG_RENAMED: 3,
    crashpoints.SWAP_REPLACED: 1,
    crashpoints.CHECKPOINT_WRITTEN: 1,
}
"""Each point of a cleaning, and how often the one below passes it."""


def _clean_three_segments(tmp_path: Path, crash: CrashAt) -> None:
    """Cleans three segments into one. `crash` is the hook of the cleaning alone."""
    manager = LogManager([tmp_path], LogConfig(), {"a": COMPACT}, background=Deferred())
    manager.load()
    try:
        log = fill(manager, A, 3)
        log.append(keyed((b"k", b"active")))
        log.flush()
        log._crash = crash
        manager.checkpoint_recovery_points()
        manager.cleaner_points = type(manager.cleaner_points)([tmp_path], crash)
        cleaner_of(manager, crash=crash).clean_one()
    finally:
        manager._release()


def test_a_cleaning_passes_every_point(tmp_path: Path) -> None:
    """A cleaning passes every crash point as often as the next test dies there. A point that it
    does not pass would prove nothing."""
    crash = CrashAt("never")
    _clean_three_segments(tmp_path, crash)
    assert Counter(crash.seen) == PASSES
    assert min(PASSES.values()) > 0


@pytest.mark.parametrize(
    ("point", "passed_before"),
    [(point, number) for point, passes in PASSES.items() for number in range(passes)],
)
def test_a_death_at(tmp_path: Path, point: str, passed_before: int) -> None:
    """After a death at any point the next start finds a sound log, with the last message of each
    key at its offset. Cleaning then finishes with the same result."""
    with pytest.raises(Died):
        _clean_three_segments(tmp_path, CrashAt(point, passed_before))

    again = LogManager([tmp_path], LogConfig(), {"a": COMPACT}, background=Deferred())
    again.load()
    assert offsets_of(again.logs[A]) in ([0, 1, 2, 3, 4, 5, 6], [4, 5, 6])
    assert not list((tmp_path / "a-0").glob("*.swap"))
    assert not list((tmp_path / "a-0").glob("*.cleaned"))
    cleaner_of(again).clean_one()
    assert [4, 5, 6] == offsets_of(again.logs[A])
    assert 6 == again.cleaner_points.get(tmp_path, A)
    again.shutdown()
