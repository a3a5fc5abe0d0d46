"""Prints streams of messages to a file descriptor, one thread each, until stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafka08.cli.message_limit import MessageLimit
from kafka08.cli.message_output import MessageOutput
from kafka08.cli.printing import Printing
from kafka08.cli.skipping import DamageSkipper
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.errors import (
    ConsumerRebalanceFailed,
    ConsumerTimeout,
    InvalidMessage,
    SessionLost,
    ZooKeeperUnreachable,
)

if TYPE_CHECKING:
    from kafka08.consumer import ConsumerConnector, KafkaStream, MessageBatch

POLL_MS: Final = 100
"""How often a stream without messages checks for a stop; the consumer.timeout.ms that the streams
must have."""
PRINTED_AT_ONCE: Final = BatchLimits(max_messages=4096, max_bytes=64 * 1024)
"""The size of a pipe's buffer, so that a slow reader hardly delays a stop."""


class Printer:
    """Prints each message as one line, in large writes, and commits printed messages.

    With a pipe these are the messages that its reader has read. When the reader ends, the last
    batch is not committed, because it is unknown how much of it was used.

    descriptor      the output; if its reader ends, printing ends with BrokenPipeError
    idle_limit_ms   stop a stream after this time without a message; < 0: never

    `count` messages were printed; `failure` is the first error of a stream, or None.
    """

    def __init__(self, descriptor: int, printing: Printing, *, idle_limit_ms: int) -> None:
        self.count = 0
        self.failure: Exception | None = None
        self._printing = printing
        self._output = MessageOutput(descriptor, PRINTED_AT_ONCE.max_messages)
        self._idle_limit_ms = idle_limit_ms
        self._stopping = printing.stopping
        self._lock = threading.Lock()

    def run(self, connector: ConsumerConnector, streams: list[KafkaStream[bytes, bytes]]) -> None:
        """Return after the limit, an error, a timeout, or when stopped. All printed messages are
        committed then and (unless auto.commit.enable is off) no others."""
        limit = MessageLimit(
            self._printing.max_messages, PRINTED_AT_ONCE.max_messages, len(streams)
        )
        threads = [
            threading.Thread(
                target=self._run_stream, args=(connector, stream, limit), name=f"stream-{n}"
            )
            for n, stream in enumerate(streams)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run_stream(
        self, connector: ConsumerConnector, stream: KafkaStream[bytes, bytes], limit: MessageLimit
    ) -> None:
        try:
            for batch in self._until_stopped(stream, limit):
                self._print(batch)
            if connector.config.auto_commit_enable:
                connector.commit_offsets()  # including the last batch: it is printed
        except Exception as error:  # noqa: BLE001 - the root of a thread; the command raises it
            self.failure = self.failure or error
            self._stopping.set()

    def _until_stopped(
        self, stream: KafkaStream[bytes, bytes], limit: MessageLimit
    ) -> Iterator[MessageBatch]:
        """Batches to be printed as a whole."""
        skipping = DamageSkipper(is_wanted=self._printing.skip_damaged)
        silent_ms = 0
        while not self._stopping.is_set():
            most = limit.take(POLL_MS / 1000)
            if not most:
                continue
            try:
                at_once = min(most, self._output.at_once)
                batch = next(stream.batches(at_once, PRINTED_AT_ONCE.max_bytes))
            except ConsumerTimeout:
                limit.give_back(most)
                silent_ms += POLL_MS
                if 0 <= self._idle_limit_ms <= silent_ms:
                    return
                self._output.check_reader()
            except ConsumerRebalanceFailed as error:
                limit.give_back(most)
                # The stream says it once. The member keeps trying while ZooKeeper is away.
                if not isinstance(error.__cause__, SessionLost | ZooKeeperUnreachable):
                    raise
            except InvalidMessage as error:
                limit.give_back(most)
                skipping.retry_or_skip(error, stream.skip_damaged)
            except StopIteration:
                return
            else:
                silent_ms = 0
                yield batch
                limit.give_back(most - len(batch))

    def _print(self, batch: MessageBatch) -> None:
        lines = self._printing.render(batch)
        with self._lock:
            self._output.write(lines, len(batch), self._stopping)
            self.count += len(batch)
            if self.count == self._printing.max_messages:
                self._stopping.set()
