"""A member of a group as a process of its own, to be killed: one line per message on stdout.

    python -m tests.interop.member_process TOPIC key=value...

Prints `ready`, then `<partition> <offset>` for each message, flushed before the next one is asked
for, so that what is printed was handed out and what is committed was printed.
"""

from __future__ import annotations

import sys

from kafka08.config import parse_overrides
from kafka08.consumer import ConsumerConfig, ConsumerConnector


def main(topic: str, *overrides: str) -> None:
    out = sys.stdout
    with ConsumerConnector(ConsumerConfig(parse_overrides(overrides))) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        out.write("ready\n")
        for message in stream:
            out.write(f"{message.partition} {message.offset}\n")
            out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
