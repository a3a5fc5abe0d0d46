"""The partitions a member owns, and the commits it may make because it owns them.

A commit and a release never overlap: a released partition is not committed afterwards, and a
release waits for the commit in progress.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import Final

from kafka08.client.retry import RetryPolicy, retry
from kafka08.consumer.fetching.owned_partition import OwnedPartition, Sink
from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.consumer.zookeeper.offset_store import Offsets, OffsetStore
from kafka08.consumer.zookeeper.session import SessionGate
from kafka08.errors import KafkaError
from kafka08.listing import some_of
from kafka08.runtime import ClientRuntime
from kafka08.structs import NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

COMMIT_TIMEOUT_S: Final = 30.0
"""The longest wait of a commit, release or fetch for another one of the same member."""


class Ownership:
    """Thread-safe, except `take`, `give_up` and `drop`, which only the rebalancer's thread calls.

    store     used by one thread at a time: every call of it holds the lock
    streams   all streams of the member
    """

    def __init__(
        self,
        store: OffsetStore,
        gate: SessionGate,
        streams: Sequence[MemberStream],
        runtime: ClientRuntime,
    ) -> None:
        self._store = store
        self._gate = gate
        self._streams = streams
        self._runtime = runtime
        self._lock = runtime.lock()
        self._holder: object = None
        self._owned: Mapping[TopicPartition, OwnedPartition] = {}

    @property
    def assignment(self) -> Assignment:
        """partition → thread id of the stream that reads it."""
        return {tp: partition.thread_id for tp, partition in self._owned.items()}

    def thread_of(self, tp: TopicPartition) -> str | None:
        """Thread id of the stream that reads a partition; None if it is not owned."""
        owned = self._owned.get(tp)
        return None if owned is None else owned.thread_id

    def lags(self) -> Offsets:
        """The messages of each owned partition that were not returned yet, up to the high
        watermark of its last fetch. Partitions that were never fetched are left out."""
        behind = {p: p.consumed_offset for p in self._owned.values()}
        for stream in self._streams:
            handed_out = stream.handed_out()
            if handed_out is not None and handed_out[0] in behind:
                behind[handed_out[0]] = handed_out[1]
        return {
            p.topic_partition: max(0, p.high_watermark - offset)
            for p, offset in behind.items()
            if NO_OFFSET not in {p.high_watermark, offset}
        }

    def positions(self) -> Offsets:
        """The first unfinished offset of each owned partition. If the calling thread reads a
        stream, the message that it is processing counts as finished."""
        positions: dict[OwnedPartition, int] = {}
        for stream, mine in self._by_stream(self._owned.values()):
            positions |= stream.positions(mine)
        return {p.topic_partition: o for p, o in positions.items() if o != NO_OFFSET}

    def commit(
        self,
        offsets: Mapping[TopicPartition, int] | None = None,
        *,
        retries: int = 0,
        backoff_ms: int = 0,
    ) -> None:
        """Commit these offsets; None: the positions of all owned partitions. Retries `retries`
        times after errors that may pass, then raises the last one. SessionLost while the session is
        in doubt, ValueError for a partition that is not owned."""

        def attempt() -> None:
            with self._locked():
                if foreign := sorted((offsets or {}).keys() - self._owned.keys()):
                    raise ValueError(f"this member does not own {some_of(foreign)}")
                self._commit(self.positions() if offsets is None else dict(offsets))

        policy = RetryPolicy(retries + 1, backoff_ms, inf)  # 0.8: it counts, whatever a try takes
        retry(attempt, policy, self._runtime, what="committing offsets")

    def fetch_committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The committed offset of each of `partitions`; NO_OFFSET where there is none. Commits wait
        meanwhile. KafkaError if another commit takes too long."""
        with self._locked():
            return self._store.fetch(partitions)

    def start_over(self, partitions: Collection[TopicPartition]) -> None:
        """Commit offset 0 for partitions that were claimed: their topic was made again, and what is
        committed is of the former one. KafkaError as `fetch_committed`, and of the commit."""
        with self._locked():
            self._commit(dict.fromkeys(partitions, 0))

    def take(self, partitions: Collection[OwnedPartition]) -> None:
        """Own these partitions, which were claimed."""
        self._owned = {**self._owned, **{p.topic_partition: p for p in partitions}}

    def give_up(
        self,
        partitions: Collection[TopicPartition],
        *,
        commit: bool,
        on_revoked: Callable[[], object] = lambda: None,
    ) -> None:
        """Stop delivering these partitions, call `on_revoked`, which may still commit them, commit
        their finished messages if `commit`, and own them no longer. The caller deletes their
        znodes. A failed commit is logged: the next owner starts from the commit before it.
        KafkaError if another commit takes too long; then they continue to be delivered."""
        with self._locked():
            # Under the lock: a commit in progress ends before, and none of these follows.
            going = self._revoke(partitions)
        try:
            on_revoked()
            if commit:
                with self._locked():
                    self._commit({p.topic_partition: p.consumed_offset for p in going})
        except KafkaError as error:
            logger.warning("offsets were not committed before the release: %s", error)
        finally:
            self._forget(going)

    def between_commits(self, act: Callable[[Collection[TopicPartition]], None]) -> None:
        """Call `act` with the owned partitions while this member commits nothing. Does not call it
        while a commit is in progress or the session is in doubt. Only the rebalancer's thread may
        call this."""
        if not self._acquire(0.0):
            return
        try:
            if self._gate.is_open:
                act(list(self._owned))
        finally:
            self._release()

    def drop(self) -> None:
        """Own nothing any longer: the session is over, and other members may own it all by now. On
        return no commit of that session is in progress, so none can be mistaken for one of the
        next: KafkaError if one takes too long."""
        # Before the wait for a commit: nothing of these may be delivered any longer.
        going = self._revoke(list(self._owned))
        with self._locked():
            self._forget(going)

    def _revoke(self, partitions: Collection[TopicPartition]) -> list[OwnedPartition]:
        going = [self._owned[tp] for tp in sorted(partitions) if tp in self._owned]
        for stream, mine in self._by_stream(going):
            stream.revoke(mine)
        return going

    def _by_stream(
        self, partitions: Iterable[OwnedPartition]
    ) -> Iterator[tuple[MemberStream, list[OwnedPartition]]]:
        """Each stream that has some of them, with those."""
        by_sink: dict[Sink, list[OwnedPartition]] = {}
        for partition in partitions:
            by_sink.setdefault(partition.sink, []).append(partition)
        for stream in self._streams:
            if stream in by_sink:
                yield stream, by_sink[stream]

    def _forget(self, going: Collection[OwnedPartition]) -> None:
        gone = {partition.topic_partition for partition in going}
        self._owned = {tp: p for tp, p in self._owned.items() if tp not in gone}

    def _commit(self, offsets: Offsets) -> None:
        self._gate.check()
        if offsets:
            self._store.commit(offsets)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Held by one commit, release or fetch; KafkaError if another one takes too long."""
        if not self._acquire(COMMIT_TIMEOUT_S):
            raise KafkaError(
                "another commit or fetch of this member's offsets is in progress; try again when "
                "it has ended"
            )
        try:
            yield
        finally:
            self._release()

    def _acquire(self, timeout_s: float) -> bool:
        """False on timeout. A signal handler that has interrupted a commit of its own thread
        cannot wait for it: False, at once."""
        if self._holder is self._runtime.current_task() or not self._lock.acquire(
            timeout=timeout_s
        ):
            return False
        self._holder = self._runtime.current_task()
        return True

    def _release(self) -> None:
        self._holder = None
        self._lock.release()
