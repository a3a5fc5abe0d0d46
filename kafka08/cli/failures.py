"""Reports failures: what happened, where, and what to do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from kafka08.errors import (
    AuthenticationFailed,
    ConfigError,
    ConsumerCoordinatorNotAvailable,
    ConsumerRebalanceFailed,
    InvalidMessage,
    InvalidPartitions,
    InvalidReplicationFactor,
    KafkaError,
    LeaderNotAvailable,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    MessageTooLarge,
    NoBrokerRegistered,
    NoBrokersAvailable,
    NoBrokerSaysVersions,
    NoChroot,
    NoSuchTopicOrPartition,
    NotEnoughReplicas,
    OffsetOutOfRange,
    PartitionsOnlyGrow,
    RecordTooLarge,
    RequestTimedOut,
    RequestTimeout,
    SessionLost,
    TooFewBrokers,
    TopicExists,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    ZooKeeperUnreachable,
)
from kafka08.nearest import did_you_mean
from kafka08.structs import TopicPartition

FAILED: Final = 1
MISUSE: Final = 2

_EXISTING: Final = (
    "list the existing topics: kafka08 topic list, or a topic's partitions: kafka08 topic describe "
    "TOPIC"
)
_CHROOT: Final = (
    "give {zookeeper} as the brokers' zookeeper.connect has it, with its chroot; or start a "
    "broker; if one runs, its log says why it is not registered"
)
_BROKERS: Final = (
    "give at most as many replicas as kafka08 broker list shows, or --brokers names; or start "
    "brokers"
)
_MORE: Final = "give more partitions than kafka08 topic describe TOPIC shows"
ADVICE: Final[dict[type[Exception], str]] = {
    ZooKeeperUnreachable: "check that ZooKeeper is running at that address, or give another one "
    "with {zookeeper}; its default port is 2181, a broker's is 9092",
    SessionLost: "check that ZooKeeper is running and not slow (a reply takes milliseconds; look "
    "at its disk), then run the command again",
    NoBrokerSaysVersions: "if these are brokers of 0.8 (api.level 0.8.2, the default of broker "
    "start), give {zookeeper} instead of {bootstrap}, or both: this takes a broker of 0.9 or later "
    "without ZooKeeper; else check that a broker is running at that address",
    NoBrokerRegistered: _CHROOT,
    NoChroot: _CHROOT,
    NoBrokersAvailable: "check that a broker is running at that address, or give other ones with "
    "{bootstrap}",
    AuthenticationFailed: "set security.protocol, and the keys of TLS (ssl.*) and of the login "
    "(sasl.*), in the file of --command-config or --config",
    LeaderNotAvailable: "find the broker that is down: kafka08 doctor",
    RequestTimeout: "check that the brokers respond and that each partition has a leader: kafka08 "
    "doctor",
    ConsumerCoordinatorNotAvailable: "start the broker that leads the group's partition of "
    "__consumer_offsets; if one is down, kafka08 doctor names it",
    UnknownTopicOrPartition: _EXISTING,
    NoSuchTopicOrPartition: _EXISTING,
    OffsetOutOfRange: "find the first and the last offset that the log has: kafka08 topic offsets "
    "TOPIC",
    UnsupportedForMessageFormat: "give an offset, earliest or latest instead of a time: the topic "
    "stores no timestamps (its message.format.version, or log.message.format.version of the "
    "brokers, is below 0.10)",
    NotEnoughReplicas: "compare Isr with min.insync.replicas: kafka08 topic describe TOPIC; "
    "kafka08 doctor says which broker is missing, or that the topic has too few replicas",
    RequestTimedOut: "find the replicas that lag: kafka08 topic describe",
    MessageSizeTooLarge: "send smaller messages, or raise max.message.bytes of the topic",
    MessageSetSizeTooLarge: "send fewer messages at a time, or raise segment.bytes of the topic",
    RecordTooLarge: "send smaller messages, or raise max.request.size (--override "
    "max.request.size=N) and max.message.bytes of the topic",
    MessageTooLarge: "raise fetch.message.max.bytes: --override fetch.message.max.bytes=N",
    InvalidMessage: "give the messages keys if the topic is compacted (from level 0.9.0 on it "
    "takes no others); if they were read, check the log: kafka08 log check DIRECTORY",
    ConsumerRebalanceFailed: "find the cause: kafka08 group explain GROUP",
    TopicExists: "give another name, or look at that topic: kafka08 topic describe TOPIC; kafka08 "
    "topic alter changes it",
    TooFewBrokers: _BROKERS,
    InvalidReplicationFactor: _BROKERS,
    PartitionsOnlyGrow: _MORE,
    InvalidPartitions: _MORE,
}
"""Error → advice. The first error in a chain of causes that has advice decides; a class comes
before its base. The names of options are filled in."""

as_json = False
"""Whether the command that runs was given --json."""
OPTIONS: Final = {"bootstrap": "--bootstrap", "zookeeper": "--zookeeper"}
_OWN_OPTIONS: Final = "kafka08_options"


@contextmanager
def own_options(**options: str) -> Iterator[None]:
    """Around a command with other options than OPTIONS: the advice for its errors names these."""
    try:
        yield
    except KafkaError as error:
        setattr(error, _OWN_OPTIONS, options)
        raise


def fail(error: Exception) -> NoReturn:
    """Report the error and exit."""
    code = report(error)
    drop_unwritten()
    sys.exit(code)


def report(error: Exception) -> int:
    """Print error and advice on stderr, with --json also on stdout; returns the exit code."""
    from kafka08.cli.echo import say, show

    say(f"Error: {text_of(error)}")
    advice = advice_for(error)
    if advice is not None:
        say(f"Try: {advice}")
    if as_json:
        with suppress(OSError, KafkaError):  # stdout itself may be what failed
            show(json.dumps({"error": text_of(error), "advice": advice}))
    return MISUSE if isinstance(error, ConfigError) else FAILED


def no_such_group(
    name: str, known: Collection[str] = (), *, has_zookeeper: bool = True
) -> KafkaError:
    """The error for an unknown group, probably a mistyped name of the `known` ones.
    `has_zookeeper`: whether it was looked for there."""
    if not has_zookeeper:
        return KafkaError(
            f"there is no group {name} that a broker knows: no member, and no offset in Kafka"
            f"{did_you_mean(name, known)}. To look for it in ZooKeeper, give --zookeeper"
        )
    return KafkaError(
        f"there is no group {name}: no member, and no offset in either store; kafka08 group list "
        f"shows the known groups{did_you_mean(name, known)}"
    )


def exit_if_silent(brokers: Mapping[int, str]) -> None:
    """Name the registered brokers that do not respond (id → why), and exit with FAILED, if there
    are any: what ZooKeeper says of them may not be so."""
    from kafka08.cli.echo import say

    for broker_id, why in brokers.items():
        say(f"Unknown: whether broker {broker_id} works: {why}")
    if brokers:
        sys.exit(FAILED)


def report_failed(title: str, failed: Mapping[TopicPartition, Exception]) -> int:
    """Say on stderr which partitions failed, why, and what to do; returns the exit code."""
    from kafka08.cli.echo import say

    for tp, error in failed.items():
        say(f"{title}: {tp}: {error}")
    say_advice(failed.values())
    return FAILED if failed else 0


def say_advice(errors: Iterable[Exception]) -> None:
    """Say what to do about several errors, the same once."""
    from kafka08.cli.echo import say

    for advice in dict.fromkeys(filter(None, map(advice_for, errors))):
        say(f"Try: {advice}")


def drop_unwritten() -> None:
    """Drop output that a full disk refused. Some Pythons keep it in stdout's buffer, try again at
    exit, fail again, and make the exit code 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def text_of(error: Exception) -> str:
    """The text of an error; one of the operating system without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


def advice_for(error: Exception) -> str | None:
    """The advice for `error` or, if there is none, for its cause."""
    for cause in _chain(error):
        if isinstance(cause, ZooKeeperUnreachable | NoBrokersAvailable):
            from kafka08.cli.peer_kind import advice_for_peer  # few commands need it

            found = advice_for_peer(cause)
            if found is not None:
                return found.format(**OPTIONS | getattr(error, _OWN_OPTIONS, {}))
        for kind, advice in ADVICE.items():
            if isinstance(cause, kind):
                return advice.format(**OPTIONS | getattr(error, _OWN_OPTIONS, {}))
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
