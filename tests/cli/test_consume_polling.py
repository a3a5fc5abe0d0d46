"""`kafka08 consume --bootstrap`: a member of a coordinated group, templates, ranges."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.cli.consume_polling import PollingPrinter, find_end
from kafka08.cli.json_lines import record_of
from kafka08.cli.printing import Printing
from kafka08.cli.rendering import by_template, check_template
from kafka08.consumer.fetching.batch import MessageBatch
from kafka08.embedded import EmbeddedCluster
from kafka08.kernel import build_set, column_batches
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol.message_set import unpack
from kafka08.structs import TopicPartition
from tests.cli.conftest import Commands
from tests.cli.test_completion_source import offered

QUIET = ("--override", "consumer.timeout.ms=3000")
TIMES = (1_500_000_000_000, 1_500_000_001_000, 1_500_000_002_000)


@pytest.fixture(scope="session")  # as the cluster: tests of other modules may run in between
def commands(coordinating: Commands) -> Commands:
    """The messages of `words` have no timestamps; "0", "1" and "2" in partition 0 of `times` have
    TIMES."""
    cluster = coordinating.cluster
    for topic in ("words", "times"):
        cluster.create_topic(topic, partitions=2)
    untimed = KafkaProducerConfig(bootstrap_servers=cluster.bootstrap, api_version_request=False)
    with KafkaProducer(untimed) as producer:
        for number in range(20):
            value, key = b"%d" % number, b"k"
            producer.send(ProducerRecord("words", value, key=key, partition=number % 2))
    with KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)) as producer:
        values = [b"%d" % number for number in range(len(TIMES))]
        producer.send_many("times", values, partition=0, timestamps=TIMES)
    return coordinating


def rows(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_group_continues_where_it_stopped(commands: Commands) -> None:
    """The group continues where it stopped: exactly the printed messages are committed."""
    group = ("--group", "readers", "--assignor", "sticky", "--json")
    first = commands("consume", "words", "--from-beginning", *group, "--max-messages", 7)
    second = commands("consume", "words", "--from-beginning", *group, "--max-messages", 13)
    printed = [int(row["value"]) for row in rows(first.out) + rows(second.out)]
    assert sorted(printed) == list(range(20))
    assert "Consumed 13 messages" in second.err


def test_a_group_with_a_coordinator_is_completed(commands: Commands) -> None:
    """Tab completes the group, with the brokers alone."""
    commands("consume", "words", "--group", "tab-readers", "--from-beginning", "--max-messages", 1)
    assert {"tab-readers"} == offered("kafka08 group describe tab-", commands.environ)


def test_a_group_that_was_left_is_still_one_with_a_coordinator(commands: Commands) -> None:
    """A group without members is still a coordinated one, also for a command that has ZooKeeper,
    which knows only offsets of the group in Kafka."""
    commands("consume", "words", "--group", "left", "--from-beginning", "--max-messages", 20)
    for place in ((), ("--zookeeper", commands.cluster.zookeeper.connect_string)):
        described = json.loads(commands("group", "describe", "left", "--json", *place).out)
        assert ("coordinator", "Empty") == (described["kind"], described["state"])
        explained = commands("group", "explain", "left", *place).out
        assert explained.startswith(b"Note: left: the group has no members; 0 messages")


def test_the_offsets_of_a_group_with_a_coordinator_go_out_and_in(
    commands: Commands, tmp_path: Path
) -> None:
    """By the brokers alone, all groups are exported as JSON without offsets in ZooKeeper, and those
    of a pattern in the JVM's format. Both can be imported."""
    commands("consume", "words", "--group", "moved", "--from-beginning", "--max-messages", 20)
    everything = json.loads(commands("offsets", "export").out)
    assert {"words": {"0": [None, 10], "1": [None, 10]}} == everything["groups"]["moved"]
    file = tmp_path / "offsets"
    commands("offsets", "export", "--match", "mov*", "--format", "jvm", "--output", file)
    lines = [f"/consumers/moved/offsets/words/{number}:10" for number in range(2)]
    assert lines == file.read_text().splitlines()
    file.write_text(file.read_text().replace(":10", ":4"))
    commands("offsets", "import", file, "--execute")
    again = json.loads(commands("offsets", "export", "moved").out)
    assert {"words": {"0": [None, 4], "1": [None, 4]}} == again["groups"]["moved"]


def test_a_name_that_no_znode_can_have_is_one_of_a_coordinator(commands: Commands) -> None:
    """A group `a/b` of some client is exported and reset by the brokers alone. (It made the export
    of all groups fail.)"""
    commands("consume", "words", "--group", "a/b", "--from-beginning", "--max-messages", 20)
    commands("group", "reset", "a/b", "--to", "3", "--execute")
    exported = json.loads(commands("offsets", "export").out)
    assert {"words": {"0": [None, 3], "1": [None, 3]}} == exported["groups"]["a/b"]


def test_of_two_addresses_in_the_environment_the_right_one_is_used(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`eval "$(kafka08 status --env)"` sets both: --until takes the brokers'. (It was misuse.) A
    --zookeeper that is typed is still refused."""
    zookeeper = commands.cluster.zookeeper.connect_string
    monkeypatch.setitem(commands.environ, "KAFKA08_ZOOKEEPER", zookeeper)
    one = ("consume", "words", "--partition", 0, "--until", "end")
    assert 10 == commands(*one).out.count(b"\n")
    assert "--until needs --bootstrap" in commands(*one, "--zookeeper", zookeeper, code=2).err


def test_silence_of_dead_brokers_is_a_failure(commands: Commands) -> None:
    """At consumer.timeout.ms a group without messages ends with 0; one that reaches no broker with
    1, and the cause."""
    read = ("consume", "words", "--group", "late", *QUIET)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        ended = commands(*read, "--bootstrap", address, code=1)
    assert f"no broker responded for 3 s: none of {address}" in ended.err
    assert "Consumed 0 messages" in commands(*read).err


def test_addresses_without_a_broker_are_refused_at_once(commands: Commands) -> None:
    """A port that refuses and a host that is unknown, without a warning for each try: it took 30
    seconds. One of several addresses is enough."""
    wrong = "127.0.0.1:1,no-such-host.invalid:9092"
    began = time.monotonic()
    ended = commands("consume", "words", "--group", "lost", "--bootstrap", wrong, code=1)
    assert time.monotonic() < began + 20
    assert ended.err.startswith("Error: no broker responded: cannot connect to 127.0.0.1:1: ")
    assert "\nTry: check that a broker is running at that address" in ended.err
    one_right = f"{wrong},{commands.cluster.bootstrap}"
    read = ("consume", "words", "--group", "lost", "--from-beginning", "--max-messages", 1)
    assert b"" != commands(*read, "--bootstrap", one_right).out


def test_a_signal_ends_it_although_no_broker_answers(commands: Commands) -> None:
    """With an error, for what it printed is not committed. It took a minute and a half."""
    slow = ("--override", "auto.commit.interval.ms=600000")
    running = commands.start("consume", "words", "--group", "stuck", "--from-beginning", *slow)
    running.await_out(20)
    commands.cluster.pause(0)
    try:
        began = time.monotonic()
        ended = running.stop(signal.SIGINT)
        assert time.monotonic() - began < 60
    finally:
        commands.cluster.resume(0)
    assert ended.code == 1
    assert "the commit took longer than the timeout" in ended.err


def test_without_a_group_nothing_is_committed(commands: Commands) -> None:
    """Without a group each run reads everything, commits nothing, and ends after a silence."""
    for _ in range(2):
        done = commands("consume", "--whitelist", "words|none", "--from-beginning", *QUIET)
        assert sorted(map(int, done.out.split())) == list(range(20))


def test_a_range_of_offsets(commands: Commands) -> None:
    """A range begins at an offset, or one counted from the end, and ends at another, or at the
    present end."""
    one = ("consume", "words", "--partition", 1)
    middle = commands(*one, "--offset", 2, "--until", 5)
    assert middle.out == b"5\n7\n9\n"
    assert "the next offset is 5" in middle.err
    tail = commands(*one, "--offset", -3, "--until", "end", "--print-key")
    assert tail.out == b"k\t15\nk\t17\nk\t19\n"
    rest = commands(*one, "--offset", -1, "--until", 10**20, "--no-wait-at-logend")
    assert rest.out == b"19\n"


def test_committed_messages_of_a_partition(tmp_path: Path) -> None:
    """With isolation.level=read_committed a partition ends before its first open transaction, and
    has no message of an aborted one. --last, which has both, says so."""
    with EmbeddedCluster(1, level="0.11.0") as cluster:
        cluster.create_topic("ended", 1)
        keys = {"bootstrap.servers": cluster.bootstrap, "transactional.id": "writer"}
        with KafkaProducer(KafkaProducerConfig(keys)) as producer:
            producer.init_transactions()
            for value, end in (
                (b"a", producer.commit_transaction),
                (b"b", producer.abort_transaction),
                (b"c", producer.commit_transaction),
                (b"d", producer.abort_transaction),
                (b"open", None),
            ):
                producer.begin_transaction()
                producer.send(ProducerRecord("ended", value, partition=0)).result(30)
                if end is not None:
                    end()
            commands = Commands(cluster, tmp_path)
            del commands.environ["KAFKA08_ZOOKEEPER"]
            all_of_it = ("consume", "ended", "--partition", 0, "--no-wait-at-logend")
            committed = ("--override", "isolation.level=read_committed")
            until_end = ("consume", "ended", "--partition", 0, "--until", "end")
            last = commands("consume", "ended", "--last", 9, *committed)
            assert commands(*all_of_it).out == last.out == b"a\nb\nc\nd\nopen\n"
            assert "open and of aborted transactions" in last.err
            assert commands(*all_of_it, *committed).out == b"a\nc\n"
            assert commands(*until_end, *committed).out == b"a\nc\n"
            producer.abort_transaction()


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("--offset", f"@{TIMES[1]}", "--until", "end"), [1, 2]),
        (("--offset", f"@{TIMES[0] + 1}", "--until", f"@{TIMES[2]}"), [1]),
        (("--until", "@2017-07-14T02:40:01+00:00"), [0]),
        (("--offset", f"@{TIMES[2] + 1}", "--until", "end"), []),
        (("--until", f"@{TIMES[2] + 1}"), [0, 1, 2]),
    ],
)
def test_a_range_of_times(commands: Commands, words: tuple[str, ...], printed: list[int]) -> None:
    """A range by time has the messages from the first at or after one time to the first at or after
    another."""
    done = commands("consume", "times", "--partition", 0, *words, "--print-timestamp")
    assert done.out == b"".join(b"%d\t%d\n" % (TIMES[number], number) for number in printed)


def test_times_of_a_group(commands: Commands) -> None:
    """--print-timestamp prints the time before the key, and %T in a template is the time."""
    start = ("consume", "times", "--from-beginning", *QUIET)
    assert commands(*start, "--print-timestamp", "--print-key").out.split(b"\n")[:3] == [
        b"%d\tnull\t%d" % (time, number) for number, time in enumerate(TIMES)
    ]
    done = commands(*start, "--format", r"%T %s\n")
    assert done.out.split(b"\n")[0] == b"%d 0" % TIMES[0]


def test_json_has_the_times(commands: Commands) -> None:
    """JSON has a group's timestamps, if messages have any, and a partition's with
    --print-timestamp. `produce --format json` accepts these lines."""
    as_json = ("--from-beginning", *QUIET, "--format", "json")
    timed = rows(commands("consume", "times", *as_json).out)
    assert list(TIMES) == [row["timestamp"] for row in timed]
    assert {False} == {
        "timestamp" in row for row in rows(commands("consume", "words", *as_json).out)
    }
    one = ("consume", "times", "--partition", 0, "--max-messages", 1, "--json")
    assert [timed[0]] == rows(commands(*one, "--print-timestamp").out)
    line = json.dumps(timed[0]).encode()
    assert ProducerRecord("t", b"0", partition=0, timestamp=TIMES[0]) == record_of("t", line)
    last = ("consume", "times", "--last", 1, "--json")
    assert [timed[-1]] == rows(commands(*last, "--print-timestamp").out)


def test_a_topic_is_copied_with_its_times(commands: Commands) -> None:
    """`consume --format json | produce --format json` keeps keys, partitions and timestamps."""
    read = ("--from-beginning", *QUIET, "--format", "json")
    lines = commands("consume", "times", *read).out
    commands.cluster.create_topic("copy", partitions=2)
    commands("produce", "copy", "--format", "json", stdin=lines)
    copied = rows(commands("consume", "copy", *read).out)
    assert [{**row, "topic": "copy"} for row in rows(lines)] == copied


def test_a_time_finds_nothing_among_messages_without_times(commands: Commands) -> None:
    """Reading begins at the log's end, and a warning names the partition, why, and what to do. A
    time behind the last message gives none."""
    words = ("--offset", f"@{TIMES[0]}", "--until", "end")
    done = commands("consume", "words", "--partition", 1, *words)
    assert done.out == b""
    assert "Warning: [words,1]: none of its messages has a timestamp" in done.err
    assert "Give --offset earliest or a number instead" in done.err
    reset = ("group", "reset", "sleepers", "--to", "2017-07-14T02:40:00+00:00")
    plan = commands(*reset, "--topic", "words", "--json")
    assert [10, 10] == [row["new"] for row in json.loads(plan.out)]
    for number in range(2):
        assert f"Warning: [words,{number}]: none of its messages has a timestamp" in plan.err
    assert "Use --to with earliest" in plan.err
    assert "Warning" not in commands(*reset, "--topic", "times").err
    late = ("--offset", f"@{TIMES[2] + 1}", "--until", "end")
    assert "Warning" not in commands("consume", "times", "--partition", 0, *late).err


def test_the_advice_about_an_end_time_names_its_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The warning that no message has a timestamp says what to give to the option that has the
    time: --until."""
    tp = TopicPartition("words", 0)
    monkeypatch.setattr("kafka08.client.log_offsets.offsets_at", lambda *_: ({tp: 10}, [tp]))
    metadata = SimpleNamespace(
        topics=["words"], partitions=lambda _: [SimpleNamespace(partition=0)]
    )
    cluster = SimpleNamespace(refresh=lambda: metadata)
    assert find_end(cluster, tp, f"@{TIMES[0]}") == 10  # type: ignore[arg-type]
    assert "Give --until end or a number instead" in capsys.readouterr().err


def test_a_limit_needs_a_partition(commands: Commands) -> None:
    """--until and --offset need a partition."""
    for option in (("--until", "end"), ("--until", "7"), ("--offset", f"@{TIMES[0]}")):
        done = commands("consume", "words", *option, code=2)
        assert f"{option[0]} needs --partition" in done.err


class Gapped:
    """A consumer of the offsets 0, 2, 4, 6 that returns three messages at a time, and after a seek
    one: a repeated fetch may be cut elsewhere."""

    def __init__(self) -> None:
        self.next = 0
        self._most = 3

    def position(self, _: TopicPartition) -> int:
        return self.next

    def seek(self, _: TopicPartition, offset: int) -> None:
        self.next = offset
        self._most = 1

    def poll_batch(self, _: float, most: int, __: int) -> MessageBatch | None:
        found = [n for n in (0, 2, 4, 6) if n >= self.next][: min(most, self._most)]
        self.next = found[-1] + 1
        data = b"".join(bytes(build_set([(None, b"%d" % n)], n, magic=1)) for n in found)
        [columns] = [c for c in column_batches(data, 0, None, unpack, timestamps=True) if c.count]
        return MessageBatch(TopicPartition("t", 0), columns)


def joined_values(batch: MessageBatch) -> bytes:
    return b"".join(value or b"" for value in batch.values())


@pytest.mark.parametrize(("end", "printed"), [(3, b"02"), (5, b"024"), (6, b"024"), (0, b"")])
def test_a_limit_in_a_log_with_gaps(end: int, printed: bytes, tmp_path: Path) -> None:
    """The batch that crosses the limit is read again without the messages behind it."""
    consumer: Any = Gapped()
    never: Any = threading.Event()
    with (tmp_path / "out").open("w+b") as output:
        printing = Printing(joined_values, None, False, never)
        printer = PollingPrinter(consumer, output.fileno(), printing, idle_limit_ms=-1)
        printer.run(until={TopicPartition("t", 0): end})
        output.seek(0)
        assert output.read() == printed


class Cleaned(Gapped):
    """Nothing is there any more from offset 4 on."""

    def poll_batch(self, timeout: float, most: int, size: int) -> MessageBatch | None:
        return super().poll_batch(timeout, most, size) if self.next < 3 else None


def test_an_end_whose_last_messages_were_removed_is_reached(tmp_path: Path) -> None:
    """The cleaner may remove the last messages below the end. (The command waited for them.)"""
    consumer: Any = Cleaned()
    never: Any = threading.Event()
    with (tmp_path / "out").open("w+b") as output:
        printing = Printing(joined_values, None, False, never)
        printer = PollingPrinter(consumer, output.fileno(), printing, idle_limit_ms=-1)
        printer.run(until={TopicPartition("t", 0): 9}, is_at_end=lambda: True)
        output.seek(0)
        assert output.read() == b"024"


def test_a_group_whose_name_is_no_znode(commands: Commands) -> None:
    """A group with a coordinator may be called a/b: it is described also with ZooKeeper, which
    cannot have it. Commands that would write to ZooKeeper say how to leave it out."""
    commands.cluster.create_topic("slashed")
    commands("produce", "slashed", stdin=b"a\nb\n")
    commands("consume", "slashed", "--group", "a/b", "--from-beginning", "--max-messages", 1)
    zookeeper = ("--zookeeper", commands.cluster.zookeeper.connect_string)
    described = commands("group", "describe", "a/b", "--json", *zookeeper).out
    assert "slashed" in described.decode()
    assert "there is no group a/c" in commands("group", "describe", "a/c", *zookeeper, code=1).err
    for words in (("get", "a/b"), ("set", "a/b", "slashed:0=0")):
        done = commands("offsets", *words, *zookeeper, code=2)
        assert "'a/b' cannot be the name of a group in ZooKeeper" in done.err
        assert "give --bootstrap without --zookeeper" in done.err


def test_a_time_in_a_topic_without_timestamps_is_advised(commands: Commands) -> None:
    """Error 43 alone does not say what to do."""
    commands.cluster.create_topic("untimed", config={"message.format.version": "0.9.0"})
    done = commands("consume", "untimed", "--partition", 0, "--offset", "@2020-01-01", code=1)
    assert "UnsupportedForMessageFormat (43)" in done.err
    assert "Try: give an offset, earliest or latest instead of a time" in done.err


def test_illegal_values_and_options_are_refused(commands: Commands) -> None:
    """A value that cannot be parsed is refused with the legal forms. An option of a coordinated
    group needs --bootstrap."""
    for words, expected in (
        (("--offset", "@noon"), "is not N, -N, earliest, latest or @TIME"),
        (("--until", "tomorrow"), "is not N, @TIME or end"),
        (("--format", "xml"), "is not one of text, json, hex"),
        (("--format", "%x"), "%t topic, %p partition"),
    ):
        assert expected in commands("consume", "words", "--partition", 0, *words, code=2).err
    there = ("--zookeeper", "127.0.0.1:1")
    assert (
        "needs --bootstrap"
        in commands("consume", "words", "--assignor", "range", *there, code=2).err
    )


def batch_of(*messages: tuple[bytes | None, bytes | None]) -> MessageBatch:
    data = build_set(list(messages), 5, magic=1, timestamps=TIMES[: len(messages)])
    [columns] = [c for c in column_batches(data, 0, None, unpack, timestamps=True) if c.count]
    return MessageBatch(TopicPartition("t", 1), columns)


def test_a_template_is_filled_for_each_message() -> None:
    """All tokens of a template are replaced. Null is printed as a word and has the size -1."""
    render = by_template(r"%t-%p-%o-%T %k(%K)=%s(%S) 100%%\n")
    batch = batch_of((b"key", b"value"), (None, None))
    lines = [
        b"t-1-5-1500000000000 key(3)=value(5) 100%",
        b"t-1-6-1500000001000 null(-1)=null(-1) 100%",
        b"",
    ]
    assert render(batch) == b"\n".join(lines)


def test_a_template_may_have_any_bytes() -> None:
    """Bytes of a template that are not UTF-8 are printed as they were given."""
    assert b"\xffv\xff" == by_template(os.fsdecode(b"\xff%s\xff"))(batch_of((None, b"v")))


def test_an_unknown_token_is_refused() -> None:
    """The error for an unknown token lists the known ones."""
    for template in ("%x", r"%s\q"):
        with pytest.raises(ValueError, match="%T timestamp"):
            check_template(template)


def test_output_of_a_batch_without_timestamps() -> None:
    """A message of 0.8 has the time -1."""
    [columns] = [c for c in column_batches(build_set([(None, b"v")]), 0, None, unpack) if c.count]
    assert by_template("%T")(MessageBatch(TopicPartition("t", 0), columns)) == b"-1"


def test_a_configuration_file_has_the_keys_of_0_10(commands: Commands, tmp_path: Path) -> None:
    """--config accepts a consumer's file with the keys of 0.10."""
    file = tmp_path / "consumer.properties"
    file.write_text("group.id=from-file\nauto.offset.reset=earliest\nmax.poll.records=3\n")
    done = commands("consume", "words", "--config", file, "--max-messages", 20)
    assert sorted(map(int, done.out.split())) == list(range(20))
