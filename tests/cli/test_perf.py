"""perf produce and perf consume have the columns of the JVM's tools and true counts."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from kafka08.cli.java_dates import DateFormat
from kafka08.cli.perf_consume import Drain, consume
from kafka08.cli.perf_figures import in_threads
from kafka08.cli.perf_produce import maker, produce, properties_of
from kafka08.consumer import ConsumerConfig
from kafka08.errors import ConsumerTimeout
from kafka08.producer import KafkaProducerConfig, ProducerConfig, StringEncoder
from kafka08.zk.group_store import GroupStore
from tests.cli.conftest import Commands, Inspector

MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


@pytest.mark.parametrize("how", [[], ["--sync"], ["--new-producer"], ["--new-producer", "--sync"]])
def test_messages_go_out(
    kafka08: Commands, inspect: Inspector, kafka08_topic: str, how: list[str]
) -> None:
    """There are one header and one line of figures, and the topic has every message."""
    size = ["--messages", "700", "--message-size", "50", "--threads", "2"]
    done = kafka08("perf", "produce", "--topics", kafka08_topic, *size, *how)
    header, figures = done.out.decode().splitlines()
    assert header.startswith("start.time, end.time, compression, message.size, batch.size, ")
    assert re.fullmatch(rf"{MOMENT}, {MOMENT}, 0, 50, 200, 0\.03, [\d.]+, 700, [\d.]+", figures)
    assert len(inspect.messages(kafka08_topic)) == 700


def test_figures_for_machines(kafka08: Commands, kafka08_topic: str) -> None:
    """--json prints an object per line of figures, with the columns as keys and no header."""
    load = ("--topics", kafka08_topic, "--messages", 90, "--message-size", 50)
    sent = json.loads(kafka08("perf", "produce", *load, "--json").out)
    assert (90, 50) == (sent["total_data_sent_in_nMsg"], sent["message_size"])
    assert re.fullmatch(MOMENT, sent["start_time"])
    read = ("perf", "consume", "--topic", kafka08_topic, "--messages", 90, "--json")
    assert 90 == json.loads(kafka08(*read).out)["data_consumed_in_nMsg"]
    detailed = ("--show-detailed-stats", "--reporting-interval", 30)
    lines = [json.loads(line) for line in kafka08(*read, *detailed).out.splitlines()]
    assert [30, 60, 90] == [line["data_consumed_in_nMsg"] for line in lines]
    assert 0 == lines[0]["thread_id"]


def test_messages_come_in(kafka08: Commands, inspect: Inspector, kafka08_topic: str) -> None:
    """The requested number is read; numbered messages have the text of the JVM's tool."""
    ids = ["--messages", "9", "--initial-message-id", "4", "--message-size", "200"]
    done = kafka08("perf", "produce", "--topics", kafka08_topic, *ids, "--hide-header")
    expected = f"Topic:{kafka08_topic}:ThreadID:0:MessageID:0000000004:".ljust(200, "x")
    assert inspect.messages(kafka08_topic)[0][1] == expected.encode()
    done = kafka08("perf", "consume", "--topic", kafka08_topic, "--messages", "9")
    header, figures = done.out.decode().splitlines()
    assert header.startswith("start.time, end.time, fetch.size, data.consumed.in.MB, ")
    assert re.fullmatch(rf"{MOMENT}, {MOMENT}, 1048576, 0\.0017, [\d.]+, 9, [\d.]+", figures)


def test_details_come_as_it_goes(kafka08: Commands, inspect: Inspector, kafka08_topic: str) -> None:
    """There are a line for each thread and interval, and one for the rest, without a total. Without
    --messages all messages are read. The group is deleted afterwards."""
    how = ["--show-detailed-stats", "--reporting-interval", "40", "--date-format", "'at' HH"]
    load = ["--messages", "100", "--threads", "2", "--message-size", "1024"]
    done = kafka08("perf", "produce", "--topics", kafka08_topic, *load, *how)
    header, *lines = done.out.decode().splitlines()
    assert header.startswith("time, thread.id, compression, message.size, batch.size, total.data")
    pattern = r"at \d\d, ([01]), 0, 1024, 200, (0\.\d{4}), [\d.]+, (\d+), [\d.]+"
    found = sorted(re.fullmatch(pattern, line).groups() for line in lines)  # type: ignore[union-attr]
    steps = [("0.0391", "40"), ("0.0488", "50")]
    assert found == [(thread, *step) for thread in "01" for step in steps]
    silence = ["--override", "consumer.timeout.ms=3000"]
    done = kafka08("perf", "consume", "--topic", kafka08_topic, *how, *silence)
    header, *lines = done.out.decode().splitlines()
    assert header.startswith("time, thread.id, fetch.size, data.consumed.in.MB, ")
    pattern = r"at \d\d, 0, 1048576, 0\.\d{4}, [\d.]+, (\d+), [\d.]+"
    assert [re.sub(pattern, r"\1", line) for line in lines] == ["40", "80", "100"]
    assert done.err == ""
    assert not [
        group
        for group in GroupStore(inspect.store.zk).groups()
        if group.startswith("perf-consumer-")
    ]


class FakeConnector:
    """A connector whose streams end at once."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.config = config
        self.deleted = False

    def create_message_streams(self, counts: dict[str, int]) -> dict[str, list[Any]]:
        return {topic: [iter(())] for topic in counts}

    def shutdown(self) -> None:
        """Nothing is open."""

    def delete_group(self) -> None:
        self.deleted = True


@pytest.mark.parametrize(
    ("options", "read", "is_deleted"),
    [
        ([], "perf-consumer-", True),
        (["--group", "readers"], "readers", False),
        (["--config", "FILE"], "of-the-file", False),
        (["--override", "group.id=other"], "other", False),
        (["--config", "FILE", "--group", "readers"], "readers", False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_only_its_own_group_is_deleted(
    options: list[str],
    read: str,
    is_deleted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group that the user names, by --group or by group.id, keeps its committed offsets; --group
    overrides the file. A temporary group is deleted."""
    made: list[FakeConnector] = []

    def make(config: ConsumerConfig) -> FakeConnector:
        made.append(FakeConnector(config))
        return made[0]

    monkeypatch.setattr("kafka08.consumer.ConsumerConnector", make)
    file = tmp_path / "consumer.properties"
    file.write_text("group.id=of-the-file\n")
    words = [str(file) if word == "FILE" else word for word in options]
    with socket.create_server(("127.0.0.1", 0)) as server:  # the command looks for one first
        zookeeper = f"127.0.0.1:{server.getsockname()[1]}"
        done = CliRunner().invoke(consume, ["--topic", "t", "--zookeeper", zookeeper, *words])
    assert done.exit_code == 0, done.output
    [connector] = made
    assert connector.config.group_id.startswith(read)
    assert is_deleted == connector.deleted


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--csv-reporter-enabled"], "only a JVM has that reporter; --show-detailed-stats"),
        (["--metrics-dir", "d"], "only a JVM has that reporter"),
        (["--date-format", "w"], "the letter w is not one of yMEadDHkKhmsS"),
        (["--reporting-interval", "0"], "--reporting-interval"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_unsupported_options_are_refused_by_name(
    kafka08: Commands, option: list[str], said: str
) -> None:
    """Options of the JVM's tools that would have no effect are refused by name, and so are
    unsupported formats."""
    done = kafka08.refused("perf", "produce", "--topics", "t", "--messages", "1", *option)
    assert 2 == done.code
    assert said in done.err


def test_messages_are_counted_over_all_threads() -> None:
    """Several streams with more messages than requested read at once; together they read the
    requested number."""
    options = {
        "messages": 1000,
        "date_format": None,
        "reporting_interval": 1,
        "show_detailed_stats": False,
        "as_json": False,
    }
    drain = Drain(options, 1)
    start = threading.Barrier(4)

    def drain_one(thread: int) -> None:
        def stream() -> Iterator[SimpleNamespace]:
            start.wait(60)
            for _ in range(1000):
                time.sleep(0)  # so that threads take turns
                yield SimpleNamespace(value=b"xx")

        drain.run(thread, cast(Any, stream()))

    threads = [threading.Thread(target=drain_one, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert (drain.count, drain.size) == (1000, 2000)


@pytest.mark.parametrize(("count", "seconds"), [(0, 0.0), (999, 9.99), (1500, 15.0)])
def test_figures_end_with_the_last_message(count: int, seconds: float) -> None:
    """A read that consumer.timeout.ms ends lasted until its last message: the silence behind that
    is not in the figures, and every message is."""
    options = {
        "messages": None,
        "date_format": DateFormat("S"),
        "reporting_interval": 1,
        "show_detailed_stats": False,
        "as_json": False,
    }
    now = 0.0

    def stream() -> Iterator[SimpleNamespace]:
        nonlocal now
        for _ in range(count):
            now += 0.01
            yield SimpleNamespace(value=b"x")
        now += 5
        raise ConsumerTimeout

    drain = Drain(options, 1, timeout_ms=5000, time_s=lambda: now)
    drain.run(0, cast(Any, stream()))
    assert count == drain.count
    assert drain.last - drain.started == pytest.approx(seconds)


def test_the_last_details_leave_the_silence_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The rate of a thread's last line does not include the silence that ended it."""
    options = {
        "messages": None,
        "date_format": DateFormat("s"),
        "reporting_interval": 100,
        "show_detailed_stats": True,
        "as_json": False,
    }
    now = 0.0

    def stream() -> Iterator[SimpleNamespace]:
        nonlocal now
        for _ in range(50):
            now += 0.02
            yield SimpleNamespace(value=b"x")
        now += 5
        raise ConsumerTimeout

    Drain(options, 1, timeout_ms=5000, time_s=lambda: now).run(0, cast(Any, stream()))
    assert capsys.readouterr().out == "1, 0, 1, 0.0000, 0.0000, 50, 50.0000\n"


def test_ctrl_c_ends_every_thread() -> None:
    """An interrupted command does not go on in its threads: they do not keep the process alive."""
    ended_with_the_process = []
    in_threads(3, lambda _: ended_with_the_process.append(threading.current_thread().daemon))
    assert ended_with_the_process == [True, True, True]


@pytest.mark.parametrize("first", [None, 7])
def test_sizes_vary_with_and_without_numbers(first: int | None) -> None:
    """--vary-message-size applies to numbered messages too; one that is too short for its number
    has the number alone, as from the JVM's tool."""
    options = {"message_size": 200, "initial_message_id": first, "vary_message_size": True}
    make = maker(options, 0)
    messages = [make("t", number) for number in range(300)]
    assert len({len(message) for message in messages}) > 50
    assert max(map(len, messages)) <= 200
    if first is not None:
        assert all(b"MessageID:%010d:" % (7 + n) in one for n, one in enumerate(messages))


@pytest.mark.parametrize("is_new", [True, False])
def test_bytes_are_sent_whatever_the_serializers(is_new: bool) -> None:
    """The serializers of a producer's file are not used: the messages are bytes."""
    words = ["--bootstrap", "b:1", "--topics", "t", "--messages", "1"]
    if is_new:
        text = "org.apache.kafka.common.serialization.StringSerializer"
        words += ["--new-producer", f"--override=value.serializer={text}"]
    else:
        words += ["--override=serializer.class=kafka.serializer.StringEncoder"]
    with produce.make_context("produce", words) as context:
        properties = properties_of(context.params)
    if is_new:
        assert KafkaProducerConfig(properties).serializers() == (None, None)
    else:
        assert not isinstance(ProducerConfig(properties).encoder(), StringEncoder)
