"""Work on each message of a topic; move those that keep failing to a dead-letter topic, and go on.

A dead letter is JSON: where the message came from, why it failed, and its bytes. (Messages of Kafka
up to 0.10 have no headers.) It has the key of the message, so letters of a key stay in order. The
broker acknowledges the letter before the message counts as finished: a kill may repeat a message or
a letter, and loses neither.

usage: dead_letters.py TOPIC GROUP [--limit COUNT]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import time
from typing import Any

from kafka08.consumer import KafkaConsumer, MessageAndMetadata
from kafka08.errors import KafkaError
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord

Message = MessageAndMetadata[Any, Any]

ATTEMPTS = 3
PAUSE_S = 0.1


def work(message: Message) -> None:
    """Replace this by your own. Here a message must be `order N`."""
    what, number = (message.value or b"").split()
    if what != b"order":
        raise ValueError(f"{what.decode()} is not an order")
    print(message.partition, message.offset, int(number))


def letter(message: Message, error: Exception) -> bytes:
    """The dead letter for a message. Its bytes may be anything, so they are base64."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    return json.dumps(
        {
            "topic": message.topic,
            "partition": message.partition,
            "offset": message.offset,
            "error": f"{type(error).__name__}: {error}",
            "key": text(message.key),
            "value": text(message.value),
        }
    ).encode()


def failure_of(message: Message) -> Exception | None:
    """The last error after ATTEMPTS; None if one succeeded."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            work(message)
        except Exception as error:  # noqa: BLE001 - whatever it is, the letter names it
            if attempt == ATTEMPTS:
                return error
            time.sleep(PAUSE_S)
        else:
            return None
    raise AssertionError("the last attempt returns")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("topic")
    parser.add_argument("group")
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    bootstrap = os.environ.get("KAFKA08_BOOTSTRAP", "localhost:9092")
    keys = {"bootstrap.servers": bootstrap, "acks": "all", "retries": 10}
    done = 0
    with (
        KafkaProducer(KafkaProducerConfig(keys)) as producer,
        KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=arguments.group, auto_offset_reset="earliest"
        ) as consumer,
    ):
        consumer.subscribe([arguments.topic])
        try:
            for message in consumer:  # asking for the next message finishes this one
                error = failure_of(message)
                if error is not None:
                    record = ProducerRecord(
                        f"{arguments.topic}.dead", letter(message, error), key=message.key
                    )
                    producer.send(record).result(timeout=60)
                    print(f"dead letter for offset {message.offset}: {error}", file=sys.stderr)
                done += 1
                if done == arguments.limit:
                    break
        except KeyboardInterrupt:
            pass  # leaving the block commits what is finished and leaves the group
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KafkaError as error:
        sys.exit(f"Error: {error}")
