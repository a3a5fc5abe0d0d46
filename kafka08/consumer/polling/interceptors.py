"""Interceptors of the KafkaConsumer: see the messages of each poll, and what was committed.

Source: org.apache.kafka.clients.consumer.ConsumerInterceptor 0.10.2.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from kafka08.consumer.polling.committer import Offsets
from kafka08.kernel import MessageAndMetadata

logger = logging.getLogger(__name__)

Message = MessageAndMetadata[Any, Any]


class ConsumerInterceptor(Protocol):
    """What it raises is logged, and the consumer goes on as if it had not been asked. All methods
    are called in the thread that uses the consumer."""

    def on_consume(self, messages: list[Message]) -> list[Message]:
        """The messages that `poll` is to return, or an iteration to hand out, instead of these."""

    def on_commit(self, offsets: Offsets) -> None:
        """These were committed."""

    def close(self) -> None:
        """The consumer was closed."""


class Interceptors:
    """A chain: each is given what the one before it returned."""

    def __init__(self, chain: Sequence[ConsumerInterceptor]) -> None:
        self._chain = chain

    def __bool__(self) -> bool:
        return bool(self._chain)

    def on_consume(self, messages: list[Message]) -> list[Message]:
        for interceptor in self._chain:
            try:
                messages = interceptor.on_consume(messages)
            except Exception:  # the user's code: it must not stop the messages
                logger.exception("Error executing interceptor on_consume of %r", interceptor)
        return messages

    def on_commit(self, offsets: Offsets) -> None:
        for interceptor in self._chain:
            try:
                interceptor.on_commit(offsets)
            except Exception:  # the user's code: it must not stop the consumer
                logger.exception("Error executing interceptor on_commit of %r", interceptor)

    def close(self) -> None:
        for interceptor in self._chain:
            try:
                interceptor.close()
            except Exception:  # the user's code: the others are to be closed too
                logger.exception("Error closing %r", interceptor)
