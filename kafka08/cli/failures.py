"""How a failure is told: what went wrong where, and one thing to do about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from typing import Final, NoReturn

from kafka08.errors import (
    ConfigError,
    ConsumerRebalanceFailed,
    InvalidMessage,
    KafkaError,
    LeaderNotAvailable,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    MessageTooLarge,
    NoBrokersAvailable,
    NotEnoughReplicas,
    RecordTooLarge,
    RequestTimedOut,
    SessionLost,
    UnknownTopicOrPartition,
    ZooKeeperUnreachable,
)
from kafka08.nearest import did_you_mean

FAILED: Final = 1
MISUSE: Final = 2

ADVICE: Final[dict[type[Exception], str]] = {
    ZooKeeperUnreachable: "see that ZooKeeper runs there, or give its own address with "
    "--zookeeper; its port is mostly 2181, a broker's is 9092",
    SessionLost: "see that ZooKeeper answers, then run the command again",
    NoBrokersAvailable: "see that a broker runs there, or give others with --bootstrap",
    LeaderNotAvailable: "see which broker is down: kafka08 topic describe",
    UnknownTopicOrPartition: "see which topics there are: kafka08 topic list",
    NotEnoughReplicas: "see which replicas are missing: kafka08 topic describe",
    RequestTimedOut: "see which replicas lag: kafka08 topic describe",
    MessageSizeTooLarge: "send smaller messages, or raise max.message.bytes of the topic",
    MessageSetSizeTooLarge: "send fewer messages at a time, or raise segment.bytes of the topic",
    RecordTooLarge: "send smaller messages, or raise max.request.size (--override "
    "max.request.size=N) and max.message.bytes of the topic",
    MessageTooLarge: "raise fetch.message.max.bytes: --override fetch.message.max.bytes=N",
    InvalidMessage: "check the log on its leader: kafka08 log check DIRECTORY",
    ConsumerRebalanceFailed: "see what holds it up: kafka08 group explain GROUP",
}
"""Error → what a user can do about it. The first of a chain of causes that is here counts; a
class stands before its base."""


def fail(error: Exception) -> NoReturn:
    """Tell the error and end."""
    code = report(error)
    drop_unwritten()
    sys.exit(code)


def report(error: Exception) -> int:
    """Say on stderr what happened and what can be done; the exit code."""
    from kafka08.cli.stderr_logging import say

    say(f"Error: {text_of(error)}")
    if (advice := advice_for(error)) is not None:
        say(f"Try: {advice}")
    return MISUSE if isinstance(error, ConfigError) else FAILED


def no_such_group(name: str, known: Collection[str] = ()) -> KafkaError:
    """For a group that nothing is known of: mostly one of the `known` names, mistyped."""
    return KafkaError(
        f"there is no group {name}: no member, and no offset in either store; kafka08 group list "
        f"shows those that are known{did_you_mean(name, known)}"
    )


def check_topic_exists(topic: str, known: Collection[str]) -> None:
    """UnknownTopicOrPartition, with the nearest name, unless `topic` is one of the `known`."""
    if topic not in known:
        raise UnknownTopicOrPartition(f"topic {topic} does not exist{did_you_mean(topic, known)}")


def drop_unwritten() -> None:
    """Forget the results that a full disk refused. Some Pythons keep them in stdout's buffer, try
    once more at exit, complain again, and make the exit code 120."""
    if sys.stdout is None:  # closed by whoever started us
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def text_of(error: Exception) -> str:
    """An error of the operating system without its number, any other as it is."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


def advice_for(error: Exception) -> str | None:
    """What helps against `error` or, if nothing is known of it, against what caused it."""
    for cause in _chain(error):
        for kind, advice in ADVICE.items():
            if isinstance(cause, kind):
                return advice
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
