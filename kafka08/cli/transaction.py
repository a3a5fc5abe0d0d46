"""`kafka08 transaction list | describe | hanging | abort`."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import show
from kafka08.cli.options import (
    cluster_client,
    cluster_options,
    dry_run_option,
    example,
    json_option,
    topic_partition,
)
from kafka08.cli.table import show_json, show_rows
from kafka08.cli.times import moment
from kafka08.cli.topic_offsets import wanted_partitions
from kafka08.printable import printable
from kafka08.structs import TRANSACTIONS_TOPIC, TopicPartition

if TYPE_CHECKING:
    from kafka08.client import ClusterClient
    from kafka08.observe.transactions import FoundTransaction, WaitingPartition

COLUMNS: Final = (
    *("transactional id", "state", "producer id", "epoch"),
    *("partitions", "open s", "coordinator"),
)
WAITING_COLUMNS: Final = (
    *("topic", "partition", "waits at", "end", "lag", "producer id", "epoch"),
    *("transactional id", "state", "open s", "overdue"),
)
NONE: Final = "There are no transactional ids."


@click.group(cls=Commands, epilog=example("kafka08 transaction list --bootstrap localhost:9092"))
def transaction() -> None:
    """Look at producers' transactions, and end one that stays open. For brokers from 0.11 on."""


@transaction.command("list", epilog=example("kafka08 transaction list --open"))
@click.option("--open", "only_open", is_flag=True, help="Only those with an open transaction.")
@json_option()
@cluster_options
def list_(only_open: bool, as_json: bool) -> None:
    """List the transactional ids: the state of each, and how long its transaction is open. Readers
    of committed messages wait for its end."""
    from kafka08.observe.transactions import transactions
    from kafka08.runtime.threads import THREADS

    with open_cluster() as cluster:
        found = transactions(cluster, THREADS)
    rows = [row_of(one) for one in found if one.is_open or not only_open]
    show_rows(COLUMNS, rows, as_json, if_none="No transaction is open." if only_open else NONE)


@transaction.command(epilog=example("kafka08 transaction describe copier-1"))
@click.argument("transactional_id")
@json_option("One JSON object.")
@cluster_options
def describe(transactional_id: str, as_json: bool) -> None:
    """Show the state of TRANSACTIONAL_ID, and the partitions that its transaction has."""
    from kafka08.admin.transactions import find_transaction
    from kafka08.runtime.threads import THREADS

    with open_cluster() as cluster:
        found = find_transaction(cluster, transactional_id, THREADS)
    facts = facts_of(found)
    if as_json:
        show_json(facts)
        return
    for name, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else value
        show(f"{name.replace('_', ' ')}: {'-' if text in ('', None) else printable(str(text))}")


@transaction.command(epilog=example("kafka08 transaction hanging"))
@json_option()
@cluster_options
def hanging(as_json: bool) -> None:
    """List the partitions in which readers of committed messages wait for a transaction. Overdue:
    for longer than brokers allow it to be open. `abort --partition` ends one that no transactional
    id has."""
    from kafka08.observe.transactions import waiting_partitions
    from kafka08.runtime.threads import THREADS

    with open_cluster() as cluster:
        topics = cluster.refresh().topics
        partitions = [
            TopicPartition(name, info.partition)
            for name in topics
            if name != TRANSACTIONS_TOPIC
            for info in cluster.partitions(name)
        ]
        found = waiting_partitions(cluster, partitions, THREADS)
    show_rows(
        WAITING_COLUMNS,
        [waiting_row(one) for one in found],
        as_json,
        if_none="No reader of committed messages waits.",
    )


@transaction.command(epilog=example("kafka08 transaction abort copier-1"))
@click.argument("transactional_id", required=False)
@click.option(
    "--partition",
    metavar="TOPIC:NUMBER",
    help="Instead of an id: end what keeps readers waiting in this partition, as its coordinator "
    "has decided, else abort it.",
)
@dry_run_option
@json_option("One JSON object.")
@cluster_options
def abort(
    transactional_id: str | None,
    partition: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Abort the open transaction of TRANSACTIONAL_ID. Its producer is fenced: it cannot go on, and
    must be started again. Without an open transaction nothing is changed."""
    if (transactional_id is None) == (partition is None):
        raise click.UsageError("give a transactional id, or --partition")
    with open_cluster() as cluster:
        if partition is not None:
            end_in_partition(cluster, partition, dry_run=dry_run, as_json=as_json)
        elif transactional_id is not None:
            abort_id(cluster, transactional_id, dry_run=dry_run, as_json=as_json)


def abort_id(
    cluster: ClusterClient, transactional_id: str, *, dry_run: bool, as_json: bool
) -> None:
    from kafka08.admin.transactions import abort_transaction, find_transaction
    from kafka08.runtime.threads import THREADS

    found = find_transaction(cluster, transactional_id, THREADS)
    aborts = found.is_open and not dry_run
    if aborts:
        abort_transaction(cluster, found, THREADS)
    count = len(found.record.partitions)
    if as_json:
        show_json({"transactional_id": transactional_id, "partitions": count, "aborted": aborts})
    elif not found.is_open:
        show(f"{printable(transactional_id)} has no open transaction ({state_of(found)}).")
    else:
        what = "Would abort" if dry_run else "Aborted"
        show(f"{what} the transaction of {printable(transactional_id)} in {count} partitions.")


def end_in_partition(cluster: ClusterClient, name: str, *, dry_run: bool, as_json: bool) -> None:
    from kafka08.admin.transactions import end_by_hand
    from kafka08.observe.transactions import waiting_partitions
    from kafka08.runtime.threads import THREADS

    tp = topic_partition(name)
    wanted_partitions(cluster.refresh(), [tp.topic], [tp.partition])
    found = waiting_partitions(cluster, [tp], THREADS)
    commits = end_by_hand(cluster, found[0]) if found and not dry_run else None
    if as_json:
        ended = None if commits is None else ("commit" if commits else "abort")
        show_json({"partition": name, "waits": bool(found), "ended": ended})
    elif not found:
        show(f"No reader of committed messages waits in {printable(name)}.")
    else:
        verb = "Would end" if dry_run else "Committed" if commits else "Aborted"
        show(f"{verb} the transaction of producer {found[0].producer_id} in {printable(name)}.")


def waiting_row(one: WaitingPartition) -> tuple[object, ...]:
    now_ms = round(time.time() * 1000)
    found = one.transaction
    return (
        one.partition.topic,
        one.partition.partition,
        one.offset,
        one.end,
        one.end - one.offset,
        one.producer_id,
        one.epoch,
        found.transactional_id if found is not None and one.is_known else None,
        state_of(found) if found is not None and one.is_known else None,
        max(0, (now_ms - one.since_ms) // 1000),
        "yes" if one.is_overdue(now_ms) else "no",
    )


def open_cluster() -> closing[ClusterClient]:
    return closing(cluster_client("transaction", negotiates=True))


def state_of(found: FoundTransaction) -> str:
    """The state as Kafka's tools write it, such as PrepareCommit."""
    return found.record.state.name.title().replace("_", "")


def row_of(found: FoundTransaction) -> tuple[object, ...]:
    record = found.record
    age_s = max(0, round(time.time() - record.start_ms / 1000)) if found.is_open else None
    return (
        found.transactional_id,
        state_of(found),
        record.producer_id,
        record.producer_epoch,
        len(record.partitions),
        age_s,
        found.coordinator,
    )


def facts_of(found: FoundTransaction) -> dict[str, Any]:
    record = found.record
    return {
        "transactional_id": found.transactional_id,
        "state": state_of(found),
        "producer_id": record.producer_id,
        "epoch": record.producer_epoch,
        "coordinator": found.coordinator,
        "timeout_ms": record.timeout_ms,
        "started": None if record.start_ms < 0 else moment(record.start_ms),
        "last_change": moment(record.last_update_ms),
        "partitions": [f"{tp.topic}-{tp.partition}" for tp in sorted(record.partitions)],
    }
