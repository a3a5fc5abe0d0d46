"""`kafka08 log dump | check`: log segments and directories on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import pass_on, say, show
from kafka08.cli.failures import text_of
from kafka08.cli.options import example, json_option
from kafka08.cli.table import show_json
from kafka08.errors import CorruptLog, FileRefused, KafkaError, StorageError
from kafka08.listing import counted

if TYPE_CHECKING:
    from kafka08.log.check import Problem
    from kafka08.log.dump import LogDump


class NothingToCheck(KafkaError):
    """A directory that is neither a partition's nor a log directory."""


@click.group(cls=Commands, epilog=example("kafka08 log check /tmp/kafka-logs"))
def log() -> None:
    """Dump log segments and check log directories. Changes nothing."""


@log.command(
    "dump", epilog=example("kafka08 log dump words-0/00000000000000000000.log --deep-iteration")
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--deep-iteration", is_flag=True, help="Show the messages inside compressed ones.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values.")
@click.option("--verify-index-only", is_flag=True, help="For an index: only print errors.")
@json_option("A JSON object for each message or index entry, with its file.")
def dump_files(
    files: tuple[Path, ...],
    deep_iteration: bool,
    print_data_log: bool,
    verify_index_only: bool,
    as_json: bool,
) -> None:
    """Print .log, .index, .timeindex, .txnindex and .snapshot FILES as
    kafka.tools.DumpLogSegments does.

    Record batches are printed as by 0.11.0.3, other segments with a time index as by 0.10.2.2, the
    rest as by 0.8.2.2. Exits 1 if a file
    is none of these or is damaged, or if --verify-index-only found an error.
    """
    from kafka08.log.dump import LogDump
    from kafka08.log.names import DUMPED_SUFFIXES

    dump = LogDump(
        deep_iteration=deep_iteration,
        print_data_log=print_data_log,
        verify_index_only=verify_index_only,
    )
    failed = False
    for path in files:
        if path.suffix not in DUMPED_SUFFIXES:
            known = f"{', '.join(DUMPED_SUFFIXES[:-1])} and {DUMPED_SUFFIXES[-1]}"
            say(f"Ignoring unknown file {path}: it reads {known} files")
            failed = True
        try:
            if as_json:
                show_rows(dump, path)
            else:
                for line in dump.lines(path):
                    pass_on(f"{line}\n")  # with keys and values as they are
        except (CorruptLog, StorageError, FileRefused) as error:  # the others are dumped
            say(f"Error: {text_of(error)}")
            failed = True
    for line in dump.complaints():
        say(line)
        failed = failed or verify_index_only
    sys.exit(1 if failed or dump.found_damage else 0)


def show_rows(dump: LogDump, path: Path) -> None:
    """Print one object per line on stdout, other lines on stderr."""
    for row in dump.rows(path):
        if isinstance(row, str):
            say(f"{path}: {row}")
        else:
            show_json({"file": str(path), **row})


@log.command(epilog=example("kafka08 log check /tmp/kafka-logs"))
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@json_option("One JSON object.")
def check(directories: tuple[Path, ...], as_json: bool) -> None:
    """Check log DIRECTORIES (a log.dir or single partitions): offsets, indexes and every CRC.

    Exits 1 if there is a problem. Data that a running broker is just writing may look like one.
    """
    partitions = [p for directory in directories for p in partition_directories(directory)]
    problems = [problem for partition in partitions for problem in problems_of(partition)]
    if as_json:
        rows = [{"path": str(p.path), "position": p.position, "text": p.text} for p in problems]
        show_json({"partitions": len(partitions), "problems": rows})
    else:
        for problem in problems:
            show(str(problem))
    checked = counted(len(partitions), "partition")
    say(f"Checked {checked}: {counted(len(problems), 'problem')}")
    sys.exit(1 if problems else 0)


def problems_of(partition: Path) -> list[Problem]:
    """The problems in a partition's directory. What cannot be read is one: the others are worth
    knowing all the more if a disk fails."""
    from kafka08.log.check import Problem, check_log
    from kafka08.log.names import LOG_SUFFIX

    try:
        problems = check_log(partition)
        segments = [p for p in partition.glob(f"*{LOG_SUFFIX}") if p.is_file()]
    except (StorageError, FileRefused, OSError) as error:
        return [Problem(partition, -1, f"not checked to its end: {text_of(error)}")]
    if not segments:
        text = "has no segment; a broker would begin it as an empty log"
        problems.append(Problem(partition, -1, text))
    return problems


def partition_directories(directory: Path) -> list[Path]:
    """`directory` itself if it is a partition's, else the partitions in it, sorted, with those that
    have lost all their files. Raises NothingToCheck if there are none, unless it is the empty
    log.dir of a broker."""
    from kafka08.log.names import RECOVERY_POINT_CHECKPOINT

    if is_partition(directory):
        return [directory]
    inside = sorted(path for path in directory.iterdir() if path.is_dir())
    found = {path for path in inside if is_partition(path)}
    if not found and not (directory / RECOVERY_POINT_CHECKPOINT).exists():
        raise NothingToCheck(
            f"{directory} is neither a log.dir nor the directory of a partition; give one of the "
            "directories in log.dirs of a broker, or one such as pages-0 in it"
        )
    return [path for path in inside if path in found or is_named_so(path)]


def is_partition(directory: Path) -> bool:
    """Whether it holds a segment; or only files, one of them a misnamed segment, and its own name
    is that of a partition's directory. By its name if it cannot be read."""
    from kafka08.log.names import INDEX_SUFFIXES, LOG_SUFFIX, base_offset_of

    try:
        entries = list(directory.iterdir())
    except OSError:
        return is_named_so(directory)
    segments = [path for path in entries if path.suffix in {LOG_SUFFIX, *INDEX_SUFFIXES}]
    if any(can_be_parsed(base_offset_of, path) for path in segments):
        return True
    return bool(segments) and all(map(Path.is_file, entries)) and is_named_so(directory)


def is_named_so(directory: Path) -> bool:
    from kafka08.log.names import parse_partition_directory

    return can_be_parsed(parse_partition_directory, directory.absolute())


def can_be_parsed(parse: Callable[[Path], object], path: Path) -> bool:
    try:
        parse(path)
    except CorruptLog:
        return False
    return True
