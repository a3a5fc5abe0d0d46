"""Our KafkaConsumer in the place of Java's in the VerifiableConsumer of Kafka's system tests.

    python -m tests.interop.programs.verifiable_consumer BOOTSTRAP TOPIC GROUP

Reads as a member of GROUP from the log's start, commits what it has read after each poll, and
writes a JSON object in a line for each event; leaves with SIGTERM. The events are those of
org.apache.kafka.tools.VerifiableConsumer 0.10.2.2.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from kafka08.consumer import KafkaConsumer
from kafka08.errors import KafkaError
from kafka08.structs import TopicPartition


def say(name: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"name": name, **fields}) + "\n")
    sys.stdout.flush()


def listed(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]


def main(bootstrap: str, topic: str, group: str) -> None:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    consumer.subscribe(
        [topic],
        on_assigned=lambda found: say("partitions_assigned", partitions=listed(found)),
        on_revoked=lambda found: say("partitions_revoked", partitions=listed(found)),
    )
    say("startup_complete")
    while not stopped:
        messages = consumer.poll(0.1)
        if not messages:
            continue
        runs = []
        for number, run in groupby(messages, lambda message: message.partition):
            offsets = [message.offset for message in run]
            runs.append(
                {
                    "topic": topic,
                    "partition": number,
                    "count": len(offsets),
                    "minOffset": offsets[0],
                    "maxOffset": offsets[-1],
                }
            )
        say("records_consumed", count=len(messages), partitions=runs)
        ends = {TopicPartition(topic, run["partition"]): run["maxOffset"] + 1 for run in runs}
        offsets_said = [{**listed([tp])[0], "offset": offset} for tp, offset in ends.items()]
        try:
            consumer.commit(ends)
            say("offsets_committed", success=True, offsets=offsets_said)
        except KafkaError as error:
            say("offsets_committed", success=False, error=str(error), offsets=offsets_said)
    consumer.close()
    say("shutdown_complete")


if __name__ == "__main__":
    main(*sys.argv[1:])
