"""LogManager: all logs of a broker in one or more log directories, with locks and checkpoints.

The broker's runtime calls `load` at start, then `retain`, `flush_dirty` and
`checkpoint_recovery_points` at their intervals, `shutdown` at the end.
Source: kafka.log.LogManager 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import ConfigError, CorruptLog, FileRefused, KafkaError
from kafka08.levels import Level
from kafka08.log import crashpoints
from kafka08.log.background import Background, Inline
from kafka08.log.cleaner_points import CleanerPoints
from kafka08.log.config import LogConfig
from kafka08.log.directory import LogDirectory
from kafka08.log.files import in_each, storage_errors, sync_directory
from kafka08.log.log import DrawJitter, Log, no_jitter
from kafka08.log.log_starts import LogStarts
from kafka08.log.names import (
    deleted_directory,
    is_deleted_directory,
    parse_partition_directory,
    partition_directory,
)
from kafka08.log.retention import Committed, Retention, everything
from kafka08.log.stored_format import has_record_batches, segment_of_magic_1
from kafka08.metrics import Timings
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.structs import TopicPartition

T = TypeVar("T")

logger = logging.getLogger(__name__)

NAME_BYTES_MAX: Final = 255
"""The longest name of a file or directory."""
LOGS_PER_TURN: Final = 200
"""The number of logs between two pauses."""
LOGS_PER_LOOK: Final = 20
"""The number of logs between two pauses where the files of each are read."""

DrawUnique = Callable[[], str]
"""Returns a unique part for the name of a deleted directory."""
LoadJob = Callable[[], Log]
"""Opens one log; independent of all others, so jobs may run in several threads."""
RunJobs = Callable[[Sequence[LoadJob]], Iterable[Log]]


def run_sequentially(jobs: Sequence[LoadJob]) -> Iterable[Log]:
    return (job() for job in jobs)


class LogManager:
    """The logs under `directories` (log.dirs), which are created if missing and locked at once.

    topic_configs   topic → its overrides in ZooKeeper
    pause           called periodically in loops over all logs; may let other tasks run
    draw_unique     from 0.10.2 on: directories of deleted logs are renamed, and removed later or by
                    the next load; None: they are removed at once, and load refuses renamed ones
    The other arguments are passed to every `Log`.

    Raises ConfigError for a directory named twice; StorageError or FileRefused for one that cannot
    be used, or is held by another broker. Where one log is refused a file in a loop over all, the
    others go on. One thread uses a manager.
    """

    def __init__(
        self,
        directories: Sequence[Path | str],
        default_config: LogConfig,
        topic_configs: Mapping[str, Mapping[str, str]] | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        disk: Disk = SYSTEM_DISK,
        background: Background | None = None,
        draw_jitter: DrawJitter = no_jitter,
        crash: crashpoints.CrashPoint = crashpoints.never,
        pause: Callable[[], object] = lambda: None,
        draw_unique: DrawUnique | None = None,
    ) -> None:
        self._default_config = default_config
        self._configs = {
            topic: default_config.from_stored(topic, overrides)
            for topic, overrides in (topic_configs or {}).items()
        }
        self._clock = clock
        self.disk = disk
        self._background = background or Inline()
        self._crash = crash
        self._open_log: Callable[..., Log] = partial(
            Log,
            clock=clock,
            disk=disk,
            background=self._background,
            draw_jitter=draw_jitter,
            crash=crash,
        )
        self._pause = pause
        self._draw_unique = draw_unique
        self.logs: dict[TopicPartition, Log] = {}
        self._topics: dict[str, set[Log]] = {}
        """topic → its logs."""
        self._flushing: set[Log] = set()
        self.flush_times = Timings()
        """The times of all fsyncs, in ms, including the wait for a native thread."""
        self._log_counts: Counter[Path] = Counter()
        self._checkpointed: dict[Path, Mapping[TopicPartition, int]] = {}
        """The recovery points on disk, of deleted logs too."""
        paths = [Path(directory) for directory in directories]
        self._shared = {path: path for path in paths}
        """A log directory → the one object for it, which thousands of logs share."""
        if len({disk.real_path(path) for path in paths}) < len(paths):
            raise ConfigError(f"Duplicate log directory found: {', '.join(map(str, paths))}")
        self._undeleted: dict[TopicPartition, Path] = {}
        """The directories of deleted logs that the system refused to remove, and of new ones that
        it refused to make whole."""
        self.unsynced_deletions: set[Path] = set()
        """The log directories whose deletions of logs might not be on disk."""
        self._directories: list[LogDirectory] = []
        try:
            for path in paths:
                self._directories.append(LogDirectory(path, crash, disk))
            self.cleaner_points = CleanerPoints(self.directories, crash, disk)
            has_starts = default_config.level >= Level.V0_11_0
            self.log_starts = LogStarts(self.directories if has_starts else (), crash, disk)
        except KafkaError:
            self._release()
            raise

    @property
    def directories(self) -> list[Path]:
        """The log directories, in the given order."""
        return [directory.path for directory in self._directories]

    @property
    def identity(self) -> str:
        """The identity of the first directory, which no copy has."""
        return self._directories[0].identity

    # Start and end

    def load(self, run: RunJobs = run_sequentially) -> None:
        """Open every log. `run` gets one job per log and may run them in threads:

            with ThreadPoolExecutor(4) as pool:
                manager.load(lambda jobs: pool.map(lambda job: job(), jobs))

        The clean-shutdown marker is removed before the first file is opened: the next start, ours
        or the JVM's, must not take a failed start for a clean stop. Raises CorruptLog for foreign
        directories and files, ConfigError for logs of a newer format, StorageError and FileRefused;
        the locks are released then.
        """
        logger.info("Loading logs.")
        try:
            found = [one for directory in self._directories for one in self._load_jobs(directory)]
            # Before the marker goes: a start that is refused changes nothing.
            self._refuse_newer_formats([path for path, _ in found])
            for directory in self._directories:
                directory.remove_marker()
            is_too_high = False
            for loaded in run([job for _, job in found]):
                self._add(loaded)
                is_too_high |= self._is_checkpointed_too_high(loaded)
            self.cleaner_points.keep(self._has)
            if is_too_high:
                self.checkpoint_recovery_points()
        except KafkaError:
            self._release()
            raise
        logger.info("Logs loading complete.")
        if self.logs and not all(directory.was_clean for directory in self._directories):
            self._flush_later(iter([*self.logs.values()]))

    def _flush_later(self, logs: Iterator[Log]) -> None:
        """Flush logs with an unsynced truncation, or what a killed process may have left of one,
        one after the other, in the background: a log that rolls first must wait for that."""

        def flush_next() -> None:
            for log in logs:
                flush = None
                if not log.is_closed:
                    with _others_go_on(log):
                        flush = log.begin_flush()
                if flush is not None:
                    self._background.flush_soon(flush.then(lambda: self._flush_later(logs)))
                    return

        self._background.run_later(0, flush_next)

    def _load_jobs(self, directory: LogDirectory) -> Iterator[tuple[Path, LoadJob]]:
        """The directory of each log with its job. `pause` is called periodically."""
        recovery_points = self._checkpointed[directory.path] = self._recovery_points(directory)
        starts = self.log_starts.read(directory.path, self._in_turns)
        if directory.was_clean:
            logger.debug("Found clean shutdown file. Skipping recovery in %s", directory.path)
        for path in self._in_turns(directory.partition_directories()):
            if self._draw_unique is not None and is_deleted_directory(path):
                self._remove_directory(path)
                continue
            topic_partition = parse_partition_directory(path)
            self._check_unique(directory, path, topic_partition)
            recovery_point = recovery_points.get(topic_partition, 0)
            start = starts.get(topic_partition, 0)
            yield path, self._load_job(path, recovery_point, start, directory.was_clean)

    def _recovery_points(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        """The entries of its checkpoint file. From 0.9 on one that is damaged has none. 0.8:
        CorruptLog, which stops the broker's start."""
        file = directory.recovery_points
        if self._default_config.level < Level.V0_9_0:
            return file.read_offsets(self._in_turns)
        without = "every segment there is recovered, as if it were unflushed"
        return file.read_or_reset(without, self._in_turns)

    def _refuse_newer_formats(self, paths: Collection[Path]) -> None:
        """ConfigError for a log with magic 1 where the broker stores magic 0: its consumers could
        not read it. A topic's own message.format.version may be lowered. Below level 0.11 also for
        a log with record batches, whatever its topic says: 0.10.2.2 and 0.8.2.2 start in both
        cases, and cut such a log at the first batch."""
        default = self._default_config
        if default.level < Level.V0_11_0:
            for path in self._in_turns(paths, LOGS_PER_LOOK):
                if has_record_batches(path, self.disk):
                    raise ConfigError(
                        f"api.level {default.level} cannot read {path}, which has record batches "
                        "(message format 2). Start with api.level 0.11.0"
                    )
        if default.magic:
            return
        for path in self._in_turns(paths, LOGS_PER_LOOK):
            topic = parse_partition_directory(path).topic
            is_its_own = self.config_of(topic).message_format_version != (
                default.message_format_version
            )
            found = None if is_its_own else segment_of_magic_1(path, self.disk)
            if found is not None:
                raise ConfigError(
                    f"{default.format_setting} is too low for topic {topic}: {found} has messages "
                    "of magic 1. Start with api.level 0.10.2 and log.message.format.version 0.10.0 "
                    "or later"
                )

    def _load_job(self, path: Path, recovery_point: int, start: int, clean: bool) -> LoadJob:
        return lambda: self._open(
            path, recovery_point=recovery_point, log_start_offset=start, clean_shutdown=clean
        )

    def _check_unique(
        self, directory: LogDirectory, path: Path, topic_partition: TopicPartition
    ) -> None:
        others = [
            other
            for another in self._directories
            if another is not directory
            and self.disk.is_directory(other := another.path / path.name)
        ]
        if others:
            raise CorruptLog(
                f"Duplicate log directories found for {topic_partition}: {path}, {others[0]}!"
            )

    def shutdown(self) -> None:
        """Flush and close every log, checkpoint, write the clean-shutdown marker, unlock.

        StorageError or FileRefused if a flush fails; then the directories are unlocked without a
        marker.
        """
        logger.info("Shutting down.")
        try:
            for one in self._logs_with_pauses():
                one.flush()
                one.close()
            self.checkpoint_recovery_points()
            self.checkpoint_log_starts()
            self.cleaner_points.write_deletions()
            self._crash(crashpoints.SHUTDOWN_CLOSED)
            # Last: the markers vouch for all of the above.
            for directory in self._directories:
                directory.write_marker()
        finally:
            self._release()
        logger.info("Shutdown complete.")

    # Logs

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """The log of a partition, None if this broker has none."""
        return self.logs.get(topic_partition)

    def has_directory(self, topic_partition: TopicPartition) -> bool:
        """Whether there is a log of a partition, or what a refused call has left of one."""
        return topic_partition in self.logs or topic_partition in self._undeleted

    def get_or_create(self, topic_partition: TopicPartition) -> Log:
        """The log of a partition, new in `new_path` if there is none. FileRefused, StorageError."""
        found = self.logs.get(topic_partition)
        if found is not None:
            return found
        self._delete_what_is_left(topic_partition)
        directory = self._emptiest
        path = directory / partition_directory(topic_partition)
        # Noted before, in case the system refuses a file in it.
        self._undeleted[topic_partition] = path
        # Before the log exists: after a crash it would inherit the point of a former one.
        self.cleaner_points.write_deletion(directory, topic_partition)
        self._lower_log_start(directory, topic_partition, 0)
        created = self._open(path)
        del self._undeleted[topic_partition]
        if self._is_checkpointed_too_high(created):
            self.checkpoint_recovery_points()  # a log that is not listed yet has no point
        self._add(created)
        logger.info(
            "Created log for partition %s in %s with properties {%s}.",
            topic_partition, directory, created.config,
        )  # fmt: skip
        return created

    def new_path(self, topic_partition: TopicPartition) -> Path:
        """The directory of a new log now: below the log directory with the fewest logs."""
        return self._emptiest / partition_directory(topic_partition)

    @property
    def _emptiest(self) -> Path:
        return min(self.directories, key=lambda path: self._log_counts[path])

    def delete(self, topic_partition: TopicPartition) -> bool:
        """Remove a partition's log and directory; False if there is none. At once, or, with
        `draw_unique`, after file.delete.delay.ms, during which the directory is renamed.
        FileRefused, StorageError: the log has ended, and its directory is left for the next
        call."""
        removed = self.logs.pop(topic_partition, None)
        if removed is None:
            return self._delete_what_is_left(topic_partition)
        directory = removed.log_directory
        self._log_counts[directory] -= 1
        of_topic = self._topics[topic_partition.topic]
        of_topic.remove(removed)
        if not of_topic:
            del self._topics[topic_partition.topic]
            # The next topic of that name has its own.
            self._configs.pop(topic_partition.topic, None)
        self.cleaner_points.forget_deleted(directory, topic_partition)
        renamed = self._renamed(removed)
        # Noted before, in case the system refuses it.
        self._undeleted[topic_partition] = removed.directory
        removed.delete(renamed)
        del self._undeleted[topic_partition]
        self.unsynced_deletions.add(directory)
        if renamed is None:
            logger.info("Deleted log for partition %s in %s.", topic_partition, removed.directory)
        else:
            remove = partial(self._remove_directory, renamed, removed)
            self._background.run_later(self._default_config.file_delete_delay_ms, remove)
            logger.info(
                "Log for partition %s is renamed to %s and is scheduled for deletion",
                topic_partition,
                renamed,
            )
        return True

    def _delete_what_is_left(self, topic_partition: TopicPartition) -> bool:
        """Remove the directory that a refused call has left, if there is one: a new log of that
        name must not begin with its messages. Whether there was one; FileRefused, StorageError."""
        directory = self._undeleted.get(topic_partition)
        if directory is None:
            return False
        self._remove_directory(directory)
        del self._undeleted[topic_partition]
        self.unsynced_deletions.add(directory.parent)
        return True

    def sync_deletions(self) -> None:
        """Wait until the deletions so far are on disk: a power failure cannot bring a log back.
        FileRefused: the next call syncs what this one has not."""

        def sync(directory: Path) -> None:
            # Before the sync, during which there may be another deletion.
            self.unsynced_deletions.discard(directory)
            try:
                sync_directory(self.disk, directory)
            except FileRefused:
                self.unsynced_deletions.add(directory)
                raise

        in_each(sorted(self.unsynced_deletions), sync)

    def _renamed(self, removed: Log) -> Path | None:
        """The directory's new name; None if it is removed at once, as one whose new name would be
        too long."""
        if self._draw_unique is None:
            return None
        name = deleted_directory(removed.topic_partition, self._draw_unique())
        return None if len(name) > NAME_BYTES_MAX else removed.log_directory / name

    def _remove_directory(self, path: Path, _deleted: Log | None = None) -> None:
        """Remove the directory of a deleted log; the log, if given, keeps its files open."""
        with storage_errors("delete", path):
            self.disk.remove_tree(path)
        logger.info("Deleted %s, the directory of a deleted log.", path)

    def _add(self, one: Log) -> None:
        one.flush_times = self.flush_times
        self.logs[one.topic_partition] = one
        self._topics.setdefault(one.topic_partition.topic, set()).add(one)
        self._log_counts[one.log_directory] += 1

    def _has(self, directory: Path, topic_partition: TopicPartition) -> bool:
        """Whether the partition has a log, in that log directory."""
        found = self.logs.get(topic_partition)
        return found is not None and found.log_directory is directory

    def config_of(self, topic: str) -> LogConfig:
        """The configuration of a topic's logs: the broker's defaults with its overrides."""
        return self._configs.get(topic, self._default_config)

    def begin_config(self, topic: str) -> LogConfig:
        """Its `config_of`. From now on `is_configured` holds: a topic's configuration is about to
        be read, and then its logs are created."""
        return self._configs.setdefault(topic, self._default_config)

    def is_configured(self, topic: str) -> bool:
        """Whether changes of a topic's configuration apply: it has logs or is about to get some, or
        had a configuration when the broker started."""
        return topic in self._topics or topic in self._configs

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Apply a topic's changed overrides ({}: none) to its logs, present and future, until the
        last one is deleted."""
        config = self._default_config.from_stored(topic, overrides)
        self._configs[topic] = config
        for one in self._topics.get(topic, ()):
            one.config = config

    def truncate_to(
        self, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, CorruptLog | FileRefused]:
        """Checkpoint and truncate logs (the existing ones), in this order: a crash cannot leave a
        recovery point above offsets that were truncated and written again. The logs are flushed
        later. Returns those that could not be truncated, because they cannot be read or the system
        refused a file."""
        existing = {tp: offset for tp, offset in offsets.items() if tp in self.logs}
        former: dict[TopicPartition, int] = {}
        for topic_partition, offset in existing.items():
            found = self.logs[topic_partition]
            former[topic_partition] = found.recovery_point
            if offset < found.recovery_point:
                # Not `offset`: a wrapper around it is dropped as a whole.
                found.recovery_point = min(offset, found.base_offset_of(offset))
            self._lower_cleaner_point(found, offset)
        try:
            self._checkpoint_lower([self.logs[tp] for tp in existing])
        except FileRefused as error:
            return dict.fromkeys(existing, error.with_traceback(None))
        truncated: list[Log] = []
        refused: dict[TopicPartition, CorruptLog | FileRefused] = {}
        for topic_partition, offset in existing.items():
            found = self.logs[topic_partition]
            try:
                found.truncate_to(offset)
                self._lower_log_start(found.log_directory, topic_partition, found.log_start_offset)
                truncated.append(found)
                # What was on disk before, and stays, still is.
                found.recovery_point = min(former[topic_partition], found.log_end_offset)
            except (CorruptLog, FileRefused) as error:
                refused[topic_partition] = error.with_traceback(None)
        self._flush_later(iter(truncated))
        return refused

    def truncate_fully_and_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        """Checkpoint, then empty a log (if it exists) and continue it at `offset`; FileRefused with
        nothing done, StorageError."""
        found = self.logs.get(topic_partition)
        if found is not None:
            found.recovery_point = min(offset, found.recovery_point)
            self.cleaner_points.forget(found.log_directory, topic_partition)
            self._checkpoint_lower([found])
            found.truncate_fully_and_start_at(offset)
            self._lower_log_start(found.log_directory, topic_partition, offset)

    def _lower_log_start(self, directory: Path, topic_partition: TopicPartition, to: int) -> None:
        """Checkpoint the log starts if the file has a higher one of this log, before anything is
        appended there."""
        if self.log_starts.is_written_above(directory, topic_partition, to):
            self.checkpoint_log_starts()

    def _checkpoint_lower(self, logs: Iterable[Log]) -> None:
        """Checkpoint the recovery points if the file has a higher one of these logs. (0.8.2.2
        writes them all for each log that is emptied to follow its leader.)"""
        if any(map(self._is_checkpointed_too_high, logs)):
            self.checkpoint_recovery_points()

    def _lower_cleaner_point(self, one: Log, offset: int) -> None:
        """Offsets above `offset` will be written again and are not cleaned."""
        if offset <= one.log_end_offset:
            base_offset = one.base_offset_of(offset)
            self.cleaner_points.lower(one.log_directory, one.topic_partition, base_offset)

    def _is_checkpointed_too_high(self, one: Log) -> bool:
        """Whether the checkpoint has a recovery point above this log's: that of a deleted log of
        the same name, or from before an interrupted truncation. After another crash, messages
        appended below it would be trusted without a check. 0.8.2.2 leaves it so."""
        points = self._checkpointed.get(one.log_directory, {})
        return points.get(one.topic_partition, 0) > one.recovery_point

    # Periodic work

    def _in_turns(self, items: Iterable[T], size: int | None = None) -> Iterator[T]:
        """The items. `pause` is called after each `size` (LOGS_PER_TURN) of them but the last."""
        size = size or LOGS_PER_TURN
        for number, item in enumerate(items):
            if number and number % size == 0:
                self._pause()
            yield item

    def _logs_with_pauses(self) -> Iterator[Log]:
        """Every log that still exists. `pause` is called periodically, so logs may come and go."""
        for one in self._in_turns(list(self.logs.values())):
            if self.logs.get(one.topic_partition) is one:
                yield one

    def retain(self, committed: Committed = everything) -> int:
        """Delete expired segments in every log with retention, if they end at or below the offset
        that `committed` names; returns their number."""
        deleted = 0
        for one in self._logs_with_pauses():
            if one.config.deletes and not one.is_being_cleaned:
                kept = Retention(one.config.retention_limit_ms, one.config.retention_bytes)
                with _others_go_on(one):
                    deleted += one.delete_old_segments(kept, committed(one.topic_partition))
        return deleted

    def expire_producers(self, after_ms: int) -> None:
        """Forget the producers that have appended nothing for so long, and have no open
        transaction."""
        now_ms = self._clock.time_ms()
        for one in self._logs_with_pauses():
            one.records.producers.expire(now_ms, after_ms)

    def flush_dirty(self) -> int:
        """Start an fsync of each log whose flush.ms has passed, unless the last one started here is
        still running (they must not pile up on a slow disk); returns their number."""
        started = 0
        now_ms = self._clock.time_ms()
        for one in self._logs_with_pauses():
            if now_ms - one.last_flush_ms < one.config.flush_ms or one in self._flushing:
                continue
            flush = None
            with _others_go_on(one):
                flush = one.begin_flush()
            if flush is not None:
                self._flushing.add(one)
                self._background.flush_soon(flush.then(partial(self._flushing.discard, one)))
                started += 1
        return started

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery points of every directory; they are on disk on return."""
        points: dict[Path, dict[TopicPartition, int]] = {path: {} for path in self.directories}
        for topic_partition, one in self.logs.items():
            points[one.log_directory][topic_partition] = one.recovery_point

        def write(directory: LogDirectory) -> None:
            directory.recovery_points.write(points[directory.path])
            self._checkpointed[directory.path] = points[directory.path]

        in_each(self._directories, write)

    def checkpoint_log_starts(self) -> None:
        """Write where logs start after deletions of records; that is on disk on return."""
        self.log_starts.write(self.log_starts.outdated(self.logs.values()))

    def _open(self, path: Path, **known: int) -> Log:
        """Open a log; `known` as for Log."""
        config = self.config_of(parse_partition_directory(path).topic)
        return self._open_log(path, config, log_directory=self._shared[path.parent], **known)

    def _release(self) -> None:
        for directory in self._directories:
            directory.release()


@contextmanager
def _others_go_on(one: Log) -> Iterator[None]:
    """Log what the system refuses one of many logs; it is tried again in the next round."""
    try:
        yield
    except FileRefused as error:
        logger.warning("Log %s is left out this time: %s", one.name, error)
