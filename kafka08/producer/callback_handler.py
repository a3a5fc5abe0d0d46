"""Hooks at every stage of the asynchronous producer, for logging, tracing and counting.

Source: kafka.producer.async.CallbackHandler 0.7, which 0.8 dropped; `after_sending` and `on_error`
are ours.
"""

from __future__ import annotations

from kafka08.producer.message import KeyedMessage


class CallbackHandler:
    """Does nothing; override what you need. Named by callback.handler or handed to the Producer.

    The first two are called in the thread that sends, the others in the producer's own, one at a
    time. What a hook raises in `send` passes through to its caller; elsewhere it is logged, and the
    messages go on as if the hook had not been called.
    """

    def before_enqueue(self, message: KeyedMessage) -> KeyedMessage:
        """The message to put into the queue instead of `message`."""
        return message

    def after_enqueue(self, message: KeyedMessage, added: bool) -> None:
        """It is in the queue, or (`added` False) the queue was full and `send` raises QueueFull."""

    def after_dequeue(self, messages: list[KeyedMessage]) -> list[KeyedMessage]:
        """What to go on with instead of `messages`, which just left the queue together."""
        return messages

    def before_sending(self, messages: list[KeyedMessage]) -> list[KeyedMessage]:
        """What to hand to the event handler instead of `messages`."""
        return messages

    def after_sending(self, messages: list[KeyedMessage]) -> None:
        """The event handler has sent all of them."""

    def on_error(self, messages: list[KeyedMessage], error: Exception) -> None:
        """These were given up. For a FailedToSend they are its `messages`, the others were sent."""

    def close(self) -> None:
        """The producer was closed, and its queue is empty."""
