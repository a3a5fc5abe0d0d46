"""`kafka08 consume`: exactly the printed messages are committed, and no znode of the member
remains."""

from __future__ import annotations

import base64
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.cli.printer import Printer
from kafka08.cli.printing import Printing
from kafka08.errors import ConsumerRebalanceFailed, SessionLost, ZooKeeperError
from kafka08.zk import paths
from tests.cli.conftest import Commands, Inspector
from tests.waiting import until

QUIET = ("--override", "consumer.timeout.ms=500")
"""Ends a run that has nothing to read."""
READ = ("--override", "consumer.timeout.ms=3000")
"""Ends a run that has read everything: on a busy machine the first message may take a second."""


def fill(kafka08: Commands, topic: str, count: int) -> str:
    """Sends `count` messages 0, 1, … with keys, so that every partition gets some."""
    lines = b"".join(b"k%d:%d\n" % (n % 101, n) for n in range(count))
    kafka08("produce", topic, "--key-separator", ":", stdin=lines)
    return topic


def rows(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def next_offsets(printed: Iterable[dict[str, Any]]) -> dict[int, int]:
    """partition → the offset after the last printed message."""
    return {row["partition"]: row["offset"] + 1 for row in printed}


def committed(inspect: Inspector, group: str) -> dict[int, int]:
    """The group's committed offsets of the partitions from which it read."""
    return {p: offset for p, offset in inspect.committed(group).items() if offset}


def is_left(inspect: Inspector, group: str) -> bool:
    """Whether the group has no member and no owner."""
    zk = inspect.zk
    topics = zk.children_or_empty(f"{paths.group(group)}/owners")
    owners = [zk.children(paths.owners(group, topic)) for topic in topics]
    return not zk.children_or_empty(paths.consumer_ids(group)) and not any(owners)


def test_each_format(kafka08: Commands, inspect: Inspector) -> None:
    """Text prints the value and a line end. JSON prints one object per line, with text if it is
    UTF-8, else base64 and "encoding". Hex prints all five fields."""
    topic = inspect.create_topic("formats")
    lines = b'a|v\xc3\xa9 "x"\nplain\nb|\xff\xfe\n'
    kafka08("produce", topic, "--key-separator", "|", "--ignore-error", stdin=lines)
    every = ("consume", topic, "--from-beginning", "--max-messages", 3)
    assert 'vé "x"\nplain\n'.encode() + b"\xff\xfe\n" == kafka08(*every).out
    common = {"topic": topic, "partition": 0}
    assert [
        {**common, "offset": 0, "key": "a", "value": 'vé "x"'},
        {**common, "offset": 1, "key": None, "value": "plain"},
        {
            **common,
            "offset": 2,
            "key": base64.b64encode(b"b").decode(),
            "value": base64.b64encode(b"\xff\xfe").decode(),
            "encoding": "base64",
        },
    ] == rows(kafka08(*every, "--format", "json").out)
    hexadecimal = kafka08(*every, "--format", "hex").out.decode().splitlines()
    assert [f"{topic} 0 0 61 76c3a920227822", f"{topic} 0 1 null 706c61696e"] == hexadecimal[:2]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_limit_is_exact(kafka08: Commands, inspect: Inspector, threads: int) -> None:
    """--max-messages prints exactly this number, and commits exactly these messages, whatever the
    streams have buffered. The next run continues behind them in each partition."""
    topic = fill(kafka08, inspect.create_topic(f"limit-{threads}", 3), 1000)
    group = f"limited-{threads}"
    run = ("consume", topic, "--group", group, "--from-beginning", "--format", "json")
    first = kafka08(*run, "--threads", threads, "--max-messages", 123)
    assert "Consumed 123 messages\n" == first.err
    printed = rows(first.out)
    assert 123 == len(printed)
    assert next_offsets(printed) == committed(inspect, group)
    second = rows(kafka08(*run, "--threads", threads, "--max-messages", 877).out)
    places = [(row["partition"], row["offset"]) for row in [*printed, *second]]
    assert 1000 == len(set(places)) == len(places)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(
    kafka08: Commands, inspect: Inspector, number: signal.Signals
) -> None:
    """A signal in the middle of a stream gives exit code 0. Printed and committed messages agree,
    and the member and its owners are gone at once, not only after the session timeout."""
    group = f"signalled-{number}"
    topic = fill(kafka08, inspect.create_topic(f"signal-{number}", 2), 60_000)
    running = kafka08.start(
        "consume", topic, "--group", group, "--from-beginning", "--format", "json", "--threads", 2
    )
    running.await_out(100)
    done = running.stop(number)
    assert 0 == done.code
    assert is_left(inspect, group)
    printed = rows(done.out)
    assert f"Consumed {len(printed)} messages\n" == done.err
    assert next_offsets(printed) == committed(inspect, group)


def test_two_members_share_and_take_over(kafka08: Commands, inspect: Inspector) -> None:
    """Two members print all messages, each partition in order. When one is stopped, the other
    continues at its offsets. A partition that moves may repeat at most the one message that its
    first reader was printing."""
    topic = inspect.create_topic("shared", 4)
    fill(kafka08, topic, 1000)
    run = ("consume", topic, "--group", "sharers", "--from-beginning", "--format", "json")
    quick = ("--override", "rebalance.backoff.ms=200")
    first = kafka08.start(*run, *quick)
    first.await_out(1000)
    second = kafka08.start(*run, *quick)
    until(lambda: len(inspect.zk.children(paths.consumer_ids("sharers"))) == 2)
    until(lambda: len(owners(inspect, topic)) == 2)
    fill(kafka08, topic, 1000)
    until(lambda: len(rows(first.out)) + len(rows(second.out)) >= 2000)
    assert rows(second.out), "it owns two of the four partitions"
    assert 0 == first.stop().code
    fill(kafka08, topic, 1000)
    until(lambda: len(places(first.out) + places(second.out)) == 3000)
    assert 0 == second.stop().code
    counts = places(first.out) + places(second.out)
    repeated = sum(counts.values()) - len(counts)
    assert repeated <= 4, f"{repeated} repeated"
    assert next_offsets(sorted(map(row_of, counts), key=lambda row: row["offset"])) == committed(
        inspect, "sharers"
    )


def places(out: bytes) -> Counter[tuple[int, int]]:
    """(partition, offset) → the number of times it was printed."""
    return Counter((row["partition"], row["offset"]) for row in rows(out))


def row_of(place: tuple[int, int]) -> dict[str, int]:
    return {"partition": place[0], "offset": place[1]}


def owners(inspect: Inspector, topic: str) -> set[str]:
    """The members of group `sharers` that own a partition of `topic`."""
    group = "sharers"
    partitions = inspect.zk.children_or_empty(paths.owners(group, topic))
    nodes = [inspect.zk.get_or_none(paths.owner(group, topic, int(p))) for p in partitions]
    return {(node.data or "").rpartition("-")[0] for node in nodes if node is not None}


def test_after_kill_nothing_is_lost(kafka08: Commands, inspect: Inspector) -> None:
    """A member that was killed has committed nothing. The next one prints all its messages again,
    once its session has expired."""
    topic = fill(kafka08, inspect.create_topic("killed"), 1000)
    short = ("--override", "zookeeper.session.timeout.ms=2000")
    run = ("consume", topic, "--group", "killed", "--from-beginning", *short)
    running = kafka08.start(*run)
    running.await_out(1000)
    assert -signal.SIGKILL == running.stop(signal.SIGKILL).code
    until(lambda: is_left(inspect, "killed"))
    assert [b"%d" % n for n in range(1000)] == kafka08(*run, *READ).out.splitlines()


def test_a_reader_that_goes_away_ends_it(kafka08: Commands, inspect: Inspector) -> None:
    """`| head` ends the command without a message, in a topic with and without new messages, and
    its own group is deleted."""
    flowing = fill(kafka08, inspect.create_topic("flowing"), 20_000)
    quiet = fill(kafka08, inspect.create_topic("quiet"), 2)
    for topic in (flowing, quiet):
        done = kafka08.shell(
            f"kafka08 consume {topic} --from-beginning | head -n 1; exit ${{PIPESTATUS[0]}}"
        )
        assert (1, b"0\n") == (done.code, done.out)
        assert "Error" not in done.err
    groups = inspect.zk.children_or_empty(paths.CONSUMERS)
    assert not [group for group in groups if group.startswith("console-consumer-")]


def test_messages_behind_a_closed_pipe_are_not_committed(
    kafka08: Commands, inspect: Inspector
) -> None:
    """`| head -2` commits only the messages that head has printed, and the next run continues
    behind them. (It used to commit all that fits into a pipe.)"""
    topic = fill(kafka08, inspect.create_topic("beheaded"), 1000)
    run = f"consume {topic} --group beheaded --from-beginning"
    assert b"0\n1\n" == kafka08.shell(f"kafka08 {run} | head -n 2").out
    rest = kafka08(*run.split(), *READ).out.splitlines()
    assert b"%d" % 2 in rest
    assert rest == [b"%d" % n for n in range(int(rest[0]), 1000)]


def test_every_partition_taken_by_others_is_said(kafka08: Commands, inspect: Inspector) -> None:
    """A member without a partition says which members own them, and where to look."""
    topic = fill(kafka08, inspect.create_topic("taken"), 3)
    first = kafka08.start("consume", topic, "--group", "takers", "--from-beginning")
    first.await_out(3)
    done = kafka08(
        "consume", topic, "--group", "takers", "--override", "consumer.id=zz-last", *QUIET
    )
    first.stop()
    assert "other members of group takers own every partition" in first.err + done.err


@pytest.mark.parametrize(
    ("output", "said"),
    [("> /dev/full", "No space left on device"), (">&-", "standard output is closed")],
)
def test_unprinted_messages_are_not_committed(
    kafka08: Commands, inspect: Inspector, output: str, said: str
) -> None:
    """If stdout is full or closed, the exit code is 1, and the unprinted messages are not
    committed."""
    topic = fill(kafka08, inspect.create_topic(f"unprinted-{len(said)}"), 10)
    run = f"consume {topic} --group unprinted-{len(said)} --from-beginning"
    done = kafka08.shell(f"kafka08 {run} {output}")
    assert (1, f"Error: {said}") == (done.code, done.err.splitlines()[-1])
    assert 10 == len(kafka08(*run.split(), *READ).out.splitlines())


def test_patterns_choose_topics(kafka08: Commands, inspect: Inspector) -> None:
    """--whitelist selects whole names in Java's syntax, --blacklist the others."""
    for name in ("pattern-a", "pattern-b", "pattern-ab"):
        kafka08("produce", inspect.create_topic(name), stdin=name.encode())
    chosen = kafka08("consume", "--whitelist", "pattern-(a|b)", "--from-beginning", *READ)
    assert [b"pattern-a", b"pattern-b"] == sorted(chosen.out.splitlines())
    others = kafka08(
        "consume", "--blacklist", "pattern-a|[^p].*|p[^a].*", "--from-beginning", *READ
    )
    assert [b"pattern-ab", b"pattern-b"] == sorted(others.out.splitlines())


def test_an_absent_topic_is_waited_for_aloud(kafka08: Commands) -> None:
    """A missing topic gives a warning, so that a misspelt name does not look like an empty topic.
    consumer.timeout.ms still ends the command with 0. An unknown key gives a warning."""
    done = kafka08("consume", "absent", *QUIET, "--override", "no.such.key=1")
    assert "Waiting: topic absent does not exist" in done.err
    assert "WARNING: Property no.such.key is not valid" in done.err
    assert done.err.endswith("Consumed 0 messages\n")


def test_an_absent_topic_has_a_near_name(kafka08: Commands, inspect: Inspector) -> None:
    """The warning for a missing topic has the nearest name."""
    inspect.create_topic("clickstream")
    done = kafka08("consume", "clickstraem", *QUIET)
    assert "topic clickstraem does not exist" in done.err
    assert "did you mean clickstream?" in done.err


def test_a_member_that_cannot_rebalance_does_not_wait_for_others(
    kafka08: Commands, inspect: Inspector
) -> None:
    """A member that cannot rebalance says why, and not that other members own all partitions."""
    zk = inspect.store.zk
    zk.ensure(paths.consumer_ids("spoilt"))
    zk.create(paths.consumer_id("spoilt", "other"), "[]")
    few = ("--override", "rebalance.max.retries=1", "--override", "rebalance.backoff.ms=100")
    done = kafka08("consume", inspect.create_topic("ours"), "--group", "spoilt", *few, code=1)
    zk.delete_recursive(paths.group("spoilt"))
    assert "/consumers/spoilt/ids/other" in done.err
    assert "Waiting" not in done.err


class Interrupted:
    """A stream of a member that loses ZooKeeper, then has a message; or that cannot rebalance."""

    def __init__(self, cause: Exception) -> None:
        self._error = ConsumerRebalanceFailed("it keeps trying")
        self._error.__cause__ = cause
        self._is_said = False

    def batches(self, _: int, __: int) -> Iterator[list[bytes]]:
        if not self._is_said:
            self._is_said = True
            raise self._error
        yield [b"m"]


@pytest.mark.parametrize(
    ("cause", "printed"), [(SessionLost("away"), 1), (ZooKeeperError("a bad znode"), 0)]
)
def test_a_member_without_zookeeper_keeps_trying(
    tmp_path: Path, cause: Exception, printed: int
) -> None:
    """As its warning says. (The command ended after 13 seconds of an outage.)"""
    connector: Any = SimpleNamespace(config=SimpleNamespace(auto_commit_enable=False))
    streams: Any = [Interrupted(cause)]
    stopping: Any = threading.Event()
    with (tmp_path / "out").open("wb") as output:
        printing = Printing(lambda _: b"m\n", 1, False, stopping)
        printer = Printer(output.fileno(), printing, idle_limit_ms=-1)
        printer.run(connector, streams)
    assert printed == printer.count
    assert (printer.failure is None) == bool(printed)


def test_a_pattern_that_matches_nothing_is_said(kafka08: Commands) -> None:
    """With a pattern that matches no topic the command says that it waits for a topic."""
    assert "no topic matches" in kafka08("consume", "--whitelist", "none-.*", *QUIET).err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Give one of TOPIC, --whitelist and --blacklist."),
        (("t", "--whitelist", "t"), "Give one of TOPIC, --whitelist and --blacklist."),
        (("a b",), "topic name a b is illegal"),
        (("--whitelist", ""), "--whitelist '' matches no topic"),
        (("--whitelist", "["), "topic pattern '[': an unclosed character class"),
        (("t", "--group", ""), "group.id: '' is not a legal group name"),
        (("t", "--group", "a/b"), "group.id: 'a/b'"),
        (("t", "--threads", "0"), "--threads"),
        (("t", "--max-messages", "0"), "--max-messages"),
        (("t", "--format", "%t %q"), "'%t %q' has the unknown token %q; known are %t"),
        (("t", "--format", "xml"), "'xml' is not one of text, json, hex, nor a template"),
        (("t", "--config", "absent"), "cannot read the configuration file absent"),
        (("t", "--override", "auto.offset.reset=x"), "auto.offset.reset: 'x' is not one of"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_misuse_is_2(kafka08: Commands, arguments: tuple[str, ...], said: str) -> None:
    """Misuse gives exit code 2, and the key or option, its value, and the legal ones. Nothing is
    printed on stdout."""
    done = kafka08.refused("consume", *arguments)
    assert 2 == done.code
    assert said in done.err
    assert b"" == done.out


def test_brokers_of_0_8_without_zookeeper_are_refused_at_once(kafka08: Commands) -> None:
    """With what to do, and without a warning for each try: it took 30 seconds."""
    del kafka08.environ["KAFKA08_ZOOKEEPER"]
    began = time.monotonic()
    bootstrap = kafka08.environ["KAFKA08_BOOTSTRAP"]
    done = kafka08("consume", "t", "--group", "g", "--bootstrap", bootstrap, code=1)
    assert time.monotonic() < began + 20
    assert "is a broker of 0.8, which coordinates no groups" in done.err
    assert "give --zookeeper instead of --bootstrap" in done.err
    assert "WARNING" not in done.err


@pytest.mark.parametrize(
    "command", ["consume t", "consume t --group g", "perf consume --topic t --messages 1"]
)
def test_a_zookeeper_that_is_not_there_is_explained(kafka08: Commands, command: str) -> None:
    """The error for a ZooKeeper that refuses comes at once, without a wait for a session; it has
    the server, the reason, and what to do."""
    done = kafka08.refused(*command.split(), "--zookeeper", "127.0.0.1:1")
    assert "ZooKeeper at 127.0.0.1:1 (127.0.0.1:1: connection refused)" in done.err
    assert "Try: check that ZooKeeper is running at that address" in done.err
