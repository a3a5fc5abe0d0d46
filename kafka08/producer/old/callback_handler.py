"""Hooks at every stage of the asynchronous producer, for logging, tracing and counting.

Source: kafka.producer.async.CallbackHandler 0.7, which 0.8 has removed; `after_sending` and
`on_error` are additions.
"""

from __future__ import annotations

from kafka08.producer.record import KeyedMessage


class CallbackHandler:
    """Hooks that do nothing; override the ones you need. Set by callback.handler or passed to the
    Producer.

    The first two run in the thread that sends, the others in the producer's own, one at a time. An
    error of a hook in `send` is raised there; others are logged, and the messages continue as if
    the hook had not been called.
    """

    def before_enqueue(self, message: KeyedMessage) -> KeyedMessage:
        """The message to enqueue in place of `message`."""
        return message

    def after_enqueue(self, message: KeyedMessage, added: bool) -> None:
        """Called after a message was enqueued, or (`added` False) when the queue was full and
        `send` raises QueueFull."""

    def after_dequeue(self, messages: list[KeyedMessage]) -> list[KeyedMessage]:
        """The messages to continue with in place of `messages`, which left the queue together."""
        return messages

    def before_sending(self, messages: list[KeyedMessage]) -> list[KeyedMessage]:
        """The messages for the event handler in place of `messages`."""
        return messages

    def after_sending(self, messages: list[KeyedMessage]) -> None:
        """The event handler has sent all of them."""

    def on_error(self, messages: list[KeyedMessage], error: Exception) -> None:
        """The producer gave up on these. For a FailedToSend they are its `messages`; the others
        were sent."""

    def close(self) -> None:
        """The producer was closed, and its queue is empty."""
