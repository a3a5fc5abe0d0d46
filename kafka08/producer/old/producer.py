"""The old producer: `producer.type=sync` sends at once, `async` through a queue.

    producer = Producer(ProducerConfig({
        "metadata.broker.list": "localhost:9092",
        "serializer.class": "kafka.serializer.StringEncoder",
        "request.required.acks": "1",
    }))
    producer.send(KeyedMessage("pages", "hello", key="front"))

In async mode `send` only enqueues, and `close` sends the rest; the end of the program does so too,
for 30 s at most. With 0.8's default of
`request.required.acks=0` a message that no broker accepted is lost silently. Source:
kafka.producer.Producer 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from kafka08.client.cluster import ClusterClient
from kafka08.errors import ProducerClosed
from kafka08.lifecycle import Closeable, end_dropped, warn_unclosed
from kafka08.producer.old.async_queue import AsyncQueue, QueueOutcome
from kafka08.producer.old.callback_handler import CallbackHandler
from kafka08.producer.old.config import ProducerConfig
from kafka08.producer.old.encoders import Encoder
from kafka08.producer.old.event_handler import EventHandler
from kafka08.producer.old.producer_stats import ProducerStats
from kafka08.producer.old.router import Router
from kafka08.producer.partitioners import Partitioner
from kafka08.producer.record import KeyedMessage
from kafka08.runtime import Buffers, ClientRuntime
from kafka08.runtime.threads import THREADS, ThreadRuntime

logger = logging.getLogger(__name__)

ANSWER_SLACK_MS: Final = 2000
"""Added to request.timeout.ms to get the timeout of a response. The JVM's producer gives up at the
same moment as the leader, so it never gets the leader's RequestTimedOut (error 7)."""


class Handler(Protocol):
    """Sends messages: an EventHandler, or the class named by event.handler."""

    def handle(self, messages: Sequence[KeyedMessage]) -> None:
        """Send all; FailedToSend has those that failed. One call at a time."""

    def close(self) -> None:
        """Called after the last `handle`."""


class Producer(Closeable):
    """Thread-safe. In sync mode one batch is sent at a time.

    `encoder`, `key_encoder`, `partitioner`, `event_handler` and `callback_handler` override the
    configured classes; the default event handler uses the first three.
    """

    def __init__(
        self,
        config: ProducerConfig,
        *,
        encoder: Encoder | None = None,
        key_encoder: Encoder | None = None,
        partitioner: Partitioner | None = None,
        event_handler: Handler | None = None,
        callback_handler: CallbackHandler | None = None,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self.config = config
        self._is_simulated = not isinstance(runtime, ThreadRuntime)
        config.log_notes()
        self._stats = ProducerStats(runtime)
        make_handler = config.plugin_of("event.handler", config.event_handler)
        if event_handler is None and make_handler is not None:
            event_handler = make_handler(config)
        if event_handler is None:
            event_handler = EventHandler(
                config,
                cluster_of(config, runtime),
                Router(partitioner or config.partitioner(), runtime.random),
                encoder or config.encoder(),
                key_encoder or config.key_encoder(),
                runtime,
                self._stats,
            )
        self._handler = event_handler
        self._lock = runtime.lock()
        self._closed = False
        make_hooks = config.plugin_of("callback.handler", config.callback_handler)
        if callback_handler is None and make_hooks is not None:
            callback_handler = make_hooks()
        self._hooks = callback_handler
        self._queue = queue_of(config, self._handler, callback_handler, self._stats, runtime)
        if self._queue is not None and type(self).send is DEFINED_SEND:
            self.send = self._queue.put  # type: ignore[method-assign]  # saves a call per message

    def send(self, messages: KeyedMessage | Iterable[KeyedMessage]) -> None:
        """Send one message or many.

        Sync: messages for the same leader go in one request. Raises FailedToSend, whose `messages`
        were not acknowledged after all retries (a retry can store a message twice), ProducerClosed,
        and errors of an encoder or the partitioner.

        Async: enqueue them one by one. Raises QueueFull without room for one of them (and does not
        enqueue the rest), and ProducerClosed. Later errors are logged and passed to the callback
        handler.
        """
        if self._queue is not None:
            self._queue.put(messages)
            return
        batch = [messages] if isinstance(messages, KeyedMessage) else list(messages)
        with self._lock:
            if self._closed:
                raise ProducerClosed("the producer is closed")
            if batch:
                self._handler.handle(batch)

    @property
    def outcome(self) -> QueueOutcome:
        """Async: what became of the messages that have left the queue; of all after `close`."""
        return QueueOutcome() if self._queue is None else self._queue.outcome

    def metrics(self) -> dict[str, dict[str, float]]:
        """The counts of the messages so far, by the names of 0.8 in JMX: `ProducerTopicMetrics`,
        `ProducerStats`, `ProducerRequestMetrics`, each topic's and each broker's as
        `<group>.<topic>` and `<group>.<host>:<port>`; with async `ProducerSendThread`. Rates and
        means are of the last 30 to 60 seconds, times in ms. BytesPerSec counts message sets as they
        are sent. A configured event.handler counts nothing."""
        found = self._stats.values()
        if self._queue is not None:
            found["ProducerSendThread"] = {"ProducerQueueSize": float(self._queue.count)}
        return found

    def __repr__(self) -> str:
        ended = ", closed" if self._closed else ""
        config = self.config
        return f"<Producer to {config.metadata_broker_list}, {config.producer_type}{ended}>"

    def _begin_finish(self) -> None:
        if self._queue is not None:
            self._queue.close(0)

    def _finish(self, timeout: float) -> None:
        if self._queue is not None and (lost := self._queue.close(timeout)):
            logger.error(
                "The program ended without closing its async Producer: %d messages were not sent "
                "within %.0f s",
                *(lost, timeout),
            )

    def _drop(self) -> None:
        queue = getattr(self, "_queue", None)
        if queue is not None and not queue.is_closed:
            end_dropped(queue.close)
            warn_unclosed(self)

    def _abandon(self) -> None:
        if self._queue is not None:
            self._queue.abandon()

    def close(self) -> None:
        """Close, after the current send is done and the queue is empty. May be called again."""
        if self._queue is not None:
            self._queue.close()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._handler.close()
            if self._hooks is not None:
                self._hooks.close()


DEFINED_SEND: Final = Producer.send
"""A subclass, or a test, may have another one."""


def cluster_of(config: ProducerConfig, runtime: ClientRuntime) -> ClusterClient:
    return ClusterClient(
        config.bootstrap,
        client_id=config.client_id,
        timeout_ms=config.request_timeout_ms + ANSWER_SLACK_MS,
        connect_timeout_ms=config.request_timeout_ms,
        buffers=Buffers(send=config.send_buffer_bytes),
        creates_topics=True,
        runtime=runtime,
    )


def queue_of(
    config: ProducerConfig,
    handler: Handler,
    hooks: CallbackHandler | None,
    stats: ProducerStats,
    runtime: ClientRuntime,
) -> AsyncQueue | None:
    """The queue of producer.type=async; None for sync."""
    if config.producer_type == "sync":
        return None
    timeout_ms = config.queue_enqueue_timeout_ms
    return AsyncQueue(
        handler.handle,
        hooks,
        max_count=config.queue_buffering_max_messages,
        max_s=config.queue_buffering_max_ms / 1000,
        batch_count=config.batch_num_messages,
        enqueue_timeout_s=None if timeout_ms < 0 else timeout_ms / 1000,
        on_drop=stats.dropped,
        runtime=runtime,
    )
