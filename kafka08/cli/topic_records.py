"""`kafka08 topic delete-records`: deletes the first records of partitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import click

from kafka08.cli.failures import report_failed
from kafka08.cli.options import (
    cluster_client,
    cluster_options,
    dry_run_option,
    example,
    is_number,
    json_option,
    legal_topic,
    prefers_bootstrap,
)
from kafka08.cli.table import show_rows
from kafka08.cli.topic_offsets import NONE, numbers_of, wanted_partitions
from kafka08.config import LONG_MAX
from kafka08.errors import AdminError, KafkaError, NoBrokerSaysVersions, OffsetOutOfRange
from kafka08.protocol.delete_records import HIGH_WATERMARK
from kafka08.structs import TopicPartition

COLUMNS: Final = ("topic", "partition", "log start", "new log start")
TIMEOUT_MS: Final = 10_000
"""How long the brokers wait for a replica."""


def offset_of(_: click.Context, parameter: click.Parameter, value: str) -> int:
    """An offset, or HIGH_WATERMARK."""
    if value == "latest":
        return HIGH_WATERMARK
    if is_number(value) and int(value) <= LONG_MAX:
        return int(value)
    raise click.BadParameter(f"{value!r} is neither an offset nor latest", param=parameter)


@contextmanager
def refused_by_0_8() -> Iterator[None]:
    """AdminError for registered brokers that do not even report their API versions."""
    from kafka08.admin.record_deletions import TOO_OLD

    try:
        yield
    except NoBrokerSaysVersions:
        if prefers_bootstrap():  # the addresses may be wrong
            raise
        raise AdminError(TOO_OLD) from None


@click.command("delete-records", epilog=example("kafka08 topic delete-records words --before 9000"))
@click.argument("name", callback=legal_topic)
@click.option(
    "--before",
    required=True,
    callback=offset_of,
    metavar="OFFSET|latest",
    help="The first offset that stays; latest: none does.",
)
@click.option("--partitions", callback=numbers_of, metavar="0,1", help="Only these partitions.")
@dry_run_option
@json_option()
@cluster_options
def delete_records(
    name: str,
    before: int,
    partitions: list[int] | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete the first records of the topic NAME on all replicas, for good.

    Consumers below an offset reset. For brokers from 0.11 on, and topics whose cleanup.policy has
    delete. Exits 1 if a partition keeps its records.
    """
    from kafka08.admin.record_deletions import delete_records as delete
    from kafka08.client import RetryPolicy
    from kafka08.client.log_offsets import log_ends, log_starts

    client = cluster_client(
        "topic-delete-records", retry_policy=RetryPolicy(tries=2), negotiates=True
    )
    with closing(client) as cluster, refused_by_0_8():
        wanted = wanted_partitions(cluster.refresh(), [name], partitions)
        starts = log_starts(cluster, wanted)
        if dry_run:
            found: dict[TopicPartition, int | KafkaError] = {}
            for tp, end in log_ends(cluster, wanted).items():
                offset = end if before == HIGH_WATERMARK else before
                found[tp] = max(starts[tp], offset)
                if offset > end:
                    found[tp] = OffsetOutOfRange(f"{tp} ends at {end}")
        else:
            found = delete(cluster, dict.fromkeys(wanted, before), TIMEOUT_MS)
    results = {tp: found[tp] for tp in wanted}
    rows = [
        (*tp, starts[tp], None if isinstance(result, KafkaError) else result)
        for tp, result in results.items()
    ]
    show_rows(COLUMNS, rows, as_json, if_none=NONE)
    failed = {tp: one for tp, one in results.items() if isinstance(one, KafkaError)}
    sys.exit(report_failed("Not deleted", failed))
