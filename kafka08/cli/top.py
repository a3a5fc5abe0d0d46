"""`kafka08 top`."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from kafka08.cli.background import Background, Unfinished
from kafka08.cli.echo import show
from kafka08.cli.options import (
    cluster_options,
    cluster_place,
    example,
    interval_option,
    json_option,
    log_dirs_option,
)
from kafka08.cli.spinner import show_no_waits
from kafka08.cli.table import show_json, show_table
from kafka08.lifecycle import Closeable

if TYPE_CHECKING:
    from kafka08.cli.top_screen import LogRow
    from kafka08.exporter import ClusterView, Watch
    from kafka08.exporter.summary import Summary

INTERVAL_S = 5.0
CPU_SHARE_MAX = 0.1
"""The largest share of a core that it uses."""
IDLE_S = 3600.0
CLOSE_S = 1.0
KEYS: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
}


@click.command(epilog=example("kafka08 top --zookeeper localhost:2181"))
@interval_option(INTERVAL_S, at_least=0.5)
@click.option("--once", is_flag=True, help="Read twice, a second apart, print the result, and end.")
@json_option("One JSON object, with --once.")
@log_dirs_option
@cluster_options
def top(
    interval: float,
    once: bool,
    as_json: bool,
    log_dirs: tuple[str, ...],
) -> None:
    """Watch a cluster: brokers, topics by rate, groups by lag with Burrow's verdict, local logs.

    Keys: b, t, g, l change the page, enter opens a group, s sorts, / filters, space pauses, q or
    Ctrl-C ends. Without a terminal it works as with --once, and exits 1 if a part is not known.
    """
    from kafka08.exporter import Watch

    place = cluster_place()
    with ended_soon(Watch(*place)) as watch:
        if once or as_json or not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
            for view in Background(watch.read_twice, name="look").result():
                watch.add(view)
            summary = watch.summary()
            show_once(summary, logs_of(log_dirs), as_json=as_json)
            sys.exit(1 if summary.failed_requests else 0)
        else:
            live(watch, interval, str(place), log_dirs)


@contextmanager
def ended_soon(watch: Watch) -> Iterator[Watch]:
    """The watch; closed at the end, but a ZooKeeper that does not respond delays that only for
    CLOSE_S: `watch` only reads, so nothing is left half done."""
    try:
        yield watch
    finally:
        with suppress(Unfinished):
            Background(watch.close, name="close").result(CLOSE_S)


def logs_of(directories: Sequence[str]) -> list[LogRow]:
    """The logs in these directories. Raises OSError if one cannot be read."""
    if not directories:
        return []
    from kafka08.cli.top_logs import read_logs

    return read_logs(directories)


def show_once(summary: Summary, logs: Sequence[LogRow] = (), *, as_json: bool) -> None:
    """Print the summary once: as JSON, or as tables, with what is unknown on stderr. Logs only if
    there are any."""
    if as_json:
        show_json({**asdict(summary), "logs": [asdict(row) for row in logs]})
        return
    from kafka08.cli.group_view import warn_of_failed_requests
    from kafka08.cli.top_screen import BROKERS, GROUPS, LOGS, TOPICS, Screen, cells_of

    for page in (BROKERS, TOPICS, GROUPS, *([LOGS] if logs else [])):
        screen = Screen(page=page)
        shown = screen.rows(summary, [], logs)
        rows = [tuple(cells_of(row)) for row in shown]
        if rows:
            show_table(tuple(name.replace("_", " ") for name in screen.columns), rows)
        else:
            show(f"No {page}.")
        show()
    warn_of_failed_requests(summary.failed_requests)


def live(watch: Watch, interval: float, connect: str, log_dirs: Sequence[str]) -> None:
    """Run until q or Ctrl-C is pressed, which is no failure: neither leaves anything undone."""
    from rich.console import Console
    from rich.live import Live

    from kafka08.cli.top_screen import Screen, name_of, render

    console = Console()
    screen = Screen()
    looks = PeriodicReader(watch, interval, log_dirs)
    looks.read_now()
    show_no_waits()  # a spinner would write into the screen, which says what failed
    summary = watch.summary()
    with (
        suppress(KeyboardInterrupt),
        looks,
        keyboard(looks.ended) as read_key,
        Live(console=console, screen=True, auto_refresh=False) as view,
    ):
        while not screen.ended:
            assert watch.view is not None
            partitions = watch.partitions_of(screen.group) if screen.group else []
            rows = screen.rows(summary, partitions, looks.logs)
            at = f"{connect}  {time.strftime('%H:%M:%S', time.localtime(watch.view.now_ms / 1000))}"
            view.update(
                render(
                    screen,
                    summary,
                    rows,
                    height=console.height,
                    width=console.width,
                    at=at,
                    fault=looks.fault,
                ),
                refresh=True,
            )
            key = read_key(looks.seconds_left())
            if key:
                screen = screen.key(key, [name_of(row) for row in rows])
            if looks.turn(paused=screen.paused):
                summary = watch.summary()


class PeriodicReader(Closeable):
    """Reads the cluster periodically in another thread, so that keys get an immediate response.

    ended   a descriptor that is readable after a read has ended
    fault   why the last read failed; None if it succeeded
    logs    what the last read found in the log directories
    """

    def __init__(self, watch: Watch, interval: float, log_dirs: Sequence[str] = ()) -> None:
        self._watch = watch
        self._interval = interval
        self._log_dirs = log_dirs
        self.logs: list[LogRow] = []
        self._look: Background[tuple[ClusterView, list[LogRow]]] | None = None
        self._began = 0.0
        self._next = time.monotonic() + interval
        self.ended, self._end = os.pipe()
        self.fault: str | None = None

    def close(self) -> None:
        """Abandons a read in progress, which changes nothing, and then also the pipe."""
        if self._look is None:
            os.close(self.ended)
            os.close(self._end)

    def read_now(self) -> None:
        """The first read, whose failure is the command's."""
        self._add(Background(self._read, name="look").result())

    def _read(self) -> tuple[ClusterView, list[LogRow]]:
        return self._watch.read_view(), logs_of(self._log_dirs)

    def _add(self, found: tuple[ClusterView, list[LogRow]]) -> None:
        view, self.logs = found
        self._watch.add(view)

    def seconds_left(self) -> float:
        """Seconds to wait before the next `turn`, or, during a read, until `ended` is readable."""
        return IDLE_S if self._look is not None else max(0.0, self._next - time.monotonic())

    def turn(self, *, paused: bool) -> bool:
        """Start a read that is due, unless `paused`; whether one has succeeded meanwhile."""
        if self._look is not None:
            return self._take()
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._interval
            if not paused:
                self._began = time.process_time()
                self._look = Background(
                    self._read, name="look", on_end=lambda: os.write(self._end, b"!")
                )
        return False

    def _take(self) -> bool:
        from kafka08.errors import KafkaError

        assert self._look is not None
        if not select.select([self.ended], [], [], 0)[0]:
            return False
        os.read(self.ended, 1)
        look, self._look = self._look, None
        # A large cluster is read less often.
        cost = time.process_time() - self._began
        self._next = time.monotonic() + max(self._interval, cost / CPU_SHARE_MAX)
        try:
            self._add(look.result())
        except (KafkaError, OSError) as error:
            self.fault = str(error)
            return False
        self.fault = None
        return True


@contextmanager
def keyboard(wake: int) -> Iterator[ReadKey]:
    """Reads single keys from the terminal, and restores it at the end. `wake` is a descriptor that
    interrupts the wait for a key when it is readable."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield ReadKey(descriptor, wake)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class ReadKey:
    """The next key by its name in KEYS, or itself; "" on timeout or when `wake` is readable. Keys
    that arrive together are kept for later calls."""

    def __init__(self, descriptor: int, wake: int) -> None:
        self._descriptor = descriptor
        self._wake = wake
        self._pending = ""

    def __call__(self, seconds: float) -> str:
        if not self._pending:
            readable = select.select([self._descriptor, self._wake], [], [], seconds)[0]
            if self._descriptor not in readable:
                return ""
            self._pending = os.read(self._descriptor, 4096).decode(errors="ignore")
        key, self._pending = first_key(self._pending)
        return key


def first_key(text: str) -> tuple[str, str]:
    """The first key of a terminal's input, and the rest of it. Pure."""
    for sequence, name in KEYS.items():
        if text.startswith(sequence):
            return name, text[len(sequence) :]
    return text[:1], text[1:]
