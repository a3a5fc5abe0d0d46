"""`kafka08 top`."""

from __future__ import annotations

import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from kafka08.cli.options import example, json_option, zookeeper_option

if TYPE_CHECKING:
    from kafka08.exporter.histories import Histories
    from kafka08.exporter.reader import ClusterReader
    from kafka08.exporter.summary import Summary
    from kafka08.exporter.view import ClusterView

INTERVAL_SECONDS = 5.0
CPU_SHARE_MAX = 0.1
"""Of a core."""
KEYS: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
}


@click.command(epilog=example("kafka08 top --zookeeper localhost:2181"))
@click.option(
    "--interval",
    type=click.FloatRange(0.5, 3600.0),
    default=INTERVAL_SECONDS,
    show_default=True,
    help="Seconds from one look at the cluster to the next.",
)
@click.option("--once", is_flag=True, help="Look twice, a second apart, print it, and end.")
@json_option("One JSON object, with --once.")
@zookeeper_option
def top(interval: float, once: bool, as_json: bool, zookeeper: str) -> None:
    """Watch a cluster: brokers, topics by rate, groups by lag with Burrow's verdict.

    Keys: b, t, g change the page, enter opens a group, s sorts, / filters, space pauses, q ends.
    Without a terminal it does as with --once.
    """
    from kafka08.exporter import ClusterReader

    with ClusterReader(zookeeper) as reader:
        watch = Watch(reader)
        if once or as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            watch.look()
            time.sleep(1.0)
            watch.look()
            show(watch.summary(), as_json=as_json)
        else:
            live(watch, interval, zookeeper)


class Watch:
    """What was read last, and the time before, and how it moved."""

    def __init__(self, reader: ClusterReader) -> None:
        from kafka08.exporter.histories import Histories

        self._reader = reader
        self.before: ClusterView | None = None
        self.view: ClusterView | None = None
        self.histories: Histories = Histories()

    def look(self) -> None:
        """Raises ZooKeeperError."""
        view = self._reader.read()
        self.histories.add(view)
        self.before, self.view = self.view, view

    def summary(self) -> Summary:
        from kafka08.exporter.summary import summary_of

        assert self.view is not None
        return summary_of(self.view, self.before, self.histories)


def show(summary: Summary, *, as_json: bool) -> None:
    """Print it once: JSON, or the tables."""
    if as_json:
        click.echo(json.dumps(asdict(summary)))
        return
    from kafka08.cli.table import show_table
    from kafka08.cli.top_screen import BROKERS, GROUPS, TOPICS, Screen, text_of

    for page in (BROKERS, TOPICS, GROUPS):
        screen = Screen(page=page)
        rows = [tuple(map(text_of, asdict(row).values())) for row in screen.rows(summary, [])]
        show_table(tuple(name.replace("_", " ") for name in screen.columns), rows)
        click.echo()


def live(watch: Watch, interval: float, connect: str) -> None:
    """Until q is pressed."""
    from rich.console import Console
    from rich.live import Live

    from kafka08.cli.top_screen import Screen, name_of, render
    from kafka08.errors import KafkaError
    from kafka08.exporter.summary import group_partitions

    console = Console()
    screen = Screen()
    watch.look()
    summary = watch.summary()
    next_look = time.monotonic() + interval
    with keyboard() as read_key, Live(console=console, screen=True, auto_refresh=False) as view:
        while not screen.ended:
            assert watch.view is not None
            partitions = (
                group_partitions(watch.view, watch.histories, screen.group) if screen.group else []
            )
            rows = screen.rows(summary, partitions)
            at = f"{connect}  {time.strftime('%H:%M:%S', time.localtime(watch.view.now_ms / 1000))}"
            view.update(
                render(screen, summary, rows, height=console.height, width=console.width, at=at),
                refresh=True,
            )
            key = read_key(max(0.0, next_look - time.monotonic()))
            if key:
                screen = screen.key(key, [name_of(row) for row in rows])
            if time.monotonic() >= next_look:
                began = time.process_time()
                if not screen.paused:
                    try:
                        watch.look()
                        summary = watch.summary()
                    except KafkaError as error:
                        view.console.bell()
                        view.update(str(error), refresh=True)
                        time.sleep(1.0)
                # A large cluster is looked at less often.
                cost = time.process_time() - began
                next_look = time.monotonic() + max(interval, cost / CPU_SHARE_MAX)


@contextmanager
def keyboard() -> Iterator[ReadKey]:
    """Reads single keys from the terminal, which is as it was afterwards."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield ReadKey(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class ReadKey:
    """The next key by its name in KEYS, or itself; "" if none comes in so many seconds. Several
    may come in one piece: they are kept."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = ""

    def __call__(self, seconds: float) -> str:
        if not self._pending:
            if not select.select([self._descriptor], [], [], seconds)[0]:
                return ""
            self._pending = os.read(self._descriptor, 4096).decode(errors="ignore")
        key, self._pending = first_key(self._pending)
        return key


def first_key(text: str) -> tuple[str, str]:
    """The first key in what a terminal sent, and the rest. Pure."""
    for sequence, name in KEYS.items():
        if text.startswith(sequence):
            return name, text[len(sequence) :]
    return text[:1], text[1:]
