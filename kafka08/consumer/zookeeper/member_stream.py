"""MemberStream: the stream behind a KafkaStream.

*Fast and exact.* The reader's loop runs in the kernel, in its own thread, with no lock
(StreamIterator): a thread that revokes stops it between two messages. Everything else (a new set,
waiting, errors) happens under the condition. No decoder is called there: a slow one would delay a
thread that revokes or closes.

*Finished.* A message is finished when the next one of its stream is requested; the message that
the committing thread is processing counts as finished.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, Final, Protocol, TypeVar

from kafka08 import kernel
from kafka08.consumer.fetching.batch import Batches, BatchLimits, MessageBatch
from kafka08.consumer.fetching.stream import UNREADABLE, Decoder, FetchedStream
from kafka08.errors import ConsumerTimeout, KafkaError
from kafka08.kernel import MessageAndMetadata
from kafka08.runtime import ClientRuntime
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T", bool, MessageBatch)

FENCE_TIMEOUT_S: Final = 10.0
"""The longest that a rebalance or shutdown waits for a reader that is busy in a decoder."""
IDLE_CHECK_S: Final = 0.5
"""How often a waiting reader checks the session."""


class Supervisor(Protocol):
    """The connector, as a stream sees it."""

    def deadline(self) -> float:
        """Monotonic time until which messages may be returned."""

    def stall(self) -> tuple[int, KafkaError | None]:
        """The number of the latest stall and its cause; None while there is none."""


class MemberStream(FetchedStream):
    """A member's side of a stream. Its reader, one thread at a time, iterates it and its `batches`;
    the fetchers offer sets, the rebalancer revokes partitions, the connector closes it.
    KafkaStream describes what the reader sees.
    """

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        runtime: ClientRuntime,
        timeout_ms: int = -1,
        capacity: int = 2,
        fetch_bytes: int = 0,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
        on_room: Callable[[], None] = lambda: None,
        timestamps: bool = False,
    ) -> None:
        """`timeout_ms` < 0: wait for ever. The others as for FetchedStream."""
        super().__init__(
            runtime=runtime,
            capacity=capacity,
            fetch_bytes=fetch_bytes,
            key_decoder=key_decoder,
            value_decoder=value_decoder,
            on_room=on_room,
            timestamps=timestamps,
        )
        self._supervisor = supervisor
        self._timeout_ms = timeout_ms
        self._timeout_s = inf if timeout_ms < 0 else timeout_ms / 1000
        self._stall_seen = 0

    def __iter__(self) -> kernel.StreamIterator:
        return self._iterator

    def loop(self, owner: object) -> kernel.StreamLoop:
        """An iterator that keeps `owner` alive."""
        return kernel.StreamLoop(self._iterator, owner)

    def __next__(self) -> MessageAndMetadata[Any, Any]:
        return next(self._iterator)

    def _find_more(self, give_up_at: float | None) -> float:
        """Wait until the iterator can go on. Returns when to give up, see StreamIterator."""
        damage = self._iterator.damage
        if damage is not None and not isinstance(damage, UNREADABLE):  # the user's decoder
            self._iterator.damage = None
            try:
                raise damage
            finally:
                del damage  # its traceback has this frame: together they would be a cycle
        now = self._monotonic()
        if give_up_at is None:
            give_up_at = now + self._timeout_s
        elif now >= give_up_at and self._iterator.damage is None:
            # New sets, but without a message to return.
            raise self._timeout()
        self._next_slowly(self._find_messages, give_up_at)
        return give_up_at

    def batches(
        self,
        max_messages: int = BatchLimits().max_messages,
        max_bytes: int = BatchLimits().max_bytes,
        owner: object = None,
    ) -> Batches:
        """The messages in batches, each of one partition, instead of one by one. The iterator keeps
        `owner` alive."""
        limits = BatchLimits(max_messages, max_bytes)
        limits.check()
        # No partial: after the call of one a signal handler may raise, and the batch would be lost.
        return Batches(lambda: self._next_batch(limits), owner)

    def _next_batch(self, limits: BatchLimits) -> MessageBatch:
        give_up_at = self._monotonic() + self._timeout_s
        before = self._batch
        try:
            return self._next_slowly(partial(self._take_batch, limits), give_up_at)
        except BaseException:
            self._take_back_batch(before)
            raise

    def _next_slowly(self, take: Callable[[], T | None], give_up_at: float) -> T:
        """The result of `take`, as soon as it is not None; ConsumerTimeout after `give_up_at`."""
        self._check_process()
        with self._condition:
            self._reader = self._runtime.current_task()
            while True:
                if self._closed:
                    raise StopIteration
                self._raise_stall()
                if self._open():
                    taken = take()
                    if taken is not None:
                        return taken
                remaining = give_up_at - self._monotonic()
                if remaining <= 0:
                    raise self._timeout()
                self._waiting = True
                self._condition.wait(min(remaining, IDLE_CHECK_S))
                self._waiting = False

    def _timeout(self) -> ConsumerTimeout:
        return ConsumerTimeout(f"no message within {self._timeout_ms} ms")

    def _open(self) -> bool:
        """Let the iterator run until the session's deadline; False if that has passed."""
        iterator = self._iterator
        iterator.limit = self._supervisor.deadline()
        if self._supervisor.deadline() < iterator.limit:  # the session was suspended meanwhile
            iterator.limit = -inf
        return self._monotonic() < iterator.limit

    def _how_to_skip(self, topic_partition: TopicPartition, next_offset: int) -> str:
        """How to read on after a damaged message. Like 0.8.2.2, a broker accepts any bytes inside a
        compressed set whose own CRC is right, so all replicas may have the same damage."""
        topic, partition = topic_partition
        return (
            ". If that remains, continue after it: stop the group, then `kafka08 offsets set GROUP "
            f"{topic}:{partition}={next_offset}`"
        )

    def _raise_stall(self) -> None:
        number, cause = self._supervisor.stall()
        if cause is not None and number > self._stall_seen:
            self._stall_seen = number
            raise cause

    def pause(self) -> None:
        """Return no message until the supervisor's deadline allows it. Never waits."""
        self._iterator.limit = -inf

    def _fence(self) -> None:
        """Stop the reader's iterator; returns when the reader has left it."""
        self._iterator.limit = -inf
        if self._is_reader:
            return
        give_up_at = self._monotonic() + FENCE_TIMEOUT_S
        while self._iterator.busy:
            if self._monotonic() > give_up_at:
                logger.error(
                    "A decoder runs for more than %d s. Its partition is released now, and "
                    "another member may read the same message",
                    FENCE_TIMEOUT_S,
                )
                return
            self._runtime.sleep(0.0002)

    @property
    def _is_reader(self) -> bool:
        return self._reader is self._runtime.current_task()
