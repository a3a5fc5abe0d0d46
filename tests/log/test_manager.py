from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ConfigError, CorruptLog, FileRefused, StorageError
from kafka08.levels import Level
from kafka08.log import crashpoints
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.structs import TopicPartition
from tests.log.conftest import CrashAt, Deferred, Died, ManualClock, a_set, all_values, names_in

T0 = TopicPartition("t", 0)
U1 = TopicPartition("u", 1)
MARKER = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"

OpenManager = Callable[..., LogManager]


@pytest.fixture
def open_manager(tmp_path: Path, clock: ManualClock, background: Deferred) -> Iterator[OpenManager]:
    """Opens and loads a manager of tmp_path/a and the directories named in the call; unlocks them
    at the end."""
    managers: list[LogManager] = []

    def open_it(
        *names: str,
        config: LogConfig | None = None,
        topics: dict[str, dict[str, str]] | None = None,
        load: bool = True,
        **keywords: Any,
    ) -> LogManager:
        paths = [tmp_path / name for name in names or ("a",)]
        manager = LogManager(
            paths,
            config or LogConfig(),
            topics,
            clock=clock,
            background=background,
            **keywords,
        )
        managers.append(manager)
        if load:
            manager.load()
        return manager

    yield open_it
    for manager in managers:
        manager._release()


def test_the_removal_of_the_marker_is_on_disk_before_a_log_is_opened(
    open_manager: OpenManager, synced: list[str]
) -> None:
    """The marker's removal is synced before a log is opened. A marker that a power failure brings
    back would make the next start skip recovery."""
    open_manager().shutdown()
    manager = open_manager(load=False)
    before: list[list[str]] = []

    def run(jobs: Sequence[Callable[[], Log]]) -> list[Log]:
        before.append(list(synced))
        return [job() for job in jobs]

    synced.clear()
    manager.load(run)
    assert [["a"]] == before


def test_logs_come_back_after_a_clean_stop(open_manager: OpenManager, tmp_path: Path) -> None:
    """A clean stop writes the marker and the recovery points. The next start trusts them and
    removes the marker."""
    manager = open_manager()
    manager.get_or_create(T0).append(a_set(b"a", b"b"))
    manager.get_or_create(U1)
    manager.shutdown()
    assert [MARKER, ".lock", RECOVERY_POINTS, "t-0", "u-1"] == names_in(tmp_path / "a")
    assert "0\n2\nt 0 2\nu 1 0\n" == (tmp_path / "a" / RECOVERY_POINTS).read_text()
    assert 0 == (tmp_path / "a/u-1" / f"{0:020d}.index").stat().st_size
    again = open_manager()
    assert not (tmp_path / "a" / MARKER).exists()
    found = again.get(T0)
    assert found is not None
    assert (2, 2) == (found.log_end_offset, found.recovery_point)
    assert {T0, U1} == set(again.logs)
    assert again.get(TopicPartition("u", 2)) is None


def test_a_killed_broker_recovers_from_its_checkpoint(
    open_manager: OpenManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the marker, recovery checks every log from its recovery point on."""
    manager = open_manager()
    log = manager.get_or_create(T0)
    log.append(a_set(b"a"))
    log.flush()
    manager.checkpoint_recovery_points()
    log.append(a_set(b"b"))
    manager._release()
    assert MARKER not in names_in(tmp_path / "a")
    with caplog.at_level(logging.INFO):
        again = open_manager()
    assert "Recovering unflushed segment 0 in log t-0." in caplog.text
    assert (2, 1) == (again.logs[T0].log_end_offset, again.logs[T0].recovery_point)


def test_a_start_that_fails_is_no_clean_stop(open_manager: OpenManager, tmp_path: Path) -> None:
    """A start that fails does not count as a clean stop: the marker is removed before the first
    file is opened. (Seen live with 0.8.2.2: a start that fails after a clean stop grows the indexes
    and leaves the marker, and the next start dies.)"""
    manager = open_manager()
    manager.get_or_create(T0).append(a_set(b"a"))
    manager.shutdown()
    manager = open_manager(load=False, crash=CrashAt(crashpoints.LOAD_MARKER_REMOVED))
    with pytest.raises(Died):
        manager.load()
    manager._release()
    assert not (tmp_path / "a" / MARKER).exists()
    again = open_manager()
    assert [(0, b"a")] == all_values(again.logs[T0])


def test_a_start_after_a_kill_flushes_one_log_after_the_other(
    open_manager: OpenManager, background: Deferred, synced: list[str]
) -> None:
    """After a kill every log is flushed in the background, one at a time, and may then roll without
    waiting. After a clean stop none is."""
    manager = open_manager()
    for tp in (T0, U1):
        manager.get_or_create(tp).append(a_set(b"a"))
    manager._release()
    assert [] == background.tasks
    manager = open_manager()
    assert [0, 0] == [log.recovery_point for log in manager.logs.values()]
    for flushed in (1, 2):
        [(_, flush_next)] = background.tasks
        background.tasks.clear()
        flush_next()
        [flush] = background.flushes
        background.flushes.clear()
        flush.run()
        assert flushed == sum(log.recovery_point for log in manager.logs.values())
    synced.clear()
    manager.get_or_create(T0).roll()
    assert [] == synced
    background.run_all()
    manager.shutdown()
    open_manager()
    assert [] == background.tasks


def test_deletions_of_logs_are_synced_together(
    open_manager: OpenManager, synced: list[str]
) -> None:
    """A power failure cannot bring back logs that were deleted before `sync_deletions`; it syncs
    each log directory once, and only after a deletion."""
    manager = open_manager()
    for tp in (T0, U1):
        manager.get_or_create(tp)
    synced.clear()
    for tp in (T0, U1):
        manager.delete(tp)
    manager.sync_deletions()
    manager.sync_deletions()
    assert ["a"] == synced


def test_a_crash_before_the_marker_is_no_clean_stop(
    open_manager: OpenManager, tmp_path: Path
) -> None:
    """After a crash between the checkpoints and the marker, the next start checks the logs and
    finds nothing to recover."""
    manager = open_manager(crash=CrashAt(crashpoints.SHUTDOWN_CLOSED))
    manager.get_or_create(T0).append(a_set(b"a"))
    with pytest.raises(Died):
        manager.shutdown()
    assert not (tmp_path / "a" / MARKER).exists()
    assert [(0, b"a")] == all_values(open_manager().logs[T0])


@pytest.mark.parametrize("name", ["lost+found", "x-0.adbe3bd0567a4d949238898aad573652-delete"])
def test_a_bad_directory_stops_the_load_and_is_named(
    open_manager: OpenManager, tmp_path: Path, name: str
) -> None:
    """An illegal directory stops the load with an error that has its name (captured in
    downgrade-0.9-to-0.8.2.2, without name). The marker stays, since nothing was changed, and the
    lock is released."""
    open_manager().shutdown()
    (tmp_path / "a" / name).mkdir()
    with pytest.raises(CorruptLog) as raised:
        open_manager()
    assert name in str(raised.value)
    assert (tmp_path / "a" / MARKER).exists()
    (tmp_path / "a" / name).rmdir()
    open_manager()


@pytest.mark.parametrize("name", ["copy of t-0", "t-007", "t-2147483648"])
def test_a_directory_that_no_checkpoint_can_name_stops_the_load(
    open_manager: OpenManager, tmp_path: Path, name: str
) -> None:
    """No partition has such a directory. 0.8.2.2 opens "copy of t-0" as a log, writes checkpoints
    with a line of four words, and fails at these at the next start. In "t-007" it sees a second log
    of t-7."""
    (tmp_path / "a" / name).mkdir(parents=True)
    with pytest.raises(CorruptLog, match=f"{name} is not the directory of a partition"):
        open_manager()
    assert [] == names_in(tmp_path / "a" / name)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda _data: bytes(30),
    "cut": lambda data: data[:-5],
    "garbage": lambda _data: b"\xff#",
}
FILES_OF_A_DIRECTORY = (
    RECOVERY_POINTS, "cleaner-offset-checkpoint", ".lock", ".kafka_cleanshutdown",
    f"t-0/{0:020d}.index", f"t-0/{0:020d}.timeindex",
)  # fmt: skip


@pytest.mark.parametrize("name", FILES_OF_A_DIRECTORY)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("level", Level)
def test_a_damaged_file_deletes_no_message(
    open_manager: OpenManager, tmp_path: Path, name: str, damage: str, is_clean: bool, level: Level
) -> None:
    """A broker starts with any damaged file beside its messages, with all of them; an index is
    rebuilt. 0.8: a damaged recovery point checkpoint stops it, as 0.8.2.2."""
    config = LogConfig(level=level, index_interval_bytes=0)
    manager = open_manager(config=config)
    log = manager.get_or_create(T0)
    for number in range(6):
        log.append(a_set(b"%d" % number))
        if number == 3:
            log.roll()
    manager.cleaner_points.record(log.log_directory, T0, 4)
    if is_clean:
        manager.shutdown()
    else:
        manager.checkpoint_recovery_points()
        manager._release()
    path = tmp_path / "a" / name
    if path.exists():
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    if level is Level.V0_8_2 and name == RECOVERY_POINTS:
        with pytest.raises(CorruptLog, match="is not an offset checkpoint"):
            open_manager(config=config)
        return
    again = open_manager(config=config)
    assert [b"%d" % number for number in range(6)] == [v for _, v in all_values(again.logs[T0])]
    again.shutdown()


def test_new_logs_go_where_the_fewest_are(open_manager: OpenManager, tmp_path: Path) -> None:
    """A new log goes to the directory with the fewest logs; the first one wins a tie. Loaded logs
    count, deleted ones do not. Each directory has its own checkpoint."""
    manager = open_manager("a", "b")
    for number in range(3):
        manager.get_or_create(TopicPartition("t", number))
    assert ["a", "b", "a"] == [one.directory.parent.name for one in manager.logs.values()]
    manager.shutdown()
    assert [2, 1] == [
        len(OffsetCheckpoint(tmp_path / name / RECOVERY_POINTS).read_offsets())
        for name in ("a", "b")
    ]
    again = open_manager("a", "b")
    assert 3 == len(again.logs)
    assert "b" == again.get_or_create(TopicPartition("t", 3)).directory.parent.name
    again.delete(TopicPartition("t", 1))
    assert "b" == again.get_or_create(TopicPartition("t", 4)).directory.parent.name


def test_logs_share_the_path_of_their_log_directory(open_manager: OpenManager) -> None:
    """Loaded ones and new ones: the checkpoints group ten thousand logs by it."""
    former = open_manager("a", "b")
    former.get_or_create(T0)
    former.shutdown()
    manager = open_manager("a", "b")
    manager.get_or_create(U1)
    first, second = (manager.logs[tp].log_directory for tp in (T0, U1))
    assert [True, True] == [first is manager.directories[0], second is manager.directories[1]]


def test_shutdown_pauses_between_logs(
    open_manager: OpenManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing thousands of logs takes long, and the session must stay alive. All are closed."""
    monkeypatch.setattr("kafka08.log.manager.LOGS_PER_TURN", 2)
    pauses: list[int] = []
    manager = open_manager(pause=lambda: pauses.append(1))
    for number in range(5):
        manager.get_or_create(TopicPartition("t", number)).append(a_set(b"a"))
    pauses.clear()
    manager.shutdown()
    assert 2 == len(pauses)
    assert [1] * 5 == [one.recovery_point for one in manager.logs.values()]


def test_the_start_pauses_between_logs(
    open_manager: OpenManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does the start before it opens the first of thousands of logs: while it reads recovery
    points, and while it looks at directories."""
    monkeypatch.setattr("kafka08.log.manager.LOGS_PER_TURN", 2)
    former = open_manager()
    for number in range(5):
        former.get_or_create(TopicPartition("t", number))
    former.shutdown()
    pauses: list[int] = []
    before: list[int] = []
    manager = open_manager(load=False, pause=lambda: pauses.append(1))

    def run(jobs: Sequence[Callable[[], Log]]) -> list[Log]:
        before.append(len(pauses))
        return [job() for job in jobs]

    manager.load(run)
    assert [2 + 2] == before
    assert 5 == len(manager.logs)


def test_the_same_partition_twice_is_an_error(open_manager: OpenManager, tmp_path: Path) -> None:
    """A partition in two log directories is an error, because nothing says which one is right."""
    manager = open_manager("a")
    manager.get_or_create(T0)
    manager.shutdown()
    (tmp_path / "b" / "t-0").mkdir(parents=True)
    with pytest.raises(CorruptLog, match=r"Duplicate log directories found for \[t,0\]"):
        open_manager("a", "b")


def test_directories_must_be_usable_and_different(
    open_manager: OpenManager, tmp_path: Path
) -> None:
    """A directory that is listed twice (also by another spelling), is a file, or is locked, is an
    error, and no lock remains."""
    with pytest.raises(ConfigError, match="Duplicate log directory found"):
        open_manager("a", "../" + tmp_path.name + "/a")
    (tmp_path / "file").touch()
    with pytest.raises(FileRefused, match="file"):
        open_manager("a", "file")
    first = open_manager("a")
    with pytest.raises(StorageError, match="Failed to acquire lock"):
        open_manager("b", "a")
    open_manager("b")
    first.shutdown()
    open_manager("a")


def test_loading_may_use_threads(open_manager: OpenManager) -> None:
    """Each job opens one log and uses nothing else, so threads may load logs in parallel."""
    manager = open_manager()
    for number in range(8):
        one = manager.get_or_create(TopicPartition("t", number))
        one.append(a_set(*[b"%d" % number] * (number + 1)))
    manager._release()
    again = open_manager(load=False)

    def run(jobs: Sequence[Callable[[], Log]]) -> list[Log]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda job: job(), jobs))

    again.load(run)
    assert list(range(1, 9)) == [
        again.logs[TopicPartition("t", number)].log_end_offset for number in range(8)
    ]


def test_topic_configuration_reaches_its_logs(open_manager: OpenManager) -> None:
    """Topic overrides apply at load, at creation and when they change. {} restores the defaults."""
    manager = open_manager(
        config=LogConfig(segment_bytes=5000), topics={"t": {"retention.ms": "7"}}
    )
    log = manager.get_or_create(T0)
    assert (7, 5000) == (log.config.retention_ms, log.config.segment_bytes)
    manager.update_topic_config("t", {"segment.bytes": "600"})
    assert (LogConfig().retention_ms, 600) == (log.config.retention_ms, log.config.segment_bytes)
    manager.update_topic_config("t", {})
    assert 5000 == log.config.segment_bytes


def test_a_topic_that_is_gone_leaves_no_configuration(open_manager: OpenManager) -> None:
    """A topic's configuration goes with the last of its logs. A broker that sees thousands of
    topics come and go does not collect them."""
    manager = open_manager()
    manager.update_topic_config("t", {"retention.ms": "7"})
    for number in range(2):
        manager.get_or_create(TopicPartition("t", number))
    for number, retention_ms in enumerate((7, LogConfig().retention_ms)):
        manager.delete(TopicPartition("t", number))
        assert retention_ms == manager.config_of("t").retention_ms
    assert not manager.is_configured("t")


def test_retention_spares_compacted_topics(open_manager: OpenManager, clock: ManualClock) -> None:
    """Retention by time applies to every log with the policy delete, and to no compacted one."""
    manager = open_manager(
        config=LogConfig(retention_ms=1000), topics={"u": {"cleanup.policy": "compact"}}
    )
    for topic_partition in (T0, U1):
        one = manager.get_or_create(topic_partition)
        one.append(a_set(b"a"))
        os.utime(one.directory / f"{0:020d}.log", (1, 1))
    assert 1 == manager.retain()
    assert [1, 0] == [manager.logs[tp].log_start_offset for tp in (T0, U1)]


def test_dirty_logs_are_flushed_after_flush_ms(
    open_manager: OpenManager, clock: ManualClock, background: Deferred
) -> None:
    """flush.ms counts from the last flush. A log without new messages is not flushed."""
    manager = open_manager(config=LogConfig(flush_ms=1000))
    log = manager.get_or_create(T0)
    manager.get_or_create(U1)
    log.append(a_set(b"a"))
    assert 0 == manager.flush_dirty()
    clock.now_ms += 1000
    assert 1 == manager.flush_dirty()
    background.run_all()
    assert (1, 0) == (log.recovery_point, manager.flush_dirty())
    log.append(a_set(b"b"))
    assert 0 == manager.flush_dirty()


def test_a_slow_disk_does_not_collect_periodic_flushes(
    open_manager: OpenManager, clock: ManualClock, background: Deferred
) -> None:
    """A log whose periodic flush still runs gets no second one. It gets one after the first has
    completed."""
    manager = open_manager(config=LogConfig(flush_ms=1000))
    log = manager.get_or_create(T0)
    log.append(a_set(b"a"))
    clock.now_ms += 1000
    assert 1 == manager.flush_dirty()
    log.append(a_set(b"b"))
    assert 0 == manager.flush_dirty()
    background.run_all()
    assert 1 == log.recovery_point
    clock.now_ms += 1000
    assert 1 == manager.flush_dirty()


def test_truncation_checkpoints_the_recovery_point(
    open_manager: OpenManager, tmp_path: Path
) -> None:
    """A truncation checkpoints the recovery point before it begins, at the start of the segment: a
    wrapper may be dropped as a whole. Otherwise a crash after new appends would trust bytes that
    were never flushed."""
    manager = open_manager()
    log = manager.get_or_create(T0)
    log.append(a_set(b"a", b"b", b"c"))
    log.flush()
    manager.checkpoint_recovery_points()
    manager.truncate_to({T0: 1, U1: 5})
    path = tmp_path / "a" / RECOVERY_POINTS
    assert {T0: 0} == OffsetCheckpoint(path).read_offsets()
    assert 1 == log.recovery_point
    manager.truncate_fully_and_start_at(T0, 0)
    assert {T0: 0} == OffsetCheckpoint(path).read_offsets()


def test_a_log_that_starts_behind_its_end_writes_no_checkpoint(
    open_manager: OpenManager, tmp_path: Path
) -> None:
    """The file's recovery point is not above the new one. (Each of thousands of replicas that start
    behind their leaders' first offsets wrote the recovery points of all logs.)"""
    manager = open_manager()
    manager.get_or_create(T0).append(a_set(b"a"))
    manager.checkpoint_recovery_points()
    file = tmp_path / "a" / RECOVERY_POINTS
    file.unlink()
    manager.truncate_fully_and_start_at(T0, 1000)
    assert 1000 == manager.logs[T0].log_end_offset
    assert {} == manager.truncate_to({T0: 1000})
    assert not file.exists()


def test_a_truncation_is_flushed_in_the_background(
    open_manager: OpenManager, background: Deferred, synced: list[str]
) -> None:
    """A truncation queues a flush, one log after the other. A log that rolls later need not wait
    until everything in its active segment is on disk."""
    manager = open_manager()
    for tp in (T0, U1):
        manager.get_or_create(tp).append(a_set(b"a", b"b"))
        manager.logs[tp].flush()
    manager.truncate_to({T0: 1, U1: 1})
    for _ in manager.logs:
        background.tasks.pop()[1]()
        assert 1 == len(background.flushes)
        background.flushes.pop().run()
    synced.clear()
    for log in manager.logs.values():
        log.append(a_set(b"c"))
        log.roll()
    assert [] == synced


def test_a_log_that_cannot_be_read_is_not_cut(open_manager: OpenManager, tmp_path: Path) -> None:
    """A log that cannot be read is reported and keeps its bytes; the other logs are truncated."""
    manager = open_manager()
    for tp in (T0, U1):
        log = manager.get_or_create(tp)
        log.append(a_set(b"a", b"b", b"c"))
        log.roll()
        log.append(a_set(b"d"))
    path = manager.logs[T0].directory / f"{0:020d}.log"
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert [T0] == list(manager.truncate_to({T0: 1, U1: 1}))
    assert [4, 1] == [manager.logs[tp].log_end_offset for tp in (T0, U1)]
    assert 2 == len(manager.logs[T0].segment_facts)
    manager.delete(T0)


class TestDeletedDirectories:
    """From 0.10.2 on, the directory of a deleted log is renamed first (LogManager.asyncDelete)."""

    HEX = "0123456789abcdef" * 2
    NAME = f"t-0.{HEX}-delete"

    def test_it_is_removed_later(
        self, open_manager: OpenManager, tmp_path: Path, background: Deferred
    ) -> None:
        """The renamed directory is removed later. A log of the same name may be created
        meanwhile."""
        manager = open_manager(draw_unique=lambda: self.HEX)
        manager.get_or_create(T0).append(a_set(b"x"))
        assert manager.delete(T0)
        assert ["00000000000000000000.index", "00000000000000000000.log"] == sorted(
            path.name for path in (tmp_path / "a" / self.NAME).iterdir() if "time" not in path.name
        )
        assert 0 == manager.get_or_create(T0).log_end_offset
        background.run_all()
        assert not (tmp_path / "a" / self.NAME).exists()
        assert (tmp_path / "a" / "t-0").exists()

    def test_the_next_load_removes_it(self, open_manager: OpenManager, tmp_path: Path) -> None:
        """The next load removes renamed directories, also those of a JVM broker."""
        for name in (self.NAME, "t-1"):
            (tmp_path / "a" / name).mkdir(parents=True)
        manager = open_manager(draw_unique=lambda: self.HEX)
        assert [TopicPartition("t", 1)] == list(manager.logs)
        assert not (tmp_path / "a" / self.NAME).exists()

    def test_0_8_refuses_it(self, open_manager: OpenManager, tmp_path: Path) -> None:
        """0.8 refuses to start on a renamed directory, as on any that is no partition's."""
        (tmp_path / "a" / self.NAME).mkdir(parents=True)
        with pytest.raises(CorruptLog, match="is not the directory of a partition"):
            open_manager()

    def test_a_name_that_would_be_too_long(self, open_manager: OpenManager, tmp_path: Path) -> None:
        """A directory whose new name would be too long is removed at once."""
        manager = open_manager(draw_unique=lambda: self.HEX)
        long = TopicPartition("t" * 240, 0)
        manager.get_or_create(long)
        manager.delete(long)
        assert not [path for path in (tmp_path / "a").iterdir() if path.is_dir()]


def test_delete_removes_log_and_directory(open_manager: OpenManager, tmp_path: Path) -> None:
    """The log's directory is removed, and the next checkpoint has no entry for it."""
    manager = open_manager()
    manager.get_or_create(T0).append(a_set(b"a"))
    assert manager.delete(T0)
    assert not manager.delete(T0)
    assert manager.get(T0) is None
    assert not (tmp_path / "a" / "t-0").exists()
    manager.checkpoint_recovery_points()
    assert {} == OffsetCheckpoint(tmp_path / "a" / RECOVERY_POINTS).read_offsets()
    assert 0 == manager.get_or_create(T0).log_end_offset


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_directory_that_is_gone_counts_as_removed(
    open_manager: OpenManager, tmp_path: Path, background: Deferred, is_renamed: bool
) -> None:
    """An operator may have removed the directory of a deleted log. That is no error, with which the
    broker would stop, as in 0.8.2.2 and 0.10.2.2."""
    manager = open_manager(draw_unique=(lambda: "0" * 32) if is_renamed else None)
    manager.get_or_create(T0).append(a_set(b"a"))
    if is_renamed:
        manager.delete(T0)
    (directory,) = (path for path in (tmp_path / "a").iterdir() if path.is_dir())
    shutil.rmtree(directory)
    assert is_renamed or manager.delete(T0)
    background.run_all()
    assert 0 == manager.get_or_create(T0).log_end_offset


def test_a_recreated_log_does_not_inherit_a_recovery_point(
    open_manager: OpenManager, tmp_path: Path
) -> None:
    """A log that is created again gets a recovery point of its own. With the old one, a crash
    before the next checkpoint would trust messages without a check."""
    manager = open_manager()
    log = manager.get_or_create(T0)
    log.append(a_set(b"a", b"b"))
    log.flush()
    manager.checkpoint_recovery_points()
    manager.delete(T0)
    manager.get_or_create(T0)
    assert {} == OffsetCheckpoint(tmp_path / "a" / RECOVERY_POINTS).read_offsets()


def test_a_recovery_point_above_the_log_end_is_lowered_at_the_start(
    open_manager: OpenManager, tmp_path: Path
) -> None:
    """A start lowers a recovery point above the log end, which a crash between a truncation and its
    checkpoint leaves. Otherwise the next crash would trust later appends without a check."""
    manager = open_manager()
    log = manager.get_or_create(T0)
    log.append(a_set(b"a", b"b"))
    log.flush()
    manager.checkpoint_recovery_points()
    log.truncate_to(1)
    manager._release()
    assert 1 == open_manager().logs[T0].recovery_point
    assert {T0: 1} == OffsetCheckpoint(tmp_path / "a" / RECOVERY_POINTS).read_offsets()


def test_a_failing_flush_leaves_no_marker(
    open_manager: OpenManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed flush the directory is unlocked, but has no clean-shutdown marker."""
    manager = open_manager()
    manager.get_or_create(T0).append(a_set(b"a"))

    def fail(_fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, suppress(StorageError):
        patch.setattr(os, "fsync", fail)
        manager.shutdown()
    assert not (tmp_path / "a" / MARKER).exists()
    open_manager()
