"""The partitions a member owns, and the commits it may make because it owns them.

A commit and a release never overlap: what was given up is not committed afterwards, and a release
waits for the commit under way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from kafka08.client.retry import RetryPolicy, retry
from kafka08.consumer.assignors import Assignment
from kafka08.consumer.offset_store import Offsets, OffsetStore
from kafka08.consumer.progress import OwnedPartition, Sink
from kafka08.consumer.session import SessionGate
from kafka08.consumer.stream import MemberStream
from kafka08.errors import KafkaError
from kafka08.runtime import ClientRuntime
from kafka08.structs import NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

COMMIT_PATIENCE_S: Final = 30.0
"""How long a commit, release or fetch of offsets waits for another one of the same member."""


class Ownership:
    """Thread-safe, but for `take`, `give_up` and `drop`, which one thread (the rebalancer) calls.

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
        """What is owned now, and by which stream."""
        return {tp: partition.thread_id for tp, partition in self._owned.items()}

    def lags(self) -> Offsets:
        """How many messages of each owned partition were not handed out yet, by the high watermark
        of its last fetch; without those that were not fetched yet."""
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
        """The first offset of each owned partition that is not finished. The message in the hand of
        the calling thread, if it reads a stream, counts as finished."""
        positions: dict[OwnedPartition, int] = {}
        for stream, mine in self._by_stream(self._owned.values()):
            positions |= stream.positions(mine)
        return {p.topic_partition: o for p, o in positions.items() if o != NO_OFFSET}

    def commit(self, *, retries: int = 0, backoff_ms: int = 0) -> None:
        """Commit the positions of everything owned. Errors that may pass are tried again `retries`
        times; the last one is raised. SessionLost while the session is in doubt."""

        def attempt() -> None:
            with self._locked():
                self._commit(self.positions())

        retry(
            attempt, RetryPolicy(retries + 1, backoff_ms), self._runtime, what="committing offsets"
        )

    def fetch_committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The committed offset of each of `partitions`; NO_OFFSET where there is none. Commits wait
        meanwhile. KafkaError while another commit does not end."""
        with self._locked():
            return self._store.fetch(partitions)

    def take(self, partitions: Collection[OwnedPartition]) -> None:
        """These were claimed."""
        self._owned = {**self._owned, **{p.topic_partition: p for p in partitions}}

    def give_up(self, partitions: Collection[TopicPartition], *, commit: bool) -> None:
        """Stop delivering these partitions, commit how far they were finished if `commit`, and own
        them no more. Their znodes are the caller's business. A failed commit is logged: whoever
        owns them next starts from the one before. KafkaError while another commit does not end;
        they are delivered as before then."""
        with self._locked():
            going = self._revoke(partitions)
            try:
                if commit:
                    self._commit({p.topic_partition: p.consumed_offset for p in going})
            except KafkaError as error:
                logger.warning("offsets were not committed before the release: %s", error)
            finally:
                self._forget(going)

    def between_commits(self, act: Callable[[Collection[TopicPartition]], None]) -> None:
        """Call `act` with what is owned, while this member commits nothing; not at all while a
        commit is under way, or the session is in doubt. In the thread that takes and gives up."""
        if not self._acquire(0.0):
            return
        try:
            if self._gate.is_open:
                act(list(self._owned))
        finally:
            self._release()

    def drop(self) -> None:
        """Own nothing any more: the session is over, and others may own it all by now. Afterwards
        no commit of that session is under way, so none can pass for one of the next: KafkaError
        while one does not end."""
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
        """For one commit, release or fetch; KafkaError when another one does not end."""
        if not self._acquire(COMMIT_PATIENCE_S):
            raise KafkaError("another commit or fetch of this member's offsets is under way")
        try:
            yield
        finally:
            self._release()

    def _acquire(self, patience_s: float) -> bool:
        """False if that took too long. A signal handler that has interrupted a commit of its own
        thread cannot wait for it: False, at once."""
        if self._holder is self._runtime.current_task() or not self._lock.acquire(
            timeout=patience_s
        ):
            return False
        self._holder = self._runtime.current_task()
        return True

    def _release(self) -> None:
        self._holder = None
        self._lock.release()
