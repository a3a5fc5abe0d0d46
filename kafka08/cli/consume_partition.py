"""`kafka08 consume --partition`: prints one partition from an offset on, without a group, like
SimpleConsumerShell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import click

from kafka08.cli.echo import say
from kafka08.cli.message_output import check_reader, output_descriptor, write_all
from kafka08.cli.options import cluster_addresses, read_config, security_of
from kafka08.cli.printer import PRINTED_AT_ONCE
from kafka08.cli.printing import Printing
from kafka08.cli.signals import Stopped, StopRequest
from kafka08.cli.skipping import DamageSkipper
from kafka08.cli.times import no_times, parse_ms
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.config import INT_MAX
from kafka08.consumer.fetching.fetched import next_offset_after
from kafka08.errors import InvalidMessage, OffsetOutOfRange
from kafka08.listing import counted
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.client import ClusterClient
    from kafka08.consumer import ConsumerConfig, MessageBatch
    from kafka08.consumer.partition_reader import PartitionReader


def start_of(wanted: str, tp: TopicPartition, log_start: int, log_end: int) -> int:
    """The start offset: `earliest`, `latest`, N itself, or -N for N offsets before the end.
    OffsetOutOfRange for an N that is not in the log."""
    if wanted == "earliest":
        return log_start
    if wanted == "latest":
        return log_end
    number = int(wanted)
    if wanted.startswith("-"):
        return max(log_start, log_end + number)
    if not log_start <= number <= log_end:
        raise OffsetOutOfRange(f"{tp} has the offsets {log_start} to {log_end}, not {number}")
    return number


def consume_partition(
    tp: TopicPartition,
    wanted: str,
    printing: Printing,
    *,
    stop_at_end: bool,
) -> None:
    """Print the messages of `tp` from `wanted` on, until stopped. The brokers come from the running
    command's other options."""
    config = fetch_config()
    with closing(connected(config, printing.stopping)) as cluster:
        with printing.stopping.waiting():
            start = find_start(cluster, tp, wanted)
        reader = reader_of(cluster, tp, start, config, printing.stopping)
        printer = PartitionPrinter(output_descriptor(), printing)
        try:
            printer.run(reader, stop_at_end=stop_at_end, idle_limit_ms=config.consumer_timeout_ms)
        except InvalidMessage as error:
            raise InvalidMessage(f"{error}{how_to_skip(error)}") from error
        finally:
            say(
                f"Consumed {counted(printer.count, 'message')}; "
                f"the next offset is {printer.next_offset}",
            )


def consume_last(
    topic: str, number: int | None, last: int, printing: Printing, *, timestamps: bool
) -> None:
    """Print the last messages of each partition of `topic`, or of partition `number`, one partition
    after another: at most `last` of each. `timestamps`: with those of the messages."""
    from kafka08.client.log_offsets import log_ends, log_starts
    from kafka08.client.metadata import chosen_partitions

    config = fetch_config()
    count = 0
    with closing(connected(config, printing.stopping, negotiates=timestamps)) as cluster:
        with printing.stopping.waiting():
            numbers = None if number is None else [number]
            partitions = chosen_partitions(cluster.refresh(), topic, numbers)
            starts, ends = log_starts(cluster, partitions), log_ends(cluster, partitions)
        try:
            for tp in partitions:
                start = max(starts[tp], ends[tp] - last)
                most = last if printing.max_messages is None else printing.max_messages - count
                if start == ends[tp] or most == 0 or printing.stopping.is_set():
                    continue
                reader = reader_of(
                    cluster, tp, start, config, printing.stopping, timestamps=timestamps
                )
                few = printing._replace(max_messages=min(last, most))
                printer = PartitionPrinter(output_descriptor(), few)
                try:
                    printer.run(reader, stop_at_end=True, idle_limit_ms=config.consumer_timeout_ms)
                finally:
                    count += printer.count
        finally:
            say(f"Consumed {counted(count, 'message')} of {counted(len(partitions), 'partition')}")


def connected(
    config: ConsumerConfig, stopping: StopRequest, *, negotiates: bool = False
) -> ClusterClient:
    """A client of the brokers of the running command's options."""
    from kafka08.client import ClusterClient

    params = click.get_current_context().params
    with stopping.waiting():
        addresses = cluster_addresses(config.zookeeper_connect)
    return ClusterClient(
        addresses,
        client_id=config.client_id,
        timeout_ms=config.socket_timeout_ms,
        negotiates=negotiates or params["zookeeper"] is None,
        accepts_0_8=True,
        security=security_of(read_config(params["config_file"], params["overrides"])),
    )


def reader_of(
    cluster: ClusterClient,
    tp: TopicPartition,
    start: int,
    config: ConsumerConfig,
    stopping: StopRequest,
    *,
    timestamps: bool = False,
) -> PartitionReader:
    from kafka08.consumer.partition_reader import PartitionReader

    return PartitionReader(
        cluster,
        tp,
        start,
        fetch_bytes=config.fetch_message_max_bytes,
        wait_ms=config.fetch_wait_max_ms,
        is_stopping=stopping.is_set,
        timestamps=timestamps,
    )


def how_to_skip(error: InvalidMessage) -> str:
    """How to skip a damaged message, for the end of a sentence."""
    behind = next_offset_after(error.__cause__)
    return "" if behind is None else f". If that remains, continue after it with --offset {behind}"


def fetch_config() -> ConsumerConfig:
    """--config and --override. The keys about fetching, client.id, consumer.timeout.ms and
    zookeeper.connect are used. The group and ZooKeeper may be missing."""
    from kafka08.consumer import ConsumerConfig

    params = click.get_current_context().params
    properties = read_config(
        params["config_file"],
        params["overrides"],
        {"client.id": "kafka08-consume-partition", "zookeeper.connect": ""},
    )
    return ConsumerConfig({**properties, "group.id": "none"})


def find_start(
    cluster: ClusterClient, tp: TopicPartition, wanted: str, instead: str = "--offset earliest"
) -> int:
    """`start_of` for the log at the leader, or for @TIME the first message at or after that time,
    the log's end if there is none. UnknownTopicOrPartition for a missing partition, which the
    request does not create. `instead`: what to give if no message has a time."""
    from kafka08.client.log_offsets import log_ends, log_starts, offsets_at
    from kafka08.client.metadata import chosen_partitions

    chosen_partitions(cluster.refresh(), tp.topic, [tp.partition])
    if wanted.startswith("@"):
        offsets, untimed = offsets_at(cluster, [tp], parse_ms(wanted.removeprefix("@")))
        if untimed:
            say(f"Warning: {no_times(tp)}. Give {instead} or a number instead")
        return offsets[tp]
    return start_of(wanted, tp, log_starts(cluster, [tp])[tp], log_ends(cluster, [tp])[tp])


class PartitionPrinter:
    """Prints the messages of a PartitionReader, one per line.

    `count` messages were printed; `next_offset` is where the next run continues.
    """

    def __init__(self, descriptor: int, printing: Printing, clock: Clock = SYSTEM_CLOCK) -> None:
        self.count = 0
        self.next_offset = -1
        self._descriptor = descriptor
        self._printing = printing
        self._skipping = DamageSkipper(is_wanted=printing.skip_damaged)
        self._stopping = printing.stopping
        self._clock = clock

    def run(self, reader: PartitionReader, *, stop_at_end: bool, idle_limit_ms: int) -> None:
        """Return after the limit, at the log end (with `stop_at_end`), after `idle_limit_ms`
        without a message (< 0: never), or when `stopping` is set. Raises OutputStalled."""
        self.next_offset = reader.position
        heard_at = self._clock.monotonic()
        empty_below = -1
        while not self._is_done():
            before = self.count
            try:
                self._print_fetched(reader)
            except Stopped:
                return
            except InvalidMessage as error:
                self._skipping.retry_or_skip(error, partial(reader.skip_damaged, error))
                continue
            if self.count > before:
                heard_at, empty_below = self._clock.monotonic(), -1
                continue
            silent_ms = (self._clock.monotonic() - heard_at) * 1000
            # The cleaner may have removed the last messages below the end. A leader may respond
            # with an end that is newer than what it read, so a second empty fetch decides.
            is_at_end = reader.is_at_end or reader.high_watermark == empty_below
            empty_below = reader.high_watermark
            if (stop_at_end and is_at_end) or 0 <= idle_limit_ms <= silent_ms:
                return
            check_reader(self._descriptor)

    def _is_done(self) -> bool:
        return self._stopping.is_set() or self._left() == 0

    def _left(self) -> int:
        """The number of messages that may still be printed."""
        limit = self._printing.max_messages
        return INT_MAX if limit is None else limit - self.count

    def _print_fetched(self, reader: PartitionReader) -> None:
        most = min(PRINTED_AT_ONCE.max_messages, self._left())
        batches = reader.poll(PRINTED_AT_ONCE._replace(max_messages=most))
        while (batch := self._next_of(batches)) is not None:
            write_all(self._descriptor, self._printing.render(batch), self._stopping)
            self.count += len(batch)
            self.next_offset = batch.last_offset + 1
            if self._is_done() or self._left() < most:
                return
        self.next_offset = reader.position

    def _next_of(self, batches: Iterator[MessageBatch]) -> MessageBatch | None:
        """Raises Stopped: a broker that does not respond delays no stop."""
        with self._stopping.waiting():
            return next(batches, None)
