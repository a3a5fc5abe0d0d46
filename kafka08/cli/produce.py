"""`kafka08 produce`: lines of text into a topic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import click

from kafka08.cli.options import bootstrap_option, config_options, example, read_config

BATCH_COUNT = 500
"""Lines handed to the producer at once."""


@click.command(epilog=example("seq 100 | kafka08 produce words --bootstrap localhost:9092"))
@click.argument("topic")
@bootstrap_option
@config_options
@click.option(
    "--input", "source", type=click.File("rb"), default="-", help="A file; default stdin."
)
@click.option("--key-separator", help="Split each line here into key and value (once).")
def produce(
    topic: str,
    bootstrap: str,
    config_file: str | None,
    overrides: tuple[str, ...],
    source: BinaryIO,
    key_separator: str | None,
) -> None:
    """Send each line of the input as one message to TOPIC.

    Unlike 0.8's producers it waits for the leader's acknowledgement (request.required.acks=1):
    with 0.8's default of 0 a message that nobody took would be lost without a word.
    """
    from kafka08.producer import KeyedMessage, Producer, ProducerConfig

    defaults = {
        "metadata.broker.list": bootstrap,
        "request.required.acks": "1",
        "partitioner.class": "kafka.producer.ByteArrayPartitioner",
    }
    config = ProducerConfig(read_config(config_file, overrides, defaults))
    separator = None if key_separator is None else key_separator.encode()
    sent = 0
    with Producer(config) as producer:
        messages = (
            KeyedMessage(topic, value, key=key) for key, value in split_lines(source, separator)
        )
        while batch := list(islice(messages, BATCH_COUNT)):
            producer.send(batch)
            sent += len(batch)
    click.echo(f"Sent {sent} messages to {topic}", err=True)


def split_lines(source: BinaryIO, separator: bytes | None) -> Iterator[tuple[bytes | None, bytes]]:
    """(key, value) of each line, without its line end; a line without the separator has no key."""
    for line in source:
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        key, found, value = text.partition(separator) if separator else (b"", b"", b"")
        yield (key, value) if found else (None, text)
