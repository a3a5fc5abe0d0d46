"""`kafka08 top`: its keys, the size of its screen, and a run in a real terminal."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from kafka08.admin import AdminClient
from kafka08.cli.spinner import AFTER_S
from kafka08.cli.top import first_key, show_once
from kafka08.cli.top_screen import GROUPS, HELP, TOPICS, Screen, cells_of, head, name_of, render
from kafka08.embedded import EmbeddedCluster
from kafka08.exporter.histories import Histories
from kafka08.exporter.summary import (
    BrokerRow,
    GroupPartitionRow,
    Summary,
    group_partitions,
    summary_of,
)
from kafka08.lifecycle import Closeable
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, PartitionState
from kafka08.structs import Broker, TopicPartition

DEADLINE = 60.0
NOW = 1_700_000_000_000


def view(time_s: int, topics: int = 3) -> ClusterView:
    """Each topic has two partitions and grows by 10 messages a second. A group reads 5 of them."""
    partitions = {
        TopicPartition(f"t{n}", p): PartitionState(1, (1, 2), (1,), 0, 100 * n + 10 * time_s)
        for n in range(topics)
        for p in range(2)
    }
    committed = {TopicPartition("t1", p): Committed(5 * time_s, version=time_s) for p in range(2)}
    groups = {"busy": GroupState(2, committed), "idle": GroupState(0)}
    brokers = {1: Broker(1, "kafka1", 9092), 2: Broker(2, "kafka2", 9092)}
    return ClusterView(NOW + time_s * 1000, brokers, 1, partitions, groups)


def summary(topics: int = 3) -> Summary:
    first, second = view(0, topics), view(2, topics)
    histories = Histories()
    histories.add(first)
    histories.add(second)
    return summary_of(second, first, histories)


def test_rows_have_rates_since_the_last_look() -> None:
    """Topics have the rate of both partitions since the last refresh, and groups the rate at which
    they read."""
    shown = summary()
    assert [20.0] * 3 == [row.per_second for row in shown.topics]
    [busy, idle] = shown.groups
    assert (10.0, 2 * (120 - 10)) == (busy.per_second, busy.lag)
    assert (0, 0, "OK") == (idle.members, idle.lag, idle.verdict)
    assert 6 == shown.under_replicated


def test_without_a_look_before_there_is_no_rate() -> None:
    """Without an earlier refresh the rate is unknown, not 0."""
    only = view(0)
    assert {None} == {row.per_second for row in summary_of(only, None, Histories()).topics}


def test_ids_are_no_counts() -> None:
    """The ids of brokers and partitions have no thousands separators: broker.id=1001, the first one
    that a broker draws, is shown as 1001. Counts have them."""
    broker = BrokerRow(1001, "kafka1:9092", True, 1200, 2400, 0, 1500.0)
    assert ["1001", "kafka1:9092", "yes", "1,200", "2,400", "0", "1,500.0"] == cells_of(broker)
    partition = GroupPartitionRow("g", "t", 1023, None, 4000, 5000, 1000, None, "OK")
    assert ["g", "t", "1023", "-", "4,000", "5,000"] == cells_of(partition)[:6]


def test_a_dead_broker_has_a_row() -> None:
    """A broker that has replicas and is not registered is listed, and the head counts it."""
    both = view(0)
    alone = replace(both, brokers={1: both.brokers[1]})
    shown = summary_of(alone, None, Histories())
    one, dead = shown.brokers
    assert ("kafka1:9092", 6, 0) == (one.address, one.leaders, one.out_of_sync)
    assert ("not registered", 0, 6, 6) == (
        dead.address,
        dead.leaders,
        dead.replicas,
        dead.out_of_sync,
    )
    first, _ = head(Screen(), shown, 0, "12:00:00")
    assert "1 brokers  1 not registered" in first.plain


def keys(screen: Screen, *pressed: str, names: list[str]) -> Screen:
    for key in pressed:
        screen = screen.key(key, names)
    return screen


def test_enter_opens_a_group_and_escape_goes_back() -> None:
    """Enter opens the marked group, escape returns, and the cursor stays within the rows."""
    names = ["busy", "idle"]
    opened = keys(Screen(), "down", "down", "down", "up", "enter", names=names)
    assert "busy" == opened.group
    assert "zookeeper" in opened.columns
    back = opened.key("escape", names)
    assert (None, GROUPS) == (back.group, back.page)


def test_a_filter_is_typed_and_taken_back() -> None:
    """In a filter every letter is text, also those that are keys elsewhere. Escape drops the
    filter."""
    shown = summary()
    typed = keys(Screen(page=TOPICS), "/", "t", "q", "backspace", "2", "enter", names=[])
    assert "t2" == typed.filter
    assert not typed.ended
    assert ["t2"] == [name_of(row) for row in typed.rows(shown, [])]
    assert 3 == len(typed.key("escape", []).rows(shown, []))


def test_rows_are_sorted_by_a_column() -> None:
    """Names sort upward and numbers downward. Unknown values are last."""
    shown = summary()
    by_name = Screen(page=TOPICS)
    assert ["t0", "t1", "t2"] == [row.topic for row in by_name.rows(shown, [])]
    by_messages = keys(by_name, "s", "s", names=[])
    assert ["t2", "t1", "t0"] == [row.topic for row in by_messages.rows(shown, [])]
    late = Screen(sort=Screen().columns.index("seconds_late"))
    assert ["busy", "idle"] == [row.group for row in late.rows(shown, [])]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 8), (200, 60)])
def test_a_screen_is_never_larger_than_the_terminal(width: int, height: int) -> None:
    """The screen has at most the terminal's size, with 10,000 partitions and any position of the
    cursor."""
    shown = summary(topics=5000)
    for cursor in (0, 2500, 4999):
        screen = Screen(page=TOPICS, cursor=cursor)
        console = Console(width=width, height=height, file=io.StringIO())
        rows = screen.rows(shown, [])
        with console.capture() as captured:
            console.print(render(screen, shown, rows, height=height, width=width, at="here"))
        lines = captured.get().splitlines()
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
        assert any(name_of(rows[cursor])[:4] in line for line in lines)


LONG = "connect-" + "a-sink-with-a-long-name-" * 4


def shown(rows: Sequence[object], screen: Screen, width: int = 80) -> list[str]:
    """The lines of a screen of these rows."""
    out = io.StringIO()
    console = Console(file=out, width=width, height=24, force_terminal=False)
    console.print(render(screen, summary(), rows, height=24, width=width, at="zk:2181"))
    return out.getvalue().splitlines()


def test_a_long_name_hides_no_number() -> None:
    """In 80 columns a name is shortened; lag and verdict of its group stay."""
    rows = [replace(row, group=LONG, lag=1_234_567) for row in summary().groups]
    [line] = {line for line in shown(rows[:1], Screen()) if line.startswith("connect-")}
    assert "1,234,567" in line
    assert str(rows[0].verdict) in line
    assert "…" in line


def test_a_narrow_terminal_shows_a_part_of_the_name() -> None:
    """In 50 columns each column is narrowed, that of names too."""
    assert any(line.startswith("bu") for line in shown(summary().groups, Screen(), width=50))


def test_an_opened_group_shows_all_of_its_partitions() -> None:
    """The filter that found the group is not that of its partitions."""
    screen = keys(Screen(), "/", "b", "u", "enter", "enter", names=["busy"])
    assert ("busy", "") == (screen.group, screen.filter)


def test_a_name_cannot_change_the_terminal() -> None:
    """The name of a group may be an escape sequence; its lines have none."""
    rows = [replace(row, group="\x1b]0;title\x07\x1b[2J\u202e") for row in summary().groups[:1]]
    text = "\n".join(shown(rows, Screen()))
    assert "\\x1b]0;title" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_the_keys_fit_into_80_columns() -> None:
    """All keys are shown in 80 columns; the last one ends the program."""
    assert len(HELP) <= 80


def test_a_group_that_is_gone_has_no_rows() -> None:
    """A group that is deleted while it is open has no rows."""
    assert [] == group_partitions(view(0), Histories(), "gone")


def test_keys_that_come_in_one_piece_are_all_taken() -> None:
    """Several keys in one read are all handled: escape and q, an arrow and a letter."""
    found, rest = [], "\x1bq\x1b[Ab\r"
    while rest:
        key, rest = first_key(rest)
        found.append(key)
    assert ["escape", "q", "up", "b", "enter"] == found


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1) as cluster:
        with AdminClient(cluster.zookeeper.connect_string) as admin:
            admin.create_topic("words", 3)
            admin.await_leaders("words")
        yield cluster


def command(cluster: EmbeddedCluster) -> list[str]:
    return [
        *(sys.executable, "-m", "kafka08.cli", "top"),
        *("--zookeeper", cluster.zookeeper.connect_string),
    ]


def test_a_page_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster without topics and groups is shown with a sentence."""
    show_once(summary_of(ClusterView(0), None, Histories()), as_json=False)
    assert "No brokers.\n\nNo topics.\n\nNo groups.\n\n" == capsys.readouterr().out


def test_what_is_unknown_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Tables with gaps name the requests that failed, on stderr: a script reads stdout."""
    show_once(replace(summary(), failed_requests=("ends of t0-1: no response",)), as_json=False)
    unknown, act = capsys.readouterr().err.splitlines()
    assert ("Unknown: ends of t0-1: no response", True) == (unknown, "kafka08 doctor" in act)


def test_once_prints_json(cluster: EmbeddedCluster) -> None:
    """--once prints brokers, topics, groups and logs as JSON, for scripts."""
    directory = cluster.brokers[0].config["log.dirs"]
    run = subprocess.run(
        [*command(cluster), "--once", "--json", "--log-dir", directory],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = json.loads(run.stdout)
    assert [3] == [row["partitions"] for row in told["topics"] if row["topic"] == "words"]
    assert [True] == [row["is_controller"] for row in told["brokers"]]
    logs = [row for row in told["logs"] if row["log"].startswith("words-")]
    assert ["words-0", "words-1", "words-2"] == [row["log"] for row in logs]
    assert all(0 < row["disk_free_percent"] <= 100 and row["segments"] == 1 for row in logs)


class Terminal(Closeable):
    """`kafka08 top` in a terminal of 80 by 24, or of more columns."""

    def __init__(self, arguments: list[str], columns: int = 80) -> None:
        environ = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
        pid, descriptor = pty.fork()
        if pid == 0:  # where this object is unusable
            os.execvpe(arguments[0], arguments, environ)
        self.pid, self.descriptor = pid, descriptor
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, size)
        self.text = ""

    def await_text(self, text: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while text not in self.text:
            assert time.monotonic() < deadline, f"never showed {text!r}: {self.text[-2000:]!r}"
            if select.select([self.descriptor], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    self.text += os.read(self.descriptor, 65536).decode(errors="replace")

    def press(self, key: str) -> None:
        self.text = ""
        os.write(self.descriptor, key.encode())

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if select.select([self.descriptor], [], [], 0.1)[0]:
                    self.text += os.read(self.descriptor, 65536).decode(errors="replace")
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("it did not end")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def test_it_runs_in_a_terminal_and_ends_with_q(cluster: EmbeddedCluster) -> None:
    """The keys show the pages, a filter works, and q exits with 0."""
    arguments = ["--interval", "0.5", "--log-dir", cluster.brokers[0].config["log.dirs"]]
    with Terminal([*command(cluster), *arguments]) as terminal:
        terminal.await_text("q quit")
        terminal.press("l")
        terminal.await_text("words-2")
        terminal.press("t")
        terminal.await_text("words")
        terminal.press("b")
        terminal.await_text("127.0.0.1")
        terminal.press("/")
        terminal.await_text("/_")
        terminal.press("\x1b")
        terminal.press("q")
        assert 0 == terminal.wait()


def test_ctrl_c_ends_it_as_q_does(cluster: EmbeddedCluster) -> None:
    """Ctrl-C ends it with exit code 0, and prints no line below the restored screen."""
    with Terminal([*command(cluster), "--interval", "0.5"]) as terminal:
        terminal.await_text("q quit")
        terminal.press("\x03")
        terminal.await_text("\x1b[?1049l")
        assert 0 == terminal.wait()
        assert "Aborted" not in terminal.text


def test_a_zookeeper_that_is_silent_is_said_within_the_screen(cluster: EmbeddedCluster) -> None:
    """The first line says what failed, no spinner writes into the screen, and q ends it. Last test,
    because it pauses ZooKeeper."""
    # The line begins with the path that was read, which may be a long one.
    with Terminal([*command(cluster), "--interval", "0.5"], columns=200) as terminal:
        terminal.await_text("q quit")
        cluster.zookeeper.process.pause()
        try:
            terminal.await_text("no reply from ZooKeeper")
            time.sleep(2 * AFTER_S)
            terminal.press("b")
            terminal.await_text("127.0.0.1")
            assert "Waiting for" not in terminal.text
            terminal.press("q")
            assert 0 == terminal.wait()
        finally:
            cluster.zookeeper.process.resume()
