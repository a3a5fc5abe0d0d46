"""A member that joins its group and leaves it at command: a line of stdin each, `join`, `leave`.

    python -m benchmarks.joining_member TOPIC KEY=VALUE...

Writes, after the seconds of the machine's monotonic clock, `joining` before its consumer is made,
`assigned N` when it has N partitions, `leaving` before the consumer is closed, and `left`. Ends at
the end of stdin.
"""

from __future__ import annotations

import sys
import threading
import time
from queue import SimpleQueue

from kafka08.config import parse_overrides
from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig

POLL_S = 0.1


def main(topic: str, *overrides: str) -> None:
    config = KafkaConsumerConfig(parse_overrides(overrides))
    words: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            words.put(line.strip())
        words.put("end")

    threading.Thread(target=listen, daemon=True).start()
    while words.get() == "join":
        say("joining")
        consumer = KafkaConsumer(config)
        consumer.subscribe([topic], on_assigned=lambda found: say(f"assigned {len(found)}"))
        while words.empty():
            consumer.poll(POLL_S)
        words.get()
        say("leaving")
        consumer.close()
        say("left")


def say(what: str) -> None:
    sys.stdout.write(f"{time.monotonic()} {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
