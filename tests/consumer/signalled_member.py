"""A member as a process of its own, whose signal handler shuts its connector down.

    python -m tests.consumer.signalled_member CONNECT TOPIC

Prints its state when it has streams, then iterates; SIGTERM calls `shutdown()` in the handler, in
the very thread that iterates. Prints `left` when the iteration has ended.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.errors import ConsumerRebalanceFailed


def main(connect: str, topic: str) -> None:
    connector = ConsumerConnector(
        ConsumerConfig(
            group_id="g",
            consumer_id="a",
            zookeeper_connect=connect,
            zookeeper_session_timeout_ms=2000,
            rebalance_backoff_ms=100,
        )
    )
    signal.signal(signal.SIGTERM, lambda *_: connector.shutdown())
    [stream] = connector.create_message_streams({topic: 1})[topic]
    say(connector.state.name)
    with suppress(ConsumerRebalanceFailed):
        list(stream)
    list(stream)
    say("left")


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
