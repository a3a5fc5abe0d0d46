"""Interceptors of the new producer: called for every record and for its result.

Source: org.apache.kafka.clients.producer.ProducerInterceptor 0.10.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from kafka08.errors import KafkaError
from kafka08.producer.batch import Callback
from kafka08.producer.record import ProducerRecord, RecordMetadata

logger = logging.getLogger(__name__)


class ProducerInterceptor(Protocol):
    """Its errors are logged, and the record continues as if it had not been called."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to send in its place, before serialization. In the thread that calls send,
        which raises TypeError if it gets anything but a ProducerRecord."""

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """The record was stored or failed: one of the two arguments is None. In the sender's
        thread, before the record's own callback."""

    def close(self) -> None:
        """The producer was closed."""


class Interceptors:
    """A chain: each gets the record that the one before it returned."""

    def __init__(self, chain: Sequence[ProducerInterceptor]) -> None:
        self._chain = chain

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The chain's result for it; TypeError for a result that is no ProducerRecord."""
        for interceptor in self._chain:
            try:
                record = interceptor.on_send(record)
            except Exception:  # the user's code: it must not stop the record
                logger.exception("Error executing interceptor on_send of %r", interceptor)
            if not isinstance(record, ProducerRecord):
                raise TypeError(
                    f"on_send of {interceptor!r} returned {record!r}, not a ProducerRecord: let it "
                    "return the record to send"
                )
        return record

    def around(self, callback: Callback | None) -> Callback | None:
        """A callback that calls the chain, and then `callback`."""
        if not self._chain:
            return callback

        def notify(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            interrupt: KeyboardInterrupt | None = None
            for interceptor in self._chain:
                try:
                    interceptor.on_acknowledgement(metadata, error)
                except KeyboardInterrupt as ctrl_c:  # in `send`, which reports its own failures
                    interrupt = ctrl_c
                except BaseException:  # the user's code: it must not stop the sender
                    logger.exception("Error executing on_acknowledgement of %r", interceptor)
            if callback is not None:
                callback(metadata, error)
            if interrupt is not None:  # once everybody who waits for the record has heard of it
                raise interrupt

        return notify

    def close(self) -> None:
        for interceptor in self._chain:
            try:
                interceptor.close()
            except Exception:  # the user's code: the other interceptors must be closed too
                logger.exception("Error closing %r", interceptor)
