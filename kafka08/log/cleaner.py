"""LogCleaner: cleans the filthiest compacted log of a LogManager, one after the other.

It has no thread and no timer: its owner calls `clean_one` until no log is dirty, and again
after log.cleaner.backoff.ms. Several callers (log.cleaner.threads) get different logs.
Source: kafka.log.LogCleaner and kafka.log.LogCleanerManager 0.8.2.2.
"""

from __future__ import annotations

import logging

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import FileRefused
from kafka08.log import crashpoints
from kafka08.log.cleaner_pass import (
    CleanerPass,
    CleaningAborted,
    CleaningFailed,
    RunNative,
    run_here,
    sealed_facts,
)
from kafka08.log.cleaner_plan import (
    CleanerConfig,
    DirtyLog,
    filthiest,
    first_dirty_offset,
    measure,
)
from kafka08.log.cleaner_stats import CleanerStats
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.retention import Committed, everything
from kafka08.log.throttle import Throttle
from kafka08.structs import TopicPartition

logger = logging.getLogger("kafka.log.LogCleaner")


class LogCleaner:
    """Cleans the logs of `manager` whose cleanup.policy is compact.

    committed     partition → the offset below which it will never be truncated: its high watermark
                  on disk. Messages above it are ignored: a truncation may remove the one that
                  superseded another, and followers compare what lies above it with their copies
    native        runs the jobs that read, map and copy, without blocking the event loop
    throttle      shared by all cleanings; None: no limit

    messages_unkeyed   number of messages dropped so far because they had no key
    last_stats         of the last finished cleaning, None before

    A log that cannot be cleaned is skipped, with an error that says why, until it has rolled
    another segment; the other logs are still cleaned. (0.8.2.2's cleaner thread dies.)
    """

    def __init__(
        self,
        manager: LogManager,
        config: CleanerConfig,
        *,
        committed: Committed = everything,
        clock: Clock = SYSTEM_CLOCK,
        throttle: Throttle | None = None,
        native: RunNative = run_here,
        crash: crashpoints.CrashPoint = crashpoints.never,
    ) -> None:
        self._manager = manager
        self._config = config
        self._committed = committed
        self._clock = clock
        self._throttle = throttle or Throttle(float("inf"), clock)
        self._native = native
        self._crash = crash
        self._in_progress: set[TopicPartition] = set()
        self._set_aside: dict[TopicPartition, tuple[Log, int]] = {}
        self.messages_unkeyed = 0
        self.last_stats: CleanerStats | None = None

    @property
    def uncleanable(self) -> int:
        """The number of logs that could not be cleaned and are skipped until they roll."""
        return len(self._set_aside)

    def clean_one(self) -> bool:
        """Try to clean the log that needs it most; False if none does.

        May switch. StorageError if a disk failed in the middle of a swap: the broker must stop.
        """
        dirty = self.filthiest()
        if dirty is None:
            return False
        topic_partition = dirty.topic_partition
        one = self._manager.logs[topic_partition]
        self._in_progress.add(topic_partition)
        try:
            # Retention waits: it must not take a segment away that is being copied.
            one.is_being_cleaned = True
            self._clean(one, dirty.first_dirty_offset)
        except CleaningAborted:
            logger.info("The cleaning for partition %s is aborted", topic_partition)
        except (CleaningFailed, FileRefused) as error:
            logger.error("Cannot clean log for partition %s: %s", topic_partition, error)
            self._set_aside[topic_partition] = one, one.active_base_offset
        finally:
            one.is_being_cleaned = False
            self._in_progress.discard(topic_partition)
        return True

    def filthiest(self) -> DirtyLog | None:
        """The log to clean next: compacted, not being cleaned, its dirty ratio the highest and
        above its min.cleanable.dirty.ratio. None if there is none."""
        self._forget_deleted()
        return filthiest(
            (self._measure(topic_partition, one), one.config.min_cleanable_dirty_ratio)
            for topic_partition, one in self._manager.logs.items()
            if one.config.compact
            and topic_partition not in self._in_progress
            and self._set_aside.get(topic_partition) != (one, one.active_base_offset)
        )

    def _forget_deleted(self) -> None:
        """Drop the entries of deleted logs; a new log of the same name must not inherit them."""
        logs = self._manager.logs
        self._set_aside = {
            topic_partition: (one, offset)
            for topic_partition, (one, offset) in self._set_aside.items()
            if logs.get(topic_partition) is one
        }

    def _measure(self, topic_partition: TopicPartition, one: Log) -> DirtyLog:
        point = self._manager.cleaner_points.get(one.log_directory, topic_partition)
        first_dirty = first_dirty_offset(point, one.first_base_offset, one.active_base_offset)
        facts = sealed_facts(one, self._end_offset(one, first_dirty))
        return measure(topic_partition, facts, first_dirty)

    def _end_offset(self, one: Log, first_dirty: int) -> int:
        """The end of a cleaning: the last stable offset, or the start of the first dirty segment
        that is younger than min.compaction.lag.ms."""
        end_offset = self._committed(one.topic_partition)
        producers = one.records.producers
        end_offset = producers.last_stable_offset(end_offset, one.log_start_offset)
        lag_ms = one.config.min_compaction_lag_ms
        if lag_ms <= 0:
            return end_offset
        horizon_ms = self._clock.time_ms() - lag_ms
        start = one.base_offset_of(first_dirty)
        younger = (
            segment.base_offset
            for segment in one.sealed_segments
            if segment.base_offset >= start and segment.newest_ms > horizon_ms
        )
        return min(end_offset, next(younger, end_offset))

    def _clean(self, one: Log, first_dirty: int) -> None:
        cleaning = CleanerPass(
            one,
            first_dirty,
            self._config,
            end_offset=self._end_offset(one, first_dirty),
            clock=self._clock,
            throttle=self._throttle,
            native=self._native,
            crash=self._crash,
        )
        end_offset = cleaning.run()
        self._set_aside.pop(one.topic_partition, None)
        self._manager.cleaner_points.record(one.log_directory, one.topic_partition, end_offset)
        self.last_stats = stats = cleaning.stats
        logger.info("%s", stats)
        if stats.messages_unkeyed:
            self.messages_unkeyed += stats.messages_unkeyed
            logger.warning(
                "Dropped %d messages without a key from compacted log %s",
                stats.messages_unkeyed,
                one.name,
            )
