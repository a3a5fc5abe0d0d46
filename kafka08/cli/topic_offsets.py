"""`kafka08 topic offsets`: the start and end of partitions' logs, like GetOffsetShell."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

import click

from kafka08.cli.echo import show
from kafka08.cli.failures import report_failed
from kafka08.cli.options import (
    Whole,
    cluster_client,
    cluster_options,
    example,
    is_number,
    json_option,
    legal_topic,
    prefers_bootstrap,
)
from kafka08.cli.table import show_rows
from kafka08.cli.times import parse_ms
from kafka08.config import INT_MAX
from kafka08.errors import KafkaError
from kafka08.protocol.fetch import READ_COMMITTED
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TRANSACTIONS_TOPIC, TopicPartition

if TYPE_CHECKING:
    from kafka08.client import ClusterClient, ClusterMetadata

BOUNDS: Final = ("topic", "partition", "log start", "log end", "messages")
STABLE: Final = ("last stable", "open")
"""Further columns, where producers have had transactions."""
NONE: Final = "There are no topics."
TIMES: Final = {
    "earliest": EARLIEST_OFFSET,
    "latest": LATEST_OFFSET,
    str(EARLIEST_OFFSET): EARLIEST_OFFSET,
    str(LATEST_OFFSET): LATEST_OFFSET,
}

Result = list[int] | KafkaError
"""Offsets, descending, or the error."""


def time_of(_: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """A time as in the Offsets request."""
    if value is None or value in TIMES:
        return None if value is None else TIMES[value]
    try:
        return parse_ms(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not earliest, latest, a time since 1970 as 2026-01-31T12:00[+01:00], or "
            "its milliseconds",
            param=parameter,
        ) from None


def numbers_of(_: click.Context, parameter: click.Parameter, value: str | None) -> list[int] | None:
    """`0,3,4` as partition numbers."""
    if value is None:
        return None
    texts = value.split(",")
    if not all(is_number(text.strip()) for text in texts):
        raise click.BadParameter(f"{value!r} is not of the form 0,1,2", param=parameter)
    return sorted(set(map(int, texts)))


@click.command("offsets", epilog=example("kafka08 topic offsets words --time 2026-01-31T12:00"))
@click.argument("names", nargs=-1, callback=legal_topic)
@click.option(
    "--time",
    "time_ms",
    callback=time_of,
    metavar="earliest|latest|TIME",
    help="One offset per partition. TIME as 2026-01-31T12:00[+01:00], or in ms since 1970.",
)
@click.option("--partitions", callback=numbers_of, metavar="0,1", help="Only these partitions.")
@click.option(
    "--offsets",
    "max_offsets",
    type=Whole(1, INT_MAX),
    default=1,
    show_default=True,
    help="With --time: up to this many, the base offsets of segments before that time.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "jvm"]),
    default="table",
    show_default=True,
    help="jvm: topic:partition:offset as GetOffsetShell prints it; the latest without --time.",
)
@json_option()
@cluster_options
def offsets(
    names: tuple[str, ...],
    time_ms: int | None,
    partitions: list[int] | None,
    max_offsets: int,
    form: str,
    as_json: bool,
) -> None:
    """Show the start and end of the logs of the topics NAMES, or of all; needs no group.

    Where producers have had transactions also the last stable offset: readers of committed messages
    wait there for the end of a transaction. "open" counts the offsets behind it.

    With --time it shows one offset of each partition instead, as exactly as 0.8 can: the start of
    the newest segment last written before that time; for a future time the log end. Exits 1 if an
    offset is unknown.
    """
    if as_json and form == "jvm":
        raise click.UsageError("Give only one of --json and --format jvm.")
    if max_offsets > 1 and time_ms is None:
        raise click.UsageError("--offsets needs --time")
    if form == "jvm" and time_ms is None:
        time_ms = LATEST_OFFSET
    times = [EARLIEST_OFFSET, LATEST_OFFSET] if time_ms is None else [time_ms]
    results = ask(names, partitions, times, max_offsets)
    if time_ms is None:
        rows = [(*tp, *bounds(*of_tp)) for tp, of_tp in results.items()]
        columns = (*BOUNDS, *STABLE) if any(len(row) > len(BOUNDS) for row in rows) else BOUNDS
        show_rows(columns, rows, as_json, if_none=NONE)
    elif form == "jvm":
        for (topic, partition), [result] in results.items():
            if isinstance(result, list):
                show(f"{topic}:{partition}:{','.join(map(str, result))}")
    else:
        what = "offset" if max_offsets == 1 else "offsets"
        cells = [(*tp, cell(result, max_offsets, as_json)) for tp, [result] in results.items()]
        show_rows((*BOUNDS[:2], what), cells, as_json, if_none=NONE)
    sys.exit(report_unknown(results))


def ask(
    names: Sequence[str], partitions: Sequence[int] | None, times: Sequence[int], max_offsets: int
) -> dict[TopicPartition, list[Result]]:
    """partition → the offsets for each of `times`; for both ends, where producers have had
    transactions, also the last stable offset."""
    from kafka08.client import RetryPolicy
    from kafka08.client.cluster import PROBE_S, SILENT_S
    from kafka08.client.log_offsets import offsets_or_errors

    def client(*, negotiates: bool) -> ClusterClient:
        return cluster_client(
            "topic-offsets",
            retry_policy=RetryPolicy(tries=2),
            negotiates=negotiates,
            accepts_0_8=True,
            silent_s=SILENT_S,
        )

    stable: dict[TopicPartition, Result] = {}
    with closing(client(negotiates=prefers_bootstrap())) as cluster:
        cluster.find_silent(PROBE_S)
        cluster.refresh()
        cluster.find_silent(PROBE_S)  # those that no address was given of
        wanted = wanted_partitions(cluster.refresh(), names, partitions)
        if len(times) > 1 and TRANSACTIONS_TOPIC in cluster.metadata.topics:
            # Brokers of 0.8, which log an error when they are asked for their versions, have none.
            with closing(client(negotiates=True)) as of_0_11:
                latest = dict.fromkeys(wanted, LATEST_OFFSET)
                stable = offsets_or_errors(of_0_11, latest, isolation=READ_COMMITTED)
        found = [
            offsets_or_errors(cluster, dict.fromkeys(wanted, time), max_offsets) for time in times
        ]
    if stable:
        found.append(stable)
    return {tp: [of_time[tp] for of_time in found] for tp in wanted}


def wanted_partitions(
    metadata: ClusterMetadata, names: Sequence[str], numbers: Sequence[int] | None
) -> list[TopicPartition]:
    """The partitions with these `numbers` (None: all) of the named topics (none: all), sorted.
    Raises UnknownTopicOrPartition, and the error of a topic."""
    from kafka08.client.metadata import chosen_partitions

    topics = sorted(set(names) or metadata.topics)
    return [tp for topic in topics for tp in chosen_partitions(metadata, topic, numbers)]


def bounds(start: Result, end: Result, *stable: Result) -> tuple[int | None, ...]:
    """Log start, log end, and the number of offsets between them; then if it is given the last
    stable offset, and the number between that and the log end. None if unknown."""
    first, last, *ends = (
        a[0] if isinstance(a, list) and a else None for a in (start, end, *stable)
    )
    found = [first, last, None if first is None or last is None else last - first]
    for one in ends:
        found += [one, None if one is None or last is None else last - one]
    return tuple(found)


def cell(result: Result, max_offsets: int, as_json: bool) -> int | str | list[int] | None:
    """The offset, or several; None if there is none before that time, or it is unknown."""
    if not isinstance(result, list):
        return None
    if max_offsets == 1:
        return result[0] if result else None
    return result if as_json else ",".join(map(str, result)) or None


def report_unknown(results: Mapping[TopicPartition, Sequence[Result]]) -> int:
    """Print on stderr which offsets are unknown, and why; returns the exit code."""
    unknown = {
        tp: next((a for a in of_tp if not isinstance(a, list)), None)
        for tp, of_tp in results.items()
    }
    failed = {tp: error for tp, error in unknown.items() if error is not None}
    return report_failed("Unknown", failed)
