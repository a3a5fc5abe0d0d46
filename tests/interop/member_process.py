"""A member of a group as a process of its own, to be killed: one line per message on stdout.

    python -m tests.interop.member_process TOPIC DELAY_MS key=value...

Prints `ready`, then `<partition> <offset>` for each message, flushed before the next one is asked
for, so that what is printed was handed out and what is committed was printed. It takes DELAY_MS
over each message.
"""

from __future__ import annotations

import sys
import time

from kafka08.config import parse_overrides
from kafka08.consumer import ConsumerConfig, ConsumerConnector


def main(topic: str, delay_ms: str, *overrides: str) -> None:
    out = sys.stdout
    with ConsumerConnector(ConsumerConfig(parse_overrides(overrides))) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        out.write("ready\n")
        for message in stream:
            out.write(f"{message.partition} {message.offset}\n")
            out.flush()
            time.sleep(int(delay_ms) / 1000)


if __name__ == "__main__":
    main(*sys.argv[1:])
