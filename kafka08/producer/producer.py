"""The old producer in sync mode.

    producer = Producer(ProducerConfig({
        "metadata.broker.list": "localhost:9092",
        "serializer.class": "kafka.serializer.StringEncoder",
        "request.required.acks": "1",
    }))
    producer.send(KeyedMessage("pages", "hello", key="front"))

With the default of 0.8, `request.required.acks=0`, nobody tells whether a message arrived. Source:
kafka.producer.Producer 0.8.2.2.
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterable
from typing import Final, Self

from kafka08.client.cluster import ClusterClient
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import ProducerClosed
from kafka08.network.connection import Connect
from kafka08.producer.config import ProducerConfig
from kafka08.producer.encoders import Encoder
from kafka08.producer.event_handler import EventHandler
from kafka08.producer.message import KeyedMessage
from kafka08.producer.partitioners import Partitioner
from kafka08.producer.routing import Router

ANSWER_SLACK_MS: Final = 2000
"""How much longer than request.timeout.ms the producer waits for an answer. The JVM's gives up at
the same moment as the leader does and so never learns that the time was up (error 7)."""


class Producer:
    """Sends messages and returns when the brokers have acknowledged them. Thread-safe: one batch
    at a time. `encoder`, `key_encoder` and `partitioner` win over the configured classes."""

    def __init__(
        self,
        config: ProducerConfig,
        *,
        encoder: Encoder | None = None,
        key_encoder: Encoder | None = None,
        partitioner: Partitioner | None = None,
        connect: Connect = socket.create_connection,
        clock: Clock = SYSTEM_CLOCK,
        rng: random.Random | None = None,
    ) -> None:
        self.config = config
        config.log_notes()
        rng = rng or random.Random()
        cluster = ClusterClient(
            config.bootstrap,
            client_id=config.client_id,
            timeout_ms=config.request_timeout_ms + ANSWER_SLACK_MS,
            connect_timeout_ms=config.request_timeout_ms,
            send_buffer=config.send_buffer_bytes,
            connect=connect,
            clock=clock,
            rng=rng,
        )
        self._handler = EventHandler(
            config,
            cluster,
            Router(partitioner or config.partitioner(), rng),
            encoder or config.encoder(),
            key_encoder or config.key_encoder(),
            clock,
        )
        self._lock = threading.Lock()
        self._closed = False

    def send(self, messages: KeyedMessage | Iterable[KeyedMessage]) -> None:
        """Send one message or many, those for the same leader in one request.

        Raises FailedToSend, whose `messages` are those not acknowledged after all tries (a retry
        can store a message twice), ProducerClosed, and what an encoder or the partitioner raises.
        """
        batch = [messages] if isinstance(messages, KeyedMessage) else list(messages)
        with self._lock:
            if self._closed:
                raise ProducerClosed("the producer is closed")
            if batch:
                self._handler.handle(batch)

    def close(self) -> None:
        """Close once the send that may be under way is done. May be called again."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._handler.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
