"""Shared by both perf commands: options of kafka.tools.PerfConfig 0.8.2.2, figures, threads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from kafka08.cli.background import Background
from kafka08.cli.echo import show
from kafka08.cli.java_dates import DateFormat
from kafka08.cli.options import Whole, combined, json_option
from kafka08.cli.table import show_json

MEGABYTE: Final = 1024 * 1024


def date_format(_: click.Context, parameter: click.Parameter, value: str) -> DateFormat:
    try:
        return DateFormat(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


figure_options = combined(
    click.option(
        "--reporting-interval",
        default=5000,
        show_default=True,
        type=Whole(1),
        help="Messages between two lines of --show-detailed-stats.",
    ),
    click.option(
        "--show-detailed-stats",
        is_flag=True,
        help="Print a line of figures for each thread, every --reporting-interval messages.",
    ),
    click.option(
        "--date-format",
        default="yyyy-MM-dd HH:mm:ss:SSS",
        show_default=True,
        metavar="PATTERN",
        callback=date_format,
        help="A pattern of Java's SimpleDateFormat.",
    ),
    click.option("--hide-header", is_flag=True, help="Print the figures only."),
    json_option("Each line of figures as a JSON object; no header."),
)


def show_header(header: str, options: Mapping[str, Any]) -> None:
    """Print it unless --hide-header or --json was given."""
    if not options["hide_header"] and not options["as_json"]:
        show(header)


def show_line(header: str, fields: Sequence[object], *, as_json: bool) -> None:
    """Print one line of figures; with `as_json` an object whose keys are the columns of `header`,
    words joined by underscores."""
    if not as_json:
        show(", ".join(map(str, fields)))
        return
    names = header.split(", ")
    row = {
        name.replace(".", "_"): field if name.endswith("time") else json.loads(str(field))
        for name, field in zip(names, fields, strict=True)
    }
    show_json(row)


class Reports:
    """The lines of --show-detailed-stats of one thread.

    header   the names of all columns
    options  of the command
    columns  the columns between the time and the figures: the thread's number, sizes
    started  when the thread began, in seconds since 1970
    """

    def __init__(
        self,
        header: str,
        options: Mapping[str, Any],
        columns: Sequence[object],
        started: float,
    ) -> None:
        self._header = header
        self._options = options
        self._columns = columns
        self._last = (0, 0, started)

    def add(self, count: int, size: int, now: float) -> None:
        """Print the thread's total and its rate since the last report; nothing if no messages were
        added. `now`: the time of the last of them."""
        last_count, last_size, since = self._last
        if count == last_count:
            return
        self._last = (count, size, now)
        fields = (
            self._options["date_format"].text(now),
            *self._columns,
            *figures(size, size - last_size, count, count - last_count, now - since),
        )
        show_line(self._header, fields, as_json=self._options["as_json"])


def figures(
    size: int, recent_size: int, count: int, recent_count: int, seconds: float
) -> tuple[str, ...]:
    """MB, MB.sec, nMsg, nMsg.sec: the totals, and the rates over the recent time."""
    seconds = max(1e-9, seconds)
    return (
        f"{size / MEGABYTE:.4f}",
        f"{recent_size / MEGABYTE / seconds:.4f}",
        str(count),
        f"{recent_count / seconds:.4f}",
    )


def in_threads(count: int, run: Callable[[int], None]) -> None:
    """`run(0)` to `run(count - 1)`, each in a thread; raises the error of the first that has one.
    The threads end with the process, so that Ctrl-C ends them too."""
    running = [Background(partial(run, number), name=f"perf-{number}") for number in range(count)]
    for one in running:
        one.result()
