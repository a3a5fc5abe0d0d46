"""`kafka08 demo` on a small text: it verifies, it notices, it leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka08.cli.demo import demo
from kafka08.demo import StageResult, run_demo
from kafka08.demo.ledger import Content, Ledger
from kafka08.demo.stage import differences
from kafka08.embedded.zookeeper import ZooKeeperServer
from tests.waiting import until

DEADLINE_S = 150.0
LINES = 6000
COMMAND = ("-m", "kafka08.cli")
SPARK_ONLY = (str(Path(__file__).with_name("spark_only.py")),)


class Silent:
    """A progress display without output."""

    def stage(self, title: str, total: int | None) -> Callable[[int], None]:
        return lambda count: None

    def happened(self, what: str) -> None:
        pass


@pytest.fixture
def text(tmp_path: Path, apache_zookeeper: ZooKeeperServer) -> Path:
    """A file of LINES lines. (The fixture `apache_zookeeper` skips where there is no Java.)"""
    path = tmp_path / "text"
    path.write_text("".join(f"line {n}\n" for n in range(LINES)))
    return path


class Demo:
    """The demo as a process whose temporary files are all in one directory."""

    def __init__(
        self, text: Path, directory: Path, *options: str, command: tuple[str, ...] = COMMAND
    ) -> None:
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self._err = directory / "err"
        self.out = directory / "out"
        with self.out.open("wb") as out, self._err.open("wb") as err:
            self.popen = subprocess.Popen(
                [sys.executable, *command, "demo", "--brokers=1", f"--input={text}", *options],
                cwd=directory,
                start_new_session=True,
                stdout=out,
                stderr=err,
                env={**os.environ, "TMPDIR": str(self.temporary)},
            )

    def end(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait(DEADLINE_S)

    @property
    def err(self) -> str:
        return self._err.read_text()

    def remains(self) -> list[object]:
        """Files and processes of it that are still there."""
        mark = f"TMPDIR={self.temporary}\0".encode()
        found: list[object] = list(self.temporary.iterdir())
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    if mark in (process / "environ").read_bytes():
                        found.append((process / "cmdline").read_bytes())
                except OSError:  # it has just ended
                    continue
        return found


@pytest.fixture
def start(text: Path, tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Starts the demo with further options; it is gone at the end."""
    with ExitStack() as stack:

        def begin(*options: str, command: tuple[str, ...] = COMMAND) -> Demo:
            demo = Demo(text, tmp_path, *options, command=command)
            stack.callback(demo.end)
            return demo

        yield begin


@pytest.mark.timeout(240)
def test_it_verifies_every_stage(start: Callable[..., Demo], tmp_path: Path) -> None:
    """Exit code 0, a row for each stage on stdout, each of them ok, the numbers those of the text,
    and where the table and the chart are; afterwards there is no process and no file of it but
    these. What it does to the group is said, and members' warnings about it are not shown."""
    demo = start("--output", "made/here")
    assert 0 == demo.popen.wait(DEADLINE_S), demo.err
    table = demo.out.read_text()
    for stage in ("start 1 broker", "produce", "half", "migrate", "the rest", "roll back", "count"):
        assert stage in table
    assert 8 == table.count("ok: ")
    assert f"{LINES:,}" in table
    assert "WRONG" not in table
    assert demo.err.startswith("1 broker and a ZooKeeper on this machine, as the tests of your")
    assert "  reader-b left; the others read its partitions\n" in demo.err
    assert "WARNING" not in demo.err
    parquet, chart = map(Path, table.splitlines()[-2:])
    assert (tmp_path / chart).read_bytes().startswith(b"\x89PNG")
    assert list((tmp_path / parquet).glob("*.parquet"))
    until(lambda: not demo.remains())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_leaves_nothing_running(
    start: Callable[..., Demo], number: signal.Signals
) -> None:
    """After an interrupt in a stage no process and no file remains, and no traceback is printed.
    After kill -9 the cluster's guard cleans up."""
    demo = start("--no-spark")
    until(lambda: demo.remains() and list(demo.temporary.glob("*/broker-0/logs/*-5/*")))
    demo.popen.send_signal(number)
    assert demo.popen.wait(DEADLINE_S) in {1, -signal.SIGKILL}
    assert "Traceback" not in demo.err
    until(lambda: not demo.remains())


@pytest.mark.timeout(240)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_interrupted_in_spark_it_leaves_nothing_running(
    start: Callable[..., Demo], number: signal.Signals
) -> None:
    """After SIGTERM to the whole process group in a job, as from `timeout`, Java and its workers
    end too, and leave no file."""
    demo = start(command=SPARK_ONLY)
    until(lambda: list(demo.temporary.glob("*/spark/local/blockmgr-*")))
    if number == signal.SIGTERM:
        os.killpg(demo.popen.pid, number)
    else:
        demo.popen.send_signal(number)
    assert demo.popen.wait(DEADLINE_S) in {1, -signal.SIGKILL}
    for word in ("Traceback", "Warning:"):
        assert word not in demo.err
    until(lambda: not demo.remains())


def test_a_lost_message_is_noticed(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line less in the ledger than in the log: the first stage that compares says so, and
    nothing follows it."""
    add = Ledger.add
    forgotten = iter([True])

    def forgetful(ledger: Ledger, partition: int, key: bytes | None, value: bytes | None) -> None:
        if not next(forgotten, False):
            add(ledger, partition, key, value)

    monkeypatch.setattr(Ledger, "add", forgetful)
    *_, last = run_demo(text, brokers=1, output=None, progress=Silent())
    assert "produce" == last.name
    assert f"log end {LINES} instead of {LINES - 1}" in last.fault


def test_a_changed_message_is_noticed(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same count and the same bytes, but one other value: the content is not what was
    produced."""
    other = iter([b"line X"])
    add = Ledger.add

    def deceived(ledger: Ledger, partition: int, key: bytes | None, value: bytes | None) -> None:
        add(ledger, partition, key, next(other, value))

    monkeypatch.setattr(Ledger, "add", deceived)
    *_, last = run_demo(text, brokers=1, output=None, progress=Silent())
    assert last.name.startswith("consume half")
    assert last.fault.startswith("read ")


def test_a_fault_is_exit_code_1(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table shows it word for word, brackets included."""
    fault = StageResult("produce", Content(1, 1, 1), 1.0, "log ends match", "[t,0]: one is gone")
    monkeypatch.setattr("kafka08.demo.run_demo", lambda *_, **__: iter([fault]))
    done = CliRunner().invoke(demo, ["--input", str(text)])
    assert 1 == done.exit_code
    assert "WRONG: [t,0]: one is gone" in done.output


def test_nothing_to_read_is_said_before_anything_starts(tmp_path: Path) -> None:
    """No cluster is started for it."""
    done = CliRunner().invoke(demo, ["--input", str(tmp_path)])
    assert "no file with text in it" in str(done.exception)
    assert "starting" not in done.output


def test_differences_name_the_partition() -> None:
    """Each partition that differs, with what was seen and what should be; 0 is like nothing."""
    assert "" == differences("log end", {0: 1, 1: 0}, {0: 1})
    said = differences("log end", {0: 1}, {0: 2, 2: 3})
    assert "partition 0: log end 1 instead of 2; partition 2: log end None instead of 3" == said
