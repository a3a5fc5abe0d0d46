"""A member of a group as a process of its own, to be killed: one line per message on stdout.

    python -m tests.interop.member_process TOPIC DELAY_MS key=value...

Prints `ready`, then `<partition> <offset>` for each message, flushed before the next one is asked
for, so that what is printed was handed out and what is committed was printed. It takes DELAY_MS
over each message.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kafka08.config import parse_overrides
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer, KafkaConsumerConfig
from kafka08.kernel import MessageAndMetadata

Messages = Iterable[MessageAndMetadata[bytes, bytes]]


@contextmanager
def member(topic: str, *overrides: str) -> Iterator[Messages]:
    """A KafkaConsumer if it is given brokers, otherwise a ConsumerConnector."""
    keys = parse_overrides(overrides)
    if "bootstrap.servers" in keys:
        with KafkaConsumer(KafkaConsumerConfig(keys)) as consumer:
            consumer.subscribe([topic])
            yield consumer
    else:
        with ConsumerConnector(ConsumerConfig(keys)) as connector:
            [stream] = connector.create_message_streams({topic: 1})[topic]
            yield stream


def main(topic: str, delay_ms: str, *overrides: str) -> None:
    out = sys.stdout
    with member(topic, *overrides) as messages:
        out.write("ready\n")
        for message in messages:
            out.write(f"{message.partition} {message.offset}\n")
            out.flush()
            time.sleep(int(delay_ms) / 1000)


if __name__ == "__main__":
    main(*sys.argv[1:])
