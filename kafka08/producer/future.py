"""Futures of the new producer. They are small references into a batch; only the batch waits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka08 import kernel
from kafka08.errors import KafkaError
from kafka08.producer.batch import RecordBatch, first_late
from kafka08.producer.record import RecordMetadata
from kafka08.structs import NO_OFFSET, TopicPartition

if TYPE_CHECKING:
    from concurrent.futures import Future


class RecordFuture(kernel.MessageRef):
    """The result of one record; like concurrent.futures.Future, without cancelling.

    Created by the kernel: record `index` of the batch `owner`. Any number of threads may wait.
    """

    __slots__ = ()

    def done(self) -> bool:
        """Whether its result is known."""
        is_done: bool = self.owner.is_done
        return is_done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """The metadata of the stored record. Raises its error (an ApiError or ClientError), and
        TimeoutError if the result is not known within `timeout` seconds."""
        if not self.owner.wait(timeout):
            raise _unknown(self.owner)
        metadata: RecordMetadata = self.owner.metadata(self.index)
        return metadata

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """The error that `result` would raise; None if the record was stored. TimeoutError as
        there."""
        if not self.owner.wait(timeout):
            raise _unknown(self.owner)
        batch: RecordBatch = self.owner.place_of(self.index)[0]
        return batch.error

    def add_done_callback(self, callback: Callable[[RecordFuture], Any]) -> None:
        """Call `callback(self)` in the sender's thread once it is done, or at once if it is done.
        What the callback raises is logged; in the caller's thread, errors only."""
        self.owner.when_done(lambda: callback(self))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        """`result`, in asyncio."""
        if not self.done():
            yield from _until(self.add_done_callback)
        return self.result(0)

    def as_concurrent_future(self) -> Future[RecordMetadata]:
        """One of concurrent.futures with the same result, for `asyncio.wrap_future` and
        `concurrent.futures.wait`. Cancelling it does nothing: the record is sent already."""
        return _concurrent(self)

    def __repr__(self) -> str:
        batch, index = self.owner.place_of(self.index)
        state = "pending" if not batch.is_done else batch.error or f"at {batch.base_offset}+{index}"
        return f"<RecordFuture {batch.tp} {state}>"


class Stretch(NamedTuple):
    """Records of one call that are in one batch, from its record `start` on. `places` are their
    indexes in the call."""

    batch: RecordBatch
    start: int
    places: Sequence[int]

    def parts(self) -> Iterator[Stretch]:
        """Itself, once its batch is done; of one that was split those of its halves."""
        if self.batch.halves is None:
            yield self
            return
        first, second = self.batch.halves
        end = max(0, min(first.count - self.start, len(self.places)))
        if end:
            yield from Stretch(first, self.start, self.places[:end]).parts()
        if end < len(self.places):
            start = max(0, self.start - first.count)
            yield from Stretch(second, start, self.places[end:]).parts()


class Stored(NamedTuple):
    """Records with consecutive offsets, the first at `offset` (NO_OFFSET with acks=0). `places` are
    their indexes in the call."""

    tp: TopicPartition
    offset: int
    places: Sequence[int]


class BatchFuture:
    """The results of the records of one call. Any number of threads may wait."""

    __slots__ = ("_stretches",)

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._stretches = stretches

    def done(self) -> bool:
        """Whether the results of all records are known."""
        return all(stretch.batch.is_done for stretch in self._stretches)

    def result(self, timeout: float | None = None) -> list[Stored]:
        """The places where they were stored. When all are done, raises the first error if any;
        TimeoutError if they are not done within `timeout` seconds."""
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        return [
            Stored(
                s.batch.tp,
                NO_OFFSET if s.batch.base_offset == NO_OFFSET else s.batch.base_offset + s.start,
                s.places,
            )
            for s in self._parts()
        ]

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """The first error, None if all were stored. TimeoutError as for `result`."""
        return next((error for _, error in self.failures(timeout)), None)

    def failures(self, timeout: float | None = None) -> list[tuple[Sequence[int], KafkaError]]:
        """(indexes in the call, error) of records that were not stored, or might not have been;
        empty if all were. TimeoutError as for `result`."""
        late = first_late((stretch.batch for stretch in self._stretches), timeout)
        if late is not None:
            raise _unknown(late)
        return [(s.places, s.batch.error) for s in self._parts() if s.batch.error is not None]

    def _parts(self) -> Iterator[Stretch]:
        return chain.from_iterable(stretch.parts() for stretch in self._stretches)

    def add_done_callback(self, callback: Callable[[BatchFuture], Any]) -> None:
        """Call `callback(self)` once all are done, as RecordFuture does."""
        batches = [stretch.batch for stretch in self._stretches]
        left = iter(range(1, len(batches)))  # an iterator counts without a lock

        def one_is_done() -> None:
            if next(left, None) is None:
                callback(self)

        for batch in batches:
            batch.when_done(one_is_done)
        if not batches:
            callback(self)

    def __await__(self) -> Generator[Any, None, list[Stored]]:
        """`result`, in asyncio."""
        if not self.done():
            yield from _until(self.add_done_callback)
        return self.result(0)

    def as_concurrent_future(self) -> Future[list[Stored]]:
        """As RecordFuture's."""
        return _concurrent(self)


def _until(add_done_callback: Callable[[Callable[[Any], Any]], None]) -> Generator[Any, None, None]:
    """Wait for the call of a callback, which may come from another thread."""
    import asyncio  # only programs with a loop come here

    loop = asyncio.get_running_loop()
    called: asyncio.Future[None] = loop.create_future()

    def resolve() -> None:
        if not called.done():  # it may be cancelled
            called.set_result(None)

    def call_back(_: Any) -> None:
        if asyncio._get_running_loop() is loop:
            resolve()
        else:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(resolve)

    add_done_callback(call_back)
    yield from called


def _concurrent(future: Any) -> Future[Any]:
    from concurrent.futures import Future  # few programs need it

    made: Future[Any] = Future()
    made.set_running_or_notify_cancel()

    def resolve(done: Any) -> None:
        if (error := done.exception(0)) is None:
            made.set_result(done.result(0))
        else:
            made.set_exception(error)

    future.add_done_callback(resolve)
    return made


def _unknown(batch: RecordBatch) -> TimeoutError:
    return TimeoutError(f"{batch.tp}: the result of the record is not known in time")
