"""`kafka08 spark read | write`: topics to files and back, with Spark here or on a cluster."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import say
from kafka08.cli.options import (
    Whole,
    client_bootstrap_option,
    combined,
    config_options,
    example,
    json_option,
    legal_topic,
    read_client_config,
)
from kafka08.cli.table import show_json
from kafka08.config import parse_overrides
from kafka08.errors import ConfigError
from kafka08.listing import counted

if TYPE_CHECKING:
    from kafka08.spark import OffsetRange
    from kafka08.spark.transfer import SparkSession

FORMATS = ("parquet", "csv", "json")
DEFAULT_CORES = 2


@click.group(
    cls=Commands,
    epilog=example("kafka08 spark read pages --bootstrap localhost:9092 --output pages"),
)
def spark() -> None:
    """Copy topics to files and files to topics, with PySpark here or on a cluster."""


spark_options = combined(
    client_bootstrap_option,
    config_options,
    click.option(
        "--format",
        "file_format",
        default="parquet",
        show_default=True,
        type=click.Choice(FORMATS),
    ),
    json_option("One JSON object at the end."),
    click.option("--dry-run", is_flag=True, help="Show the plan and change nothing."),
    click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set one of Spark's properties (repeat for more).",
    ),
    click.option(
        "--master",
        metavar="URL",
        help="A cluster: spark://HOST:PORT, yarn or k8s://URL; default: this machine.",
    ),
    click.option(
        "--cores", type=Whole(1), help="Cores of this machine, without --master; default: 2."
    ),
)
"""The options of both commands."""


@spark.command(
    epilog=example("kafka08 spark read pages --range 0:100:200 --format json --output pages")
)
@click.argument("topic", callback=legal_topic)
@click.option("--output", required=True, help="A directory to create, on any system Spark knows.")
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="PARTITION:FROM:UNTIL",
    help="Offsets from FROM (inclusive) to UNTIL (exclusive); default: all.",
)
@click.option("--group", help="Start at this group's offsets, without changing them.")
@click.option(
    "--storage",
    default="zookeeper",
    show_default=True,
    type=click.Choice(("zookeeper", "kafka")),
    help="The store of the group's offsets.",
)
@click.option("--max-records", type=Whole(1), help="Read at most this many offsets per task.")
@click.option(
    "--text/--binary", default=None, help="Key and value as UTF-8; default except for parquet."
)
@click.option(
    "--replace", is_flag=True, help="Replace bytes that are not UTF-8; default: an error."
)
@spark_options
def read(
    topic: str,
    output: str,
    ranges: tuple[str, ...],
    group: str | None,
    storage: str,
    max_records: int | None,
    text: bool | None,
    replace: bool,
    file_format: str,
    dry_run: bool,
    as_json: bool,
    **_: object,
) -> None:
    """Copy messages of TOPIC to files: topic, partition, offset, key and value of each."""
    from kafka08.spark.transfer import check_output, java_options, plan_read, read_to_files

    master, conf = spark_place()
    check_output(output, master, conf)
    options = kafka_options()
    if ranges and group:
        raise click.UsageError("Give only one of --range and --group.")
    if ranges:
        options["offsetRanges"] = json.dumps([[topic, *parse_range(text)] for text in ranges])
    else:
        options["subscribe"] = topic
    if group:
        options |= {
            "startingOffsets": "committed",
            "kafka.group.id": group,
            "kafka.offsets.storage": storage,
        }
    if max_records:
        options["maxRecordsPerPartition"] = str(max_records)
    planned = plan_read(options)
    show_plan(planned)
    size = sum(r.size for r in planned)
    done = {"topic": topic, "tasks": len(planned), "offsets": size, "dry_run": dry_run}
    if dry_run and as_json:
        show_json(done)
    if dry_run:
        return
    as_text = file_format != "parquet" if text is None else text
    conf = {**java_options(master, size), **conf}
    with spark_session(master, conf) as session, bar("reading") as progress:
        read_to_files(
            *(session, options, planned, output, file_format),
            as_text=as_text,
            replaces=replace,
            progress=progress,
        )
    if as_json:
        show_json(done)
    say(f"Read {size} offsets of {topic} into {output}")


@spark.command(
    epilog=example("kafka08 spark write pages --input pages --format json --key key --value value")
)
@click.argument("topic", callback=legal_topic)
@click.option("--input", "path", required=True, help="Files or a directory of them.")
@click.option("--key", help="Column with the keys; default: no keys.")
@click.option("--value", default="value", show_default=True, help="Column with the values.")
@spark_options
def write(
    topic: str,
    path: str,
    key: str | None,
    value: str,
    file_format: str,
    dry_run: bool,
    as_json: bool,
    **_: object,
) -> None:
    """Append rows of files to TOPIC, at least once each, partitioned by the hash of the key."""
    from kafka08.spark.transfer import check_input, open_files, write_to_topic

    place = spark_place()
    check_input(path, *place)
    options = kafka_options()
    with spark_session(*place) as session:
        frame = open_files(session, path, file_format, key, value)
        count = frame.count()
        say(f"{count} rows of {path}: value from {value}, key from {key or 'nowhere'}")
        if as_json and dry_run:
            show_json({"topic": topic, "messages": count, "dry_run": True})
        if dry_run:
            return
        with bar("writing") as progress:
            write_to_topic(session, frame, topic, options, progress)
    if as_json:
        show_json({"topic": topic, "messages": count, "dry_run": False})
    say(f"Wrote {counted(count, 'message')} to {topic}")


def kafka_options() -> dict[str, str]:
    """The running command's cluster and Kafka keys, as options of the data source."""
    keys = read_client_config("bootstrap", "bootstrap.servers")
    keys.pop("zookeeper.connect", None)
    return {f"kafka.{name}": value for name, value in keys.items()}


def parse_range(text: str) -> list[int]:
    """`PARTITION:FROM:UNTIL` as numbers."""
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--range {text!r} is not of the form PARTITION:FROM:UNTIL")
    return [int(part) for part in parts]


def show_plan(planned: list[OffsetRange]) -> None:
    """Print one line per task, with its size."""
    for number, of_task in enumerate(planned):
        say(f"task {number}: {of_task}, {of_task.size} offsets")
    say(f"{len(planned)} tasks, {sum(r.size for r in planned)} offsets")


def spark_place() -> tuple[str, dict[str, str]]:
    """--master, or this machine with --cores, and the properties of --conf. UsageError or
    ConfigError for what Spark would not understand."""
    given = click.get_current_context().params
    master, cores = given["master"], given["cores"]
    conf = parse_overrides(given["conf"], "--conf")
    for name in conf:
        if not name.startswith("spark."):
            raise ConfigError(f"--conf {name}: the names of Spark's properties start with spark.")
    if "spark.master" in conf:
        raise click.UsageError("Give --master instead of --conf spark.master.")
    if master and cores:
        raise click.UsageError(
            "Give only one of --master and --cores; see --conf spark.cores.max=N."
        )
    return master or f"local[{cores or DEFAULT_CORES}]", conf


@contextmanager
def spark_session(master: str, conf: dict[str, str]) -> Iterator[SparkSession]:
    """A Spark session for the block; its log is printed only if it fails."""
    from kafka08.embedded.java import find_java
    from kafka08.embedded.spark_java import make_java_home
    from kafka08.spark.session import session

    with tempfile.TemporaryDirectory(prefix="kafka08-spark-") as name:
        log_file = Path(name, "spark.log")
        java_home = make_java_home(Path(name, "java"), find_java(), log_file)
        with session("kafka08 spark", master, java_home, log_file, conf=conf) as started:
            yield started


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar of tasks on stderr."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)
