"""`kafka08 consume --bootstrap` without ZooKeeper: as a member of a group with a coordinator, or
one partition between two offsets or times. For brokers from 0.9 on."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from socket import gaierror
from typing import TYPE_CHECKING, Final

from kafka08.cli.consume_partition import find_start
from kafka08.cli.echo import say
from kafka08.cli.message_output import MessageOutput, output_descriptor
from kafka08.cli.options import given, read_client_config
from kafka08.cli.peer_kind import PeerKind, kind_of_peer
from kafka08.cli.printer import PRINTED_AT_ONCE
from kafka08.cli.printing import Printing
from kafka08.cli.skipping import DamageSkipper
from kafka08.config import INT_MAX, LONG_MAX
from kafka08.errors import (
    ClientError,
    ConfigError,
    InvalidMessage,
    KafkaError,
    NoBrokersAvailable,
    NoBrokerSaysVersions,
    ProtocolError,
    WokenUp,
)
from kafka08.listing import counted
from kafka08.protocol.version_ranges import OF_0_8
from kafka08.structs import TopicPartition, host_port

if TYPE_CHECKING:
    from kafka08.client import ClusterClient
    from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig, MessageBatch
    from kafka08.consumer.subscription import TopicFilter

IDLE_KEY = "consumer.timeout.ms"
"""This command's own key: the KafkaConsumer has no such timeout."""
CLIENT_ID: Final = "kafka08-consume"
"""The client.id, if none is configured. Member ids begin with it."""
PATIENCE_MS: Final = 2000
LEAVE_S: Final = 5.0
"""How long the last commit may take, and then leaving the group."""


def consume_group(
    source: str | TopicFilter,
    printing: Printing,
    *,
    group: str | None,
    assignor: str | None,
    from_beginning: bool,
) -> None:
    """Print the messages of `source` as a member of a group, and commit printed messages."""
    from kafka08.consumer import KafkaConsumer

    options = given({"group.id": group, "partition.assignment.strategy": assignor})
    if from_beginning:
        options["auto.offset.reset"] = "earliest"
    config, idle_limit_ms = read_consumer_config(options)
    with printing.stopping.waiting():
        check_brokers(config)
    with leaving_soon(KafkaConsumer(config)) as consumer:
        printer = PollingPrinter(
            consumer, output_descriptor(), printing, idle_limit_ms=idle_limit_ms
        )
        consumer.subscribe([source] if isinstance(source, str) else source)
        try:
            printer.run()
        finally:
            say(f"Consumed {counted(printer.count, 'message')}")
        if config.enable_auto_commit and consumer.assignment():
            commit_printed(consumer)


def check_brokers(config: KafkaConsumerConfig) -> None:
    """NoBrokerSaysVersions at once for a broker of 0.8, NoBrokersAvailable if each address is
    refused, unknown, or another server's: the consumer would try for 30 s. Brokers that do not
    respond are its matter."""
    from kafka08.network.connection import Connection

    wrong: list[str] = []
    for host, port in config.bootstrap:
        connection = Connection(
            host,
            port,
            timeout_ms=PATIENCE_MS,
            connect_timeout_ms=PATIENCE_MS,
            negotiates=True,
            accepts_0_8=True,
            security=config.security,
        )
        with connection:
            try:
                connection.open()
            except (ClientError, ProtocolError) as error:
                is_known = isinstance(error.__cause__, ConnectionRefusedError | gaierror)
                if is_known or kind_of_peer(host, port) not in (None, PeerKind.KAFKA):
                    wrong.append(str(error))
                continue
            if connection.versions is OF_0_8:
                raise NoBrokerSaysVersions(
                    f"{host_port(host, port)} is a broker of 0.8, which coordinates no groups"
                )
            return
    if len(wrong) == len(config.bootstrap):
        none = NoBrokersAvailable(f"no broker responded: {'; '.join(wrong)}")
        none.addresses = tuple(config.bootstrap)
        raise none


def commit_printed(consumer: KafkaConsumer) -> None:
    """Commit all positions: including those behind the last batch, which is printed."""
    try:
        consumer.commit(timeout=LEAVE_S)
    except WokenUp:  # stopped after the last poll, which therefore did not raise it
        consumer.commit(timeout=LEAVE_S)


def consume_range(
    tp: TopicPartition,
    wanted: str,
    until: str | None,
    printing: Printing,
    *,
    stop_at_end: bool,
) -> None:
    """Print the messages of `tp` from `wanted` to `until`, without a group."""
    from kafka08.client import ClusterClient
    from kafka08.consumer import KafkaConsumer
    from kafka08.consumer.partition_reader import PartitionReader

    config, idle_limit_ms = read_consumer_config({"group.id": ""})
    client = ClusterClient(
        config.bootstrap, client_id=config.client_id, negotiates=True, security=config.security
    )
    with closing(client) as cluster, leaving_soon(KafkaConsumer(config)) as consumer:
        with printing.stopping.waiting():
            start = find_start(cluster, tp, wanted)
            log_end = consumer.end_offsets([tp])[tp]
            end = log_end if until == "end" else find_end(cluster, tp, until)
        if stop_at_end:
            end = min(end, log_end)

        def nothing_is_left() -> bool:
            """Whether the cleaner has removed what was below `end`."""
            if end > log_end:
                return False  # it may still be written
            try:
                reader = PartitionReader(cluster, tp, consumer.position(tp))
                return not any(reader.poll(PRINTED_AT_ONCE)) and reader.high_watermark >= end
            except KafkaError:
                return False

        consumer.assign([tp])
        consumer.seek(tp, start)
        printer = PollingPrinter(
            consumer, output_descriptor(), printing, idle_limit_ms=idle_limit_ms
        )
        try:
            printer.run(until={tp: end}, is_at_end=nothing_is_left)
        finally:
            say(
                f"Consumed {counted(printer.count, 'message')}; the next offset is "
                f"{consumer.position(tp)}",
            )


@contextmanager
def leaving_soon(consumer: KafkaConsumer) -> Iterator[KafkaConsumer]:
    """Closes it at the end of the block, within the time that a user waits after Ctrl-C."""
    try:
        yield consumer
    finally:
        consumer.close(timeout=LEAVE_S)


def read_consumer_config(options: dict[str, str]) -> tuple[KafkaConsumerConfig, int]:
    """--config and --override, and consumer.timeout.ms from them (-1: none). Without a group it is
    a temporary one, which commits nothing."""
    from kafka08.consumer import KafkaConsumerConfig

    properties = read_client_config("bootstrap", "bootstrap.servers", options=options)
    idle_limit = properties.pop(IDLE_KEY, "-1")
    try:
        idle_limit_ms = int(idle_limit)
    except ValueError:
        raise ConfigError(f"{IDLE_KEY}: {idle_limit!r} is not a number of ms") from None
    properties.setdefault("client.id", CLIENT_ID)
    if "group.id" not in properties:
        properties["group.id"] = f"console-consumer-{random.randrange(10**9)}"
        properties.setdefault("enable.auto.commit", "false")
    return KafkaConsumerConfig(properties), idle_limit_ms


def find_end(cluster: ClusterClient, tp: TopicPartition, until: str | None) -> int:
    """The offset to stop before, for N or a time; the largest one without any."""
    if until is None:
        return LONG_MAX
    if until.isdecimal():
        return int(until)
    return find_start(cluster, tp, until, "--until end")


class PollingPrinter:
    """Prints the messages of a KafkaConsumer, one per line; `count` so far."""

    def __init__(
        self, consumer: KafkaConsumer, descriptor: int, printing: Printing, *, idle_limit_ms: int
    ) -> None:
        self.count = 0
        self._skipping = DamageSkipper(is_wanted=printing.skip_damaged)
        self._consumer = consumer
        self._output = MessageOutput(descriptor, PRINTED_AT_ONCE.max_messages)
        self._render = printing.render
        self._left = INT_MAX if printing.max_messages is None else printing.max_messages
        self._stopping = printing.stopping
        self._idle_limit_s = idle_limit_ms / 1000
        self._has_ended = threading.Event()
        self._is_at_end: Callable[[], bool] = lambda: False

    def run(
        self,
        until: dict[TopicPartition, int] | None = None,
        is_at_end: Callable[[], bool] = lambda: False,
    ) -> None:
        """Return after the limit, before the offsets of `until`, after the timeout without a
        message, or when stopped. Raises what keeps the consumer from messages at the timeout.
        `is_at_end` is asked when there was no message for a while."""
        self._is_at_end = is_at_end
        waker = threading.Thread(target=self._wake_up_at_stop, name="stop")
        waker.start()
        try:
            for batch in self._batches(until or {}):
                self._output.write(self._render(batch), len(batch), self._stopping)
                self.count += len(batch)
                self._left -= len(batch)
        except WokenUp:
            if not self._stopping.is_set():
                raise
        finally:
            self._has_ended.set()
            waker.join()

    def _batches(self, until: dict[TopicPartition, int]) -> Iterator[MessageBatch]:
        while self._left > 0 and not self._stopping.is_set():
            most = min(self._left, self._output.at_once)
            for tp, end in until.items():
                most = min(most, end - self._consumer.position(tp))
            if most <= 0:
                return
            try:
                batch = self._consumer.poll_batch(self._timeout_s, most, PRINTED_AT_ONCE.max_bytes)
            except InvalidMessage as error:
                self._skipping.retry_or_skip(error, self._consumer.skip_damaged)
                continue
            if batch is not None:
                wanted = until.get(batch.topic_partition, LONG_MAX)
                if batch.last_offset < wanted:
                    yield batch
                    continue
                # The log has gaps: the messages before the end are read again, alone, and
                # maybe in several batches.
                self._consumer.seek(batch.topic_partition, batch.first_offset)
                self._left = sum(offset < wanted for offset in batch.offsets)
            elif 0 <= self._idle_limit_s:
                failure = self._consumer.stall_cause
                if failure is not None:
                    raise failure
                return
            elif self._is_at_end():
                return
            else:
                self._output.check_reader()

    @property
    def _timeout_s(self) -> float:
        return self._idle_limit_s if self._idle_limit_s >= 0 else 1.0

    def _wake_up_at_stop(self) -> None:
        while not self._has_ended.wait(0.1):
            if self._stopping.is_set():
                self._consumer.wakeup()
                return
