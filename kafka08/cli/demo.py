"""`kafka08 demo`: the main tasks on an embedded cluster, with progress bars and a table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from kafka08.cli.echo import say, show
from kafka08.cli.options import Whole, example, json_option
from kafka08.cli.stderr_logging import warnings_withheld
from kafka08.cli.table import show_json
from kafka08.listing import counted

if TYPE_CHECKING:
    from rich.progress import TaskID

    from kafka08.demo import StageResult


@click.command(epilog=example("kafka08 demo --input ~/texts"))
@click.option(
    "--input",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="A file or a directory tree; default: this Python's standard library.",
)
@click.option("--brokers", default=3, show_default=True, type=Whole(1, 9))
@click.option("--spark/--no-spark", default=True, show_default=True, help="Run the Spark stages.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("kafka08-demo"),
    show_default=True,
    help="A directory for Spark's results: a Parquet table and a PNG chart.",
)
@json_option("A JSON list of the stages instead of a table.")
def demo(source: Path | None, brokers: int, spark: bool, output: Path, as_json: bool) -> None:
    """Load real text into a cluster of its own, with three replicas; consume it with a group while
    a broker is killed and a member is replaced; migrate the group's offsets to Kafka, continue
    from there, and roll back. In Spark, read exact ranges, and count the identifiers of each module
    into a Parquet table and a chart. Every stage compares its result with the produced messages.

    Exits 1 on any mismatch, and leaves no process running.
    """
    from kafka08.demo import run_demo
    from kafka08.demo.corpus import standard_library, text_files

    source = source or standard_library()
    text_files(source)  # fails before anything is started if there is no text
    if spark:
        from kafka08.demo.spark_stages import prepare_output

        prepare_output(output)
    say(
        f"{counted(brokers, 'broker')} and a ZooKeeper on this machine, as the tests of your "
        "program can have them (docs/test.md). They are broken on purpose, and every message is "
        "checked."
    )
    results = []
    with warnings_withheld() as warnings, Bars() as bars:
        wanted = output if spark else None
        for result in run_demo(source, brokers=brokers, output=wanted, progress=bars):
            results.append(result)
            bars.end_stage()
    if any(result.fault for result in results):
        for warning in warnings:
            say(warning)
    if as_json:
        show_json([stage_of(result) for result in results])
    else:
        print_table(results)
        for path in (path for result in results for path in result.files):
            show(str(path))
    sys.exit(1 if any(result.fault for result in results) else 0)


class Bars:
    """One line per stage on stderr: a bar if the total is known, else a spinner."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._progress = Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description:36}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._current: TaskID | None = None

    def stage(self, title: str, total: int | None) -> Callable[[int], None]:
        """Start a line; the result advances its bar."""
        task = self._current = self._progress.add_task(title, total=total)
        return lambda count: self._progress.update(task, completed=count)

    def happened(self, what: str) -> None:
        """A line of its own, above the bars."""
        say(f"  {what}")

    def end_stage(self) -> None:
        """Mark the line of the stage as done."""
        if self._current is not None:
            done = max(1, int(self._progress.tasks[self._current].completed))
            self._progress.update(self._current, total=done, completed=done)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def stage_of(result: StageResult) -> dict[str, object]:
    """A stage for programs; `fault` is None if it passed."""
    return {
        "stage": result.name,
        "messages": result.content.count,
        "mb_per_second": result.megabytes_per_second,
        "seconds": result.seconds,
        "fault": result.fault or None,
        "verdict": result.verdict,
        "files": [str(path) for path in result.files],
    }


def print_table(results: list[StageResult]) -> None:
    """Stage, messages, MB/s, seconds and verdict, on stdout."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("stage")
    for heading in ("messages", "MB/s", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("verdict", overflow="fold")
    for result in results:
        counted = result.content.count > 0
        table.add_row(
            result.name,
            f"{result.content.count:,}" if counted else "",
            f"{result.megabytes_per_second:.1f}" if counted else "",
            f"{result.seconds:.1f}",
            Text(f"WRONG: {result.fault}", "red") if result.fault else f"ok: {result.verdict}",
        )
    Console().print(table)
