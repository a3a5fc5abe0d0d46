"""Interceptors of the KafkaConsumer: they see the messages of each poll and all commits.

Source: org.apache.kafka.clients.consumer.ConsumerInterceptor 0.10.2.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from kafka08.consumer.group.committer import Offsets
from kafka08.kernel import MessageAndMetadata

logger = logging.getLogger(__name__)

Message = MessageAndMetadata[Any, Any]


class ConsumerInterceptor(Protocol):
    """Base class of interceptors. An exception of a method is logged and otherwise ignored. All
    methods run in the thread that uses the consumer."""

    def on_consume(self, messages: list[Message]) -> list[Message]:
        """Returns the messages that `poll` returns, or an iteration yields, instead of these. If it
        returns anything but a list or a tuple, the poll raises TypeError, and its messages are read
        again: without its `return` it would drop, and commit, every message."""

    def on_commit(self, offsets: Offsets) -> None:
        """Called after these offsets were committed."""

    def close(self) -> None:
        """Called when the consumer is closed."""


class Interceptors:
    """A chain of interceptors: each one gets the result of the one before it."""

    def __init__(self, chain: Sequence[ConsumerInterceptor]) -> None:
        self._chain = chain

    def __bool__(self) -> bool:
        return bool(self._chain)

    def on_consume(self, messages: list[Message]) -> list[Message]:
        """The chain's result for them; TypeError for a result that is no list or tuple."""
        for interceptor in self._chain:
            try:
                messages = interceptor.on_consume(messages)
            except Exception:  # the user's code: it must not stop the messages
                logger.exception("Error executing interceptor on_consume of %r", interceptor)
            if not isinstance(messages, list | tuple):
                raise TypeError(
                    f"on_consume of {interceptor!r} returned {messages!r}, not a list of messages: "
                    "let it return the messages to deliver"
                )
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
