"""Streams of messages onto a file descriptor, one thread each, until told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kafka08.cli.allowance import Allowance
from kafka08.cli.outlet import Outlet
from kafka08.cli.skipping import Skipping
from kafka08.consumer.batch import BatchLimits
from kafka08.errors import ConsumerTimeout, InvalidMessage

if TYPE_CHECKING:
    from kafka08.consumer import ConsumerConnector, KafkaStream, MessageBatch

POLL_MS: Final = 100
"""How often a stream without messages looks whether it should stop; the consumer.timeout.ms that
the streams must have."""
PRINTED_AT_ONCE: Final = BatchLimits(max_messages=4096, max_bytes=64 * 1024)
"""What a pipe holds, so that a slow reader delays a stop little."""


class Printer:
    """Prints each message as a line of its own, many at once, and commits what was printed.

    Of a pipe that is what its reader has read. When the reader ends, the last batch is not
    committed: how much of it was used is not known.

    descriptor      where to; a reader that goes away ends the printing with BrokenPipeError
    render          makes lines of a batch
    max_messages    print exactly so many, if there are; None: no limit
    idle_limit_ms   stop a stream after so much silence; < 0: never
    skip_damaged    go on behind a message that cannot be read, instead of ending with its error
    stopping        set from outside to end it

    `count` messages were printed; `failure` is the first error of a stream, or None.
    """

    def __init__(
        self,
        descriptor: int,
        render: Callable[[MessageBatch], bytes],
        max_messages: int | None,
        *,
        idle_limit_ms: int,
        skip_damaged: bool,
        stopping: threading.Event,
    ) -> None:
        self.count = 0
        self.failure: Exception | None = None
        self._outlet = Outlet(descriptor, PRINTED_AT_ONCE.max_messages)
        self._render = render
        self._max_messages = max_messages
        self._idle_limit_ms = idle_limit_ms
        self._skip_damaged = skip_damaged
        self._stopping = stopping
        self._lock = threading.Lock()

    def run(self, connector: ConsumerConnector, streams: list[KafkaStream[bytes, bytes]]) -> None:
        """Return after the limit, an error, silence, or when told to stop, with all committed that
        was printed and (unless auto.commit.enable is off) nothing else."""
        allowance = Allowance(self._max_messages, PRINTED_AT_ONCE.max_messages, len(streams))
        threads = [
            threading.Thread(
                target=self._run_stream, args=(connector, stream, allowance), name=f"stream-{n}"
            )
            for n, stream in enumerate(streams)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run_stream(
        self, connector: ConsumerConnector, stream: KafkaStream[bytes, bytes], allowance: Allowance
    ) -> None:
        try:
            for batch in self._until_stopped(stream, allowance):
                self._print(batch)
            if connector.config.auto_commit_enable:
                connector.commit_offsets()  # the batch in hand as well: it is printed
        except Exception as error:  # noqa: BLE001 - the root of a thread; the command raises it
            self.failure = self.failure or error
            self._stopping.set()

    def _until_stopped(
        self, stream: KafkaStream[bytes, bytes], allowance: Allowance
    ) -> Iterator[MessageBatch]:
        """Batches, each to be printed as a whole."""
        skipping = Skipping(is_wanted=self._skip_damaged)
        silent_ms = 0
        while not self._stopping.is_set():
            most = allowance.take(POLL_MS / 1000)
            if not most:
                continue
            try:
                at_once = min(most, self._outlet.at_once)
                batch = next(stream.batches(at_once, PRINTED_AT_ONCE.max_bytes))
            except ConsumerTimeout:
                allowance.give_back(most)
                silent_ms += POLL_MS
                if 0 <= self._idle_limit_ms <= silent_ms:
                    return
                self._outlet.check_reader()
            except InvalidMessage as error:
                allowance.give_back(most)
                skipping.meet(error, stream.skip_damaged)
            except StopIteration:
                return
            else:
                silent_ms = 0
                yield batch
                allowance.give_back(most - len(batch))

    def _print(self, batch: MessageBatch) -> None:
        lines = self._render(batch)
        with self._lock:
            self._outlet.write(lines, len(batch), self._stopping)
            self.count += len(batch)
            if self.count == self._max_messages:
                self._stopping.set()
