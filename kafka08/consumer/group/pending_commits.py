"""PendingCommits: the commits that the user's thread has requested, until their callbacks return.

The Committer's thread sends them, the oldest first. A commit that has ended waits for the user's
thread, which calls its callback in a later poll or commit. Automatic commits are among them: one is
due after each auto.commit.interval.ms, unless another commit is in flight then.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

from kafka08.client.cluster import ClusterClient
from kafka08.consumer.group.committer import Commit, CommitCallback, Committer, Offsets, fenced
from kafka08.consumer.group.interceptors import Interceptors
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.group.membership import Generation
from kafka08.errors import Closed, KafkaError
from kafka08.runtime import ClientRuntime
from kafka08.structs import OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)


class PendingCommits:
    """See the module. All methods are for the user's thread.

    is_automatic   whether the consumer commits by itself
    generation     returns the one that a commit carries now
    is_accepted    returns whether the group accepts a commit now, as far as is known here
    on_refused     see Committer
    on_change      called in the committer's thread: a commit has ended, or one may be due
    """

    def __init__(
        self,
        cluster: ClusterClient,
        config: KafkaConsumerConfig,
        interceptors: Interceptors,
        *,
        generation: Callable[[], Generation],
        is_accepted: Callable[[], bool],
        on_refused: Callable[[int, Generation], None],
        on_change: Callable[[], None],
        timeout_ms: int,
        runtime: ClientRuntime,
    ) -> None:
        self._group = config.group_id
        self._interval_s = config.auto_commit_interval_ms / 1000
        self._interceptors = interceptors
        self._generation = generation
        self._is_accepted = is_accepted
        self._on_change = on_change
        self._runtime = runtime
        self._committer = Committer(
            cluster,
            config.group_id,
            on_refused=on_refused,
            on_done=self._ended,
            on_idle=on_change,
            idle_s=max(0.001, self._interval_s),
            backoff_s=config.retry_backoff_ms / 1000,
            timeout_ms=timeout_ms,
            runtime=runtime,
        )
        self._in_flight: dict[Commit, None] = {}
        """Commits that were submitted and have not ended, the oldest first."""
        self._done: deque[Commit] = deque()
        """Commits whose callbacks have not been called yet."""
        self.is_automatic = config.enable_auto_commit and bool(config.group_id)
        self._due_at = inf
        """When the next automatic commit is due (monotonic seconds)."""
        self._has_failed = False
        """Whether the last automatic commit has failed."""

    @property
    def are_in_flight(self) -> bool:
        """Whether a commit has not ended."""
        return bool(self._in_flight)

    def partitions(self) -> set[TopicPartition]:
        """The partitions of commits that have not ended."""
        return {tp for commit in list(self._in_flight) for tp in commit.offsets}

    def submit(
        self, offsets: Offsets, callback: CommitCallback | None = None, give_up_at: float = 0.0
    ) -> Commit:
        """Commit these, and retry until `give_up_at`. Never blocks."""
        commit = Commit(offsets, self._generation(), callback, give_up_at)
        if not offsets:
            commit.is_done = True
            self._done.append(commit)
        elif not self._is_accepted():
            commit.is_done, commit.error = True, fenced(self._group)
            self._done.append(commit)
        else:
            try:
                self._in_flight[commit] = None
                self._committer.submit(commit)
            except BaseException:  # a signal handler's, also between the two
                self._in_flight.pop(commit, None)
                raise
        return commit

    def submit_automatic(self, offsets: Offsets) -> None:
        """Commit these without a retry; a failure is logged."""
        self.submit(offsets, self._committed_by_itself)

    def run_callbacks(self) -> None:
        """Call the callbacks of the commits that have ended."""
        while self._done:
            commit = self._done.popleft()
            if commit.error is None and commit.offsets:
                self._interceptors.on_commit(commit.offsets)
            if commit.callback is not None:
                commit.callback(commit.offsets, commit.error)

    def begin_interval(self) -> None:
        """The next automatic commit is due an interval from now."""
        if self.is_automatic:
            self._due_at = self._runtime.monotonic() + self._interval_s
            self._committer.start()

    def commit_if_due(self, offsets: Callable[[], Offsets]) -> None:
        """Commit these automatically if that is due."""
        if self._runtime.monotonic() < self._due_at or self._in_flight:
            return
        self.begin_interval()
        if self._is_accepted():
            self.submit_automatic(offsets())

    def stop(self) -> None:
        """Send the submitted commits without retries, then end."""
        self._committer.stop()

    def join(self, timeout_s: float) -> None:
        """Wait until the committer's thread has ended."""
        self._committer.join(timeout_s)

    def end_all(self) -> None:
        """The connections are closed: call the callbacks of the commits that this has ended and,
        with Closed, of those that still wait for a connection."""
        closed = Closed("the consumer was closed before the coordinator responded")
        self._done += [replace(commit, error=closed) for commit in list(self._in_flight)]
        self.run_callbacks()

    def _ended(self, commit: Commit) -> None:
        """A commit has ended. Runs in the committer's thread."""
        self._done.append(commit)
        self._in_flight.pop(commit, None)
        self._on_change()

    def _committed_by_itself(self, _: Offsets, error: KafkaError | None) -> None:
        """Log the first of successive failures as a warning; the next interval retries."""
        if error is not None:
            level = logging.INFO if self._has_failed else logging.WARNING
            logger.log(level, "[group %s] Automatic commit: %s", self._group, error)
        self._has_failed = error is not None


def offsets_of(positions: Mapping[TopicPartition, int]) -> Offsets:
    """Positions as offsets to commit, without metadata."""
    return {tp: OffsetAndMetadata(offset) for tp, offset in positions.items()}


def log_failure(offsets: Offsets, error: KafkaError | None) -> None:
    """The callback of commits that have none."""
    if error is not None:
        logger.warning("Commit of %d partitions failed: %s", len(offsets), error)
