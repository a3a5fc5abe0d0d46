"""Committer: the thread that sends a KafkaConsumer's commits to the coordinator, one request at a
time.

So an earlier commit never overwrites a later one. The commits that queue meanwhile share the next
request, with the last offset of each partition: an application may commit faster than the
coordinator responds. Each commit carries the generation in which it was requested. After the group
has started another generation, the coordinator rejects the commit (errors 22, 25, 27), so it cannot
overwrite the commits of the partition's next owner.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kafka08.client.cluster import COORDINATOR_TRIES, ClusterClient
from kafka08.client.committed import error_codes
from kafka08.client.requests import (
    commit_request,
    committed_request,
    committed_results,
    stable_version,
)
from kafka08.client.retry import RetryPolicy, is_retriable_at_coordinator
from kafka08.consumer.group.membership import FENCED, NO_GENERATION, PASSING, Generation
from kafka08.errors import (
    NO_ERROR,
    CommitFailed,
    FencedInstanceId,
    KafkaError,
    RebalanceInProgress,
    UnstableOffsetCommit,
    check,
    error_of,
)
from kafka08.network.connection import Connection
from kafka08.protocol.offset_commit import INSTANCE_VERSION, OffsetCommitRequest
from kafka08.protocol.offset_fetch import OffsetFetchResponse
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.runtime import ClientRuntime, Task
from kafka08.structs import NO_OFFSET, OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback: TypeAlias = Callable[[Offsets, KafkaError | None], object]
"""Gets the offsets of the commit, and its error or None. A later poll or commit calls it."""
COMMIT_VERSION: Final = 2
ONCE: Final = RetryPolicy(tries=1)
MEMBER_REFUSED: Final = frozenset({*FENCED, FencedInstanceId.code, RebalanceInProgress.code})
"""Codes that mean the member, and so every partition of the request."""


@dataclass(slots=True, eq=False)
class Commit:
    """A commit in progress.

    give_up_at   retriable failures are retried until then (monotonic seconds)
    is_done      the commit has ended; `error` is None if it succeeded
    """

    offsets: Offsets
    generation: Generation
    callback: CommitCallback | None = None
    give_up_at: float = 0.0
    error: KafkaError | None = None
    is_done: bool = False


class Committer:
    """See the module. All callbacks run in the thread of this object.

    on_refused  called with an error code that concerns the member, and the commit's generation
    on_done     called when a commit has ended
    on_idle     called after each `idle_s` without a commit: an automatic commit may be due
    timeout_ms  the timeout of a response. The search for the coordinator ends after it too, or at
                `give_up_at` of the last commit: later commits wait behind it
    """

    def __init__(
        self,
        cluster: ClusterClient,
        group: str,
        *,
        on_refused: Callable[[int, Generation], None],
        on_done: Callable[[Commit], None],
        on_idle: Callable[[], None],
        idle_s: float,
        backoff_s: float,
        timeout_ms: int,
        runtime: ClientRuntime,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._on_refused = on_refused
        self._on_done = on_done
        self._on_idle = on_idle
        self._idle_s = idle_s
        self._backoff_s = backoff_s
        self._timeout_ms = timeout_ms
        self._runtime = runtime
        self._condition = runtime.condition()
        self._commits: deque[Commit] = deque()
        self._task: Task | None = None
        self._stopping = False

    def submit(self, commit: Commit) -> None:
        """Queue a commit behind the others. Never blocks."""
        with self._condition:
            self._commits.append(commit)
            self._condition.notify_all()
        self.start()

    def start(self) -> None:
        """Start the thread, which also calls `on_idle`."""
        with self._condition:
            if self._task is None:
                name = f"kafka08-commit-{self._group}"
                self._task = self._runtime.spawn(self._run, name=name)

    def stop(self) -> None:
        """Send the queued commits without retries, then end."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        if self._task is not None:
            self._task.join(timeout_s)

    def _next(self) -> list[Commit]:
        """The oldest queued commits that one request can carry: of one generation, and only the
        last of them may be retried, since it has the newest offsets. None of them after `idle_s`
        without one, or when stopping."""
        with self._condition:
            if not self._commits and not self._stopping:
                self._condition.wait(self._idle_s)
            found: list[Commit] = []
            while self._commits and (
                not found
                or (self._commits[0].generation == found[0].generation and not found[-1].give_up_at)
            ):
                found.append(self._commits.popleft())
            return found

    def _run(self) -> None:
        while True:
            commits = self._next()
            if not commits:
                if self._stopping:
                    return
                self._on_idle()
                continue
            try:
                self._send_with_retries(commits)
            except Exception as error:
                # The root of a thread: callers that wait for a commit must learn of it.
                logger.exception("[group %s] Uncaught error in a commit", self._group)
                for commit in commits:
                    commit.error = KafkaError(f"uncaught error in a commit: {error!r}")
            for commit in commits:
                commit.is_done = True
                self._on_done(commit)

    def _send_with_retries(self, commits: Sequence[Commit]) -> None:
        """Send them together, then the last one alone until it is too late. Sets their errors."""
        last = commits[-1]
        self._send(commits)
        while (error := last.error) is not None:
            late = self._runtime.monotonic() + self._backoff_s >= last.give_up_at
            if late or self._stopping or not is_retriable_at_coordinator(error):
                return
            logger.info("[group %s] Commit failed: %s; retrying", self._group, error)
            with self._condition:
                self._condition.wait_for(lambda: self._stopping, self._backoff_s)
            self._send([last])

    def _send(self, commits: Sequence[Commit]) -> None:
        """Send once, and set the error of each: CommitFailed if the group has started another
        generation."""
        search_until = self._runtime.monotonic() + self._timeout_ms / 1000
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for commit in commits:
            offsets |= commit.offsets
        generation = commits[0].generation
        request = commit_request(self._group, offsets, "kafka")
        request.instance_id = generation.instance_id
        request.generation = generation.id
        request.member = generation.member_id
        responded = False

        def ask(connection: Connection) -> None:
            nonlocal responded
            request.version = member_commit_version(connection.versions, generation)
            response = connection.send(request, timeout_ms=self._timeout_ms)
            codes = error_codes(response, "kafka")
            responded = True
            if generation.id != NO_GENERATION:
                for code in MEMBER_REFUSED & set(codes.values()):
                    self._on_refused(code, generation)
            for commit in commits:
                commit.error = self._error_of(commit, codes)
            errors = [commit.error for commit in commits if commit.error is not None]
            if errors:  # raised, for the cluster may have to look for the coordinator again
                raise min(errors, key=lambda error: not is_retriable_at_coordinator(error))

        try:
            self._cluster.ask_coordinator(
                self._group,
                ask,
                policy=ONCE,
                give_up_at=commits[-1].give_up_at or search_until,
            )
        except KafkaError as error:
            # After a response each commit has an error of its own, or none.
            if not responded:
                for commit in commits:
                    commit.error = error

    def _error_of(self, commit: Commit, codes: Mapping[TopicPartition, int]) -> KafkaError | None:
        """The worst error of the commit's own partitions."""
        refused = {tp: code for tp in commit.offsets if (code := codes.get(tp, NO_ERROR))}
        if not refused:
            return None
        worst = min(refused, key=lambda tp: (refused[tp] in PASSING, tp))
        code = refused[worst]
        error = error_of(code, f"commit of {worst} for group {self._group}")
        assert error is not None
        if code not in MEMBER_REFUSED or code == FencedInstanceId.code:
            return error
        if commit.generation.id != NO_GENERATION:
            return _caused_by(error, fenced(self._group, error))
        return _caused_by(
            error,
            CommitFailed(f"{error}. The group has members; stop them, or commit as one of them"),
        )


def member_commit_version(versions: VersionRanges, generation: Generation) -> int:
    """The version of a member's commit: the later one has leader epochs and static members."""
    has_epochs = versions.serves_beyond(OffsetCommitRequest, INSTANCE_VERSION - 1)
    return INSTANCE_VERSION if has_epochs or generation.instance_id is not None else COMMIT_VERSION


def _caused_by(cause: KafkaError, error: KafkaError) -> KafkaError:
    error.__cause__ = cause
    return error


def fenced(group: str, error: KafkaError | None = None) -> CommitFailed:
    """The error for a commit of an earlier generation."""
    cause = "" if error is None else f" ({error})"
    return CommitFailed(
        f"group {group} has started another generation{cause}: nothing was committed, and the "
        "messages since the last commit will be delivered again. If that happens often, raise "
        "max.poll.interval.ms or lower max.poll.records"
    )


def fetch_committed(
    cluster: ClusterClient,
    group: str,
    partitions: list[TopicPartition],
    policy: RetryPolicy,
    search_tries: int = COORDINATOR_TRIES,
    give_up_at: float | None = None,
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """partition → the group's committed offset; None without one. Raises the first error. For
    `policy` and what follows it see ClusterClient.ask_coordinator."""

    def ask(connection: Connection) -> dict[TopicPartition, OffsetAndMetadata | None]:
        found = ask_committed(connection, group, partitions)
        for unstable in found.unstable.values():
            raise unstable
        return found.offsets

    return cluster.ask_coordinator(
        group, ask, policy=policy, search_tries=search_tries, give_up_at=give_up_at
    )


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The committed offsets of a group.

    offsets    partition → its offset, None without one
    unstable   partitions of which an open transaction has a later one: who began at the present one
               would read again what the transaction has read
    """

    offsets: dict[TopicPartition, OffsetAndMetadata | None]
    unstable: dict[TopicPartition, UnstableOffsetCommit]


def ask_committed(
    connection: Connection, group: str, partitions: list[TopicPartition]
) -> CommittedOffsets:
    """The offsets that the coordinator knows. Raises the first error of another kind."""
    request = committed_request(group, partitions, "kafka")
    request.version = stable_version(connection.versions)
    response = connection.send(request)
    assert isinstance(response, OffsetFetchResponse)
    check(response.error_code, f"committed offsets of group {group}")
    results = committed_results(response)
    found = CommittedOffsets({}, {})
    for tp in partitions:
        committed = results.get(tp)
        code = NO_ERROR if committed is None else committed.error_code
        error = error_of(code, f"committed offset of {tp} in group {group}")
        if isinstance(error, UnstableOffsetCommit):
            found.unstable[tp] = UnstableOffsetCommit(
                f"group {group} has a later offset of {tp} in a transaction that has not ended"
            )
        elif error is not None:
            raise error
        elif committed is None or committed.offset == NO_OFFSET:
            found.offsets[tp] = None
        else:
            found.offsets[tp] = OffsetAndMetadata(
                committed.offset, committed.metadata, leader_epoch=committed.leader_epoch
            )
    return found
