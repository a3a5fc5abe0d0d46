"""Send messages and wait until all in-sync replicas have each of them.

usage: produce.py TOPIC COUNT
"""

from __future__ import annotations

import argparse
import os
import sys

from kafka08.errors import KafkaError
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord


def main() -> int:
    """Exit code 1 if a message did not arrive."""
    parser = argparse.ArgumentParser()
    parser.add_argument("topic")
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    topic, count = arguments.topic, arguments.count
    config = KafkaProducerConfig(
        {
            "bootstrap.servers": os.environ.get("KAFKA08_BOOTSTRAP", "localhost:9092"),
            "acks": "all",
            "retries": 10,
            "linger.ms": 5,
        }
    )
    with KafkaProducer(config) as producer:
        producer.partitions_for(topic)  # waits once; without a broker each send would wait as long
        futures = [
            producer.send(ProducerRecord(topic, b"order %d" % number, key=b"%d" % (number % 7)))
            for number in range(count)
        ]
        failed = 0
        for number, future in enumerate(futures):
            try:
                future.result(timeout=60)
            except KafkaError as error:
                failed += 1
                print(f"order {number} was not acknowledged: {error}", file=sys.stderr)
    print(f"{count - failed} of {count} acknowledged")
    return int(failed > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KafkaError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
