"""Work on each message of a topic as a member of a group; stop cleanly on SIGTERM and Ctrl-C.

A message is committed only after the loop has come back for the next one. So a worker that is
killed repeats its last messages, and loses none: the work must bear being done twice.

usage: worker.py TOPIC GROUP [--limit COUNT]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.errors import KafkaError


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("topic")
    parser.add_argument("group")
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    config = ConsumerConfig(
        {
            "zookeeper.connect": os.environ.get("KAFKA08_ZOOKEEPER", "localhost:2181"),
            "group.id": arguments.group,
            "auto.offset.reset": "smallest",  # a new group begins at the start of the log
            "auto.commit.interval.ms": "1000",
        }
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    done = 0
    with ConsumerConnector(config) as connector:
        [stream] = connector.create_message_streams({arguments.topic: 1})[arguments.topic]
        try:
            for message in stream:
                print(message.partition, message.offset, (message.value or b"").decode())
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
