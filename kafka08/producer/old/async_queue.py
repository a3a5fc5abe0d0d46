"""The queue of producer.type=async, and its thread.

Source: kafka.producer.async.ProducerSendThread, kafka.producer.Producer.asyncSend 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.errors import FailedToSend, ProducerClosed, QueueFull
from kafka08.producer.old.callback_handler import CallbackHandler
from kafka08.producer.old.message_columns import MessageColumns, refused
from kafka08.producer.record import KeyedMessage
from kafka08.runtime import ClientRuntime

logger = logging.getLogger(__name__)

BACKLOG_BYTES: Final = 1 << 20
Handle = Callable[[Sequence[KeyedMessage]], None]


class QueueOutcome(NamedTuple):
    """Counts of the messages that have left the queue: those that were sent, and those that were
    given up; `error` is the first reason for that."""

    sent: int = 0
    lost: int = 0
    error: Exception | None = None

    def and_batch(self, count: int, lost: int = 0, error: Exception | None = None) -> QueueOutcome:
        """With one more batch."""
        return QueueOutcome(self.sent + count - lost, self.lost + lost, self.error or error)


class AsyncQueue:
    """Thread-safe. Messages wait until there are `batch_count` of them, or the first of them has
    waited `max_s`; then the queue's own thread passes them to `handle`, in order. If several full
    batches are waiting, it passes them together, up to BACKLOG_BYTES: the JVM passes them one by
    one, which here would cost three thread switches each.

    Only the first and the last message of a batch take the lock; the kernel adds the others to the
    batch that is being filled, as long as that has room.

    handle             sends messages and raises an error if it cannot; called by one thread
    hooks              called at every stage; None: no hooks
    max_count          most messages in the queue, without those that are being sent
    max_s              how long the first message of a batch waits, in seconds
    batch_count        messages of a full batch
    enqueue_timeout_s  how long `put` waits for room, in seconds; None: without limit, 0: not at all
    on_drop            called with the topic of a message that found no room
    """

    def __init__(
        self,
        handle: Handle,
        hooks: CallbackHandler | None,
        *,
        max_count: int,
        max_s: float,
        batch_count: int,
        enqueue_timeout_s: float | None,
        on_drop: Callable[[str], object],
        runtime: ClientRuntime,
    ) -> None:
        self._handle = handle
        self._on_drop = on_drop
        self._hooks = hooks
        self._max_count = max_count
        self._max_s = max_s
        self._enqueue_timeout_s = enqueue_timeout_s
        self._runtime = runtime
        self._full: deque[MessageColumns] = deque()
        self._full_count = 0
        """Messages of `_full`."""
        self._filling = kernel.ColumnBuffer(KeyedMessage, self._put)
        self._batch_count = batch_count
        self._lock = runtime.lock()
        self._changed = runtime.condition(self._lock)
        self._room = runtime.condition(self._lock)
        self._waiting = 0
        self._sending = 0
        """Messages of the batch that is being sent."""
        self._closed = False
        self.outcome = QueueOutcome()
        if hooks is None:
            # Saves a call per message.
            self.put = self._filling.put  # type: ignore[method-assign,assignment]
        self._task = runtime.spawn(self._run, name="ProducerSendThread-")

    @property
    def is_closed(self) -> bool:
        """Whether it accepts no more messages."""
        return self._closed

    @property
    def count(self) -> int:
        """Messages that wait."""
        return self._full_count + len(self._filling)

    def put(self, messages: KeyedMessage | Iterable[KeyedMessage]) -> None:
        """Add a message, or many one by one. Raises QueueFull without room for one of them in time,
        ProducerClosed, TypeError for an object that is no KeyedMessage, and the hooks' errors."""
        if not isinstance(messages, KeyedMessage):
            for message in messages:
                self.put(checked(message))
        elif self._hooks is None:
            self._filling.put(messages)
        else:
            self._put_with_hooks(messages, self._hooks)

    def close(self, timeout: float | None = None) -> int:
        """Accept no more messages, send the queued ones, end; waits for `timeout` seconds (None:
        without limit), except when it is called from a hook. Returns how many messages have not
        been sent then. May be called again."""
        with self._lock:
            self._closed = True
            self._filling.room = 0
            self._changed.notify()
            self._room.notify_all()
        if self._runtime.current_task() is not self._task:
            self._task.join(timeout)
        return self.count + self._sending

    def abandon(self) -> None:
        """In a process forked from its own: a `put` that was looked up before raises
        ProducerClosed."""
        self._lock = self._runtime.lock()  # the other one may be held by a thread of the parent
        self._room = self._changed = self._runtime.condition(self._lock)
        self._closed = True
        self._filling.room = 0

    def _put_with_hooks(self, message: KeyedMessage, hooks: CallbackHandler) -> None:
        message = checked(hooks.before_enqueue(message))
        try:
            self._filling.put(message)
        except QueueFull:
            hooks.after_enqueue(message, False)
            raise
        hooks.after_enqueue(message, True)

    def _put(self, messages: KeyedMessage | Iterable[KeyedMessage]) -> None:
        """`put` for what the kernel leaves: many messages, and one for which it has no room."""
        if not isinstance(messages, KeyedMessage):
            for message in messages:
                self._filling.put(checked(message))
            return
        with self._lock:
            self._await_room(messages)
            # The last message of a batch comes here too, to pass the batch on.
            limit = min(self._batch_count - 1, self._max_count - self._full_count)
            count = self._filling.admit(messages, limit)
            if count == self._batch_count:
                self._full.append(MessageColumns(self._filling.take()))
                self._full_count += count
            if count in (1, self._batch_count):
                self._changed.notify()

    def _await_room(self, message: KeyedMessage) -> None:
        """Wait for room, and keep it: until the lock is released, no thread adds anything. Threads
        are notified when the queue is half empty, so that they do not take turns for each message;
        on timeout any room is enough."""
        timeout_s = self._enqueue_timeout_s
        deadline = None if timeout_s is None else self._runtime.monotonic() + timeout_s
        self._filling.room = 0
        self._waiting += 1
        try:
            while self.count >= self._max_count and not self._closed:
                left = None if deadline is None else deadline - self._runtime.monotonic()
                if left is not None and left <= 0:
                    self._on_drop(message.topic)
                    raise QueueFull(
                        f"queue is full of {self._max_count} unsent messages, could not send "
                        f"{message!r} within {timeout_s} s (queue.enqueue.timeout.ms)"
                    )
                self._room.wait(left)
                # Another thread may have made room in the batch meanwhile.
                self._filling.room = 0
        finally:
            self._waiting -= 1
        if self._closed:
            raise ProducerClosed("the producer is closed")

    def _run(self) -> None:
        while batch := self._next_batch():
            self._sending = len(batch)
            self._send(batch)
            self._sending = 0
        logger.info("Shutdown ProducerSendThread complete")

    def _next_batch(self) -> MessageColumns:
        """Wait for a batch; empty if the queue is closed and empty."""
        with self._lock:
            while not self.count and not self._closed:
                self._changed.wait()
            deadline = self._runtime.monotonic() + self._max_s
            while not self._full and not self._closed:
                left = deadline - self._runtime.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            batch = self._take()
            if self._waiting and self.count <= self._max_count // 2:
                self._room.notify_all()
            return batch

    def _take(self) -> MessageColumns:
        """The full batches that can go together; without a full one, all messages."""
        if not self._full:
            return MessageColumns(self._filling.take())
        batch = self._full.popleft()
        size = size_of(batch)
        while self._full and size < BACKLOG_BYTES:
            further = self._full.popleft()
            size += size_of(further)
            batch.extend(further)
        self._full_count -= len(batch)
        return batch

    def _send(self, batch: MessageColumns) -> None:
        if self._hooks is not None:
            self._send_with_hooks(list(batch), self._hooks)
            return
        try:
            self._handle(batch)
        except Exception as error:  # noqa: BLE001 - the thread's root: an encoder's error must not end it
            self._give_up(batch, error)
        else:
            self.outcome = self.outcome.and_batch(len(batch))

    def _send_with_hooks(self, batch: list[KeyedMessage], hooks: CallbackHandler) -> None:
        batch = self._hooked("after_dequeue", hooks.after_dequeue, batch)
        batch = self._hooked("before_sending", hooks.before_sending, batch)
        try:
            if batch:
                self._handle(batch)
        except Exception as error:  # noqa: BLE001 - the thread's root, as above
            self._give_up(batch, error)
            self._hooked("on_error", partial(hooks.on_error, error=error), [*lost(batch, error)])
            return
        self.outcome = self.outcome.and_batch(len(batch))
        self._hooked("after_sending", hooks.after_sending, batch)

    def _give_up(self, batch: Sequence[KeyedMessage], error: Exception) -> None:
        expected = isinstance(error, FailedToSend)  # its text says all
        text = "Error in handling batch of %d events: %s"
        logger.error(text, len(batch), error, exc_info=None if expected else error)
        self.outcome = self.outcome.and_batch(len(batch), len(lost(batch, error)), error)

    def _hooked(
        self,
        name: str,
        hook: Callable[[list[KeyedMessage]], list[KeyedMessage] | None],
        messages: list[KeyedMessage],
    ) -> list[KeyedMessage]:
        """The hook's result for the messages; the messages if it fails or returns nothing."""
        try:
            changed = hook(messages)
        except BaseException:  # the user's code: it must not cost the messages
            logger.exception("Error executing the callback handler's %s", name)
            return messages
        return messages if changed is None else changed


def size_of(messages: MessageColumns) -> int:
    """Bytes (or characters) of the messages' values; above the limit if one has no length."""
    try:
        return kernel.total_length(messages.column("message"))
    except TypeError:
        return BACKLOG_BYTES


def checked(message: object) -> KeyedMessage:
    """`message`; TypeError for an object that is no KeyedMessage."""
    if not isinstance(message, KeyedMessage):
        raise refused(type(message))
    return message


def lost(messages: Sequence[KeyedMessage], error: Exception) -> Sequence[KeyedMessage]:
    """The messages that were not sent."""
    if not isinstance(error, FailedToSend):
        return messages
    return [message for message in error.messages if isinstance(message, KeyedMessage)]
