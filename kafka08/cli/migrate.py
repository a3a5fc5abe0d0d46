"""`kafka08 migrate plan | start | verify | rollback`, for a group that is stopped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from kafka08.cli.options import example, zookeeper_option

if TYPE_CHECKING:
    from kafka08.migration import PartitionFacts, Plan

bootstrap = click.option(
    "--bootstrap",
    envvar="KAFKA08_BOOTSTRAP",
    metavar="HOST:PORT[,..]",
    help="Some brokers; default: those registered in ZooKeeper.",
)
max_disagreement = click.option(
    "--max-disagreement",
    type=click.IntRange(0),
    metavar="N",
    help="Refuse where the two stores are more than N messages apart.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group(epilog=example("kafka08 migrate plan readers --zookeeper localhost:2181"))
def migrate() -> None:
    """Move a stopped group's offsets from ZooKeeper to the offsets topic, and back.

    plan, start, verify; then start the members with offsets.storage=kafka. rollback makes
    ZooKeeper's offsets the ones to go on from. Each step may be repeated.
    """


@migrate.command(epilog=example("kafka08 migrate plan readers --max-disagreement 1000"))
@click.argument("group")
@max_disagreement
@json_option
@bootstrap
@zookeeper_option
def plan(
    group: str, max_disagreement: int | None, as_json: bool, bootstrap: str | None, zookeeper: str
) -> None:
    """Show both stores' offsets of GROUP and what start would do. Changes nothing; exits 1 if
    start would refuse."""
    from kafka08.migration import OffsetMigration

    with OffsetMigration(zookeeper, group, bootstrap) as migration:
        planned = migration.plan(max_disagreement=max_disagreement)
    show_plan(planned, as_json)
    sys.exit(0 if planned.is_allowed else 1)


@migrate.command(epilog=example("kafka08 migrate start readers"))
@click.argument("group")
@max_disagreement
@json_option
@bootstrap
@zookeeper_option
def start(
    group: str, max_disagreement: int | None, as_json: bool, bootstrap: str | None, zookeeper: str
) -> None:
    """Note both stores in a journal, then commit to Kafka whatever is newer in ZooKeeper."""
    from kafka08.migration import OffsetMigration

    with OffsetMigration(zookeeper, group, bootstrap) as migration:
        done = migration.start(max_disagreement=max_disagreement)
    show_plan(done, as_json)
    click.echo(f"Copied the offsets of {len(done.copies)} partitions to Kafka", err=True)


@migrate.command(epilog=example("kafka08 migrate verify readers"))
@click.argument("group")
@json_option
@bootstrap
@zookeeper_option
def verify(group: str, as_json: bool, bootstrap: str | None, zookeeper: str) -> None:
    """Read both stores again; exits 1 with every problem found."""
    from kafka08.migration import OffsetMigration

    with OffsetMigration(zookeeper, group, bootstrap) as migration:
        found = migration.verify()
    if as_json:
        partitions = [row_of(facts) for facts in found.facts.partitions]
        click.echo(json.dumps({"partitions": partitions, "problems": found.problems}))
    else:
        show_table(row_of(facts) for facts in found.facts.partitions)
    for problem in found.problems:
        click.echo(f"Problem: {problem}", err=True)
    if found.is_verified:
        click.echo("Verified: members may start with offsets.storage=kafka", err=True)
    sys.exit(0 if found.is_verified else 1)


@migrate.command(epilog=example("kafka08 migrate rollback readers --to snapshot"))
@click.argument("group")
@click.option(
    "--to",
    type=click.Choice(["newest", "snapshot"]),
    default="newest",
    show_default=True,
    help="newest: nothing is read twice; snapshot: both stores as before the migration.",
)
@bootstrap
@zookeeper_option
def rollback(group: str, to: Any, bootstrap: str | None, zookeeper: str) -> None:
    """Make ZooKeeper's offsets the ones that the members of GROUP go on from."""
    from kafka08.migration import OffsetMigration

    with OffsetMigration(zookeeper, group, bootstrap) as migration:
        done = migration.rollback(to)
    click.echo(
        f"Wrote {len(done.to_zookeeper)} offsets to ZooKeeper and {len(done.to_kafka)} to Kafka, "
        f"removed {len(done.remove_from_zookeeper)} from ZooKeeper",
        err=True,
    )
    for problem in done.problems:
        click.echo(f"Problem: {problem}", err=True)
    sys.exit(1 if done.problems else 0)


def row_of(facts: PartitionFacts) -> dict[str, Any]:
    """The columns of a partition, None where there is nothing."""
    newest, end = facts.newest, facts.log_end
    return {
        "topic": facts.topic_partition.topic,
        "partition": facts.topic_partition.partition,
        "zookeeper": facts.zookeeper,
        "kafka": facts.kafka,
        "log start": facts.log_start,
        "log end": end,
        "lag": None if newest is None or end is None else end - newest,
        "owner": facts.owner,
    }


def show_plan(plan: Plan, as_json: bool) -> None:
    """The plan on stdout, the reasons to refuse on stderr."""
    rows = [
        {**row_of(step.facts), "to do": step.reason or step.action.value} for step in plan.steps
    ]
    if as_json:
        click.echo(json.dumps({"group": plan.group, "partitions": rows, "refusals": plan.refusals}))
    else:
        show_table(rows)
    for refusal in plan.refusals:
        click.echo(f"Refused: {refusal}", err=True)


def show_table(rows: Iterable[dict[str, Any]]) -> None:
    """Columns as wide as what is in them; `-` for nothing."""
    lines = [[("-" if value is None else str(value)) for value in row.values()] for row in rows]
    if not lines:
        click.echo("No offsets are committed.", err=True)
        return
    headings = ["topic", "partition", "zookeeper", "kafka", "log start", "log end", "lag", "owner"]
    if len(lines[0]) > len(headings):
        headings.append("to do")
    table = [headings, *lines]
    widths = [max(len(line[n]) for line in table) for n in range(len(headings))]
    for line in table:
        click.echo("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
