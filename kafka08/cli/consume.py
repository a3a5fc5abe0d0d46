"""`kafka08 consume`: the messages of topics on stdout, as a member of a group."""

from __future__ import annotations

import base64
import json
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from kafka08.cli.options import config_options, example, read_config, zookeeper_option
from kafka08.cli.signals import stop_event
from kafka08.errors import ConsumerTimeout, KafkaError

if TYPE_CHECKING:
    from kafka08.consumer import ConsumerConnector, KafkaStream

POLL_MS = 100
"""How often a stream without messages looks whether it should stop."""


def as_text(message: Any) -> bytes:
    return b"null" if message.value is None else bytes(message.value)


def as_hex(message: Any) -> bytes:
    key = "null" if message.key is None else message.key.hex()
    value = "null" if message.value is None else message.value.hex()
    return f"{message.topic} {message.partition} {message.offset} {key} {value}".encode()


def as_json(message: Any) -> bytes:
    """One object: topic, partition, offset, key, value; base64 if either is not UTF-8."""
    row: dict[str, Any] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
    }
    try:
        row["key"] = None if message.key is None else message.key.decode()
        row["value"] = None if message.value is None else message.value.decode()
    except UnicodeDecodeError:
        for name in ("key", "value"):
            raw = getattr(message, name)
            row[name] = None if raw is None else base64.b64encode(raw).decode()
        row["encoding"] = "base64"
    return json.dumps(row, ensure_ascii=False).encode()


FORMATS: dict[str, Callable[[Any], bytes]] = {"text": as_text, "json": as_json, "hex": as_hex}


@click.command(epilog=example("kafka08 consume words --group readers --from-beginning"))
@click.argument("topic", required=False)
@click.option("--whitelist", metavar="RE", help="Every topic whose whole name matches.")
@click.option("--blacklist", metavar="RE", help="Every topic whose whole name does not match.")
@click.option("--group", metavar="G", help="The group; default: a new one, removed at the end.")
@click.option("--from-beginning", is_flag=True, help="Where nothing is committed: the earliest.")
@click.option("--max-messages", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="Streams.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text")
@config_options
@zookeeper_option
def consume(
    topic: str | None,
    whitelist: str | None,
    blacklist: str | None,
    group: str | None,
    from_beginning: bool,
    max_messages: int | None,
    threads: int,
    form: str,
    config_file: str | None,
    overrides: tuple[str, ...],
    zookeeper: str,
) -> None:
    """Print the messages of TOPIC, or of all topics matched by a pattern, until stopped.

    SIGTERM and Ctrl-C commit what was printed, give the partitions back and leave the group.
    """
    from kafka08.consumer import ConsumerConfig, ConsumerConnector

    if sum(choice is not None for choice in (topic, whitelist, blacklist)) != 1:
        raise click.UsageError("name one of: TOPIC, --whitelist, --blacklist")
    defaults = {"zookeeper.connect": zookeeper}
    if from_beginning:
        defaults["auto.offset.reset"] = "smallest"
    properties = read_config(config_file, overrides, defaults)
    temporary = group is None and "group.id" not in properties
    if group is not None:
        properties["group.id"] = group
    elif temporary:
        properties["group.id"] = f"console-consumer-{random.randrange(100_000)}"
    config = ConsumerConfig(properties)
    printer = Printer(FORMATS[form], max_messages, idle_limit_ms=config.consumer_timeout_ms)
    connector = ConsumerConnector(config.with_changes(consumer_timeout_ms=POLL_MS))
    try:
        streams = open_streams(connector, topic, whitelist, blacklist, threads)
        printer.run(connector, streams)
    finally:
        connector.shutdown()
        if temporary:
            connector.delete_group()
    click.echo(f"Consumed {printer.count} messages", err=True)
    if printer.failure is not None:
        raise printer.failure


def open_streams(
    connector: ConsumerConnector,
    topic: str | None,
    whitelist: str | None,
    blacklist: str | None,
    threads: int,
) -> list[KafkaStream]:
    from kafka08.consumer import Blacklist, Whitelist

    if topic is not None:
        return connector.create_message_streams({topic: threads})[topic]
    pattern = Whitelist(whitelist) if whitelist is not None else Blacklist(blacklist or "")
    return connector.create_message_streams_by_filter(pattern, threads)


class Printer:
    """Prints the messages of several streams, one thread each, until told to stop.

    `count` messages were printed; `failure` is the first error of a stream, or None.
    """

    def __init__(
        self, render: Callable[[Any], bytes], max_messages: int | None, *, idle_limit_ms: int
    ) -> None:
        self.count = 0
        self.failure: KafkaError | None = None
        self._render = render
        self._max_messages = max_messages
        self._idle_limit_ms = idle_limit_ms
        self._lock = threading.Lock()
        self._stopping = stop_event()

    def run(self, connector: ConsumerConnector, streams: list[KafkaStream]) -> None:
        """Print until the limit, an error, consumer.timeout.ms of silence, or a signal."""
        threads = [
            threading.Thread(target=self._print_stream, args=(connector, s), name=f"stream-{n}")
            for n, s in enumerate(streams)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _print_stream(self, connector: ConsumerConnector, stream: KafkaStream) -> None:
        try:
            for message in self._until_stopped(stream):
                self._print(message)
            if connector.config.auto_commit_enable:
                connector.commit_offsets()
        except KafkaError as error:
            self.failure = self.failure or error
            self._stopping.set()

    def _until_stopped(self, stream: KafkaStream) -> Iterator[Any]:
        silent_ms = 0
        while not self._stopping.is_set():
            try:
                for message in stream:
                    silent_ms = 0
                    yield message
                    if self._stopping.is_set():
                        return
            except ConsumerTimeout:
                silent_ms += POLL_MS
                if 0 <= self._idle_limit_ms <= silent_ms:
                    return
            else:
                return

    def _print(self, message: Any) -> None:
        line = self._render(message) + b"\n"
        with self._lock:
            if self._max_messages is not None and self.count >= self._max_messages:
                return
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            self.count += 1
            if self.count == self._max_messages:
                self._stopping.set()
