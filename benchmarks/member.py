"""A member of a group that reads until SIGTERM.

python -m benchmarks.member TOPIC KEY=VALUE...
"""

from __future__ import annotations

import signal
import sys

from kafka08.config import parse_overrides
from kafka08.consumer import ConsumerConfig, ConsumerConnector


def main(topic: str, *overrides: str) -> None:
    connector = ConsumerConnector(ConsumerConfig(parse_overrides(overrides)))
    signal.signal(signal.SIGTERM, lambda *_: connector.shutdown())
    [stream] = connector.create_message_streams({topic: 1})[topic]
    for _ in stream:
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
