"""`kafka08 log dump | check`: log segments and directories on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kafka08.cli.options import example


@click.group(epilog=example("kafka08 log check /tmp/kafka-logs"))
def log() -> None:
    """Look into log segments and check log directories. Nothing is ever changed."""


@log.command(
    "dump", epilog=example("kafka08 log dump words-0/00000000000000000000.log --deep-iteration")
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--deep-iteration", is_flag=True, help="Show the messages inside compressed ones.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values.")
@click.option("--verify-index-only", is_flag=True, help="For an index: only say what is wrong.")
def dump_files(
    files: tuple[Path, ...], deep_iteration: bool, print_data_log: bool, verify_index_only: bool
) -> None:
    """Print .log and .index FILES as kafka.tools.DumpLogSegments does."""
    from kafka08.log.dump import LogDump

    dump = LogDump(
        deep_iteration=deep_iteration,
        print_data_log=print_data_log,
        verify_index_only=verify_index_only,
    )
    for path in files:
        for line in dump.lines(path):
            click.echo(line)
    for line in dump.complaints():
        click.echo(line, err=True)


@log.command(epilog=example("kafka08 log check /tmp/kafka-logs"))
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
def check(directories: tuple[Path, ...]) -> None:
    """Check log DIRECTORIES (a log.dir or single partitions): offsets, indexes and every CRC."""
    from kafka08.log.check import check_log

    partitions = [p for directory in directories for p in partition_directories(directory)]
    problems = [problem for partition in partitions for problem in check_log(partition)]
    for problem in problems:
        click.echo(str(problem))
    click.echo(f"Checked {len(partitions)} partitions: {len(problems)} problems", err=True)
    sys.exit(1 if problems else 0)


def partition_directories(directory: Path) -> list[Path]:
    """`directory` itself if it holds segments, else the directories in it that do, sorted."""
    if any(directory.glob("*.log")):
        return [directory]
    return sorted(path for path in directory.iterdir() if path.is_dir() and any(path.glob("*.log")))
