"""`kafka08 group list | describe | explain`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from kafka08.cli.commands import Commands
from kafka08.cli.failures import no_such_group
from kafka08.cli.lag import say_never_committed
from kafka08.cli.options import admin_bootstrap_option, example, json_option, zookeeper_option
from kafka08.cli.table import as_objects, show_table

if TYPE_CHECKING:
    from kafka08.groups import GroupFacts, Member, PartitionFacts

MEMBER_COLUMNS = ("member", "subscribes", "owns")
PARTITION_COLUMNS = (
    "topic",
    "partition",
    "owner",
    "zookeeper",
    "kafka",
    "log start",
    "log end",
)


@click.group(
    cls=Commands, epilog=example("kafka08 group describe readers --zookeeper localhost:2181")
)
def group() -> None:
    """Look at consumer groups: members, owners, offsets of both stores, and what is wrong."""


@group.command("list", epilog=example("kafka08 group list --json"))
@json_option()
@zookeeper_option
def list_(as_json: bool, zookeeper: str) -> None:
    """List the groups that ZooKeeper knows, with their live members."""
    from kafka08.groups import GroupReader

    with GroupReader(zookeeper) as reader:
        found = reader.groups()
    rows = [{"group": g.name, "members": g.members, "topics": list(g.topics)} for g in found]
    if as_json:
        click.echo(json.dumps(rows))
        return
    listed = [(g.name, g.members, ",".join(g.topics)) for g in found]
    show_table(("group", "members", "topics"), listed)


@group.command(epilog=example("kafka08 group describe readers"))
@click.argument("name", metavar="GROUP")
@json_option()
@admin_bootstrap_option
@zookeeper_option
def describe(name: str, as_json: bool, bootstrap: str | None, zookeeper: str) -> None:
    """Show the members of GROUP and, of each partition of its topics, owner, offsets and lag.

    The lag of a partition that was never committed counts from the log's start.
    """
    facts = read(name, bootstrap, zookeeper)
    if as_json:
        click.echo(json.dumps(as_dict(facts)))
        say_never_committed(facts.partitions)
        return
    members = [member_row(facts, member) for member in facts.members]
    show_table(MEMBER_COLUMNS, [tuple(row.values())[: len(MEMBER_COLUMNS)] for row in members])
    if facts.members and facts.partitions:
        click.echo()
    rows = [(*partition_row(p), p.lag_text) for p in facts.partitions]
    show_table((*PARTITION_COLUMNS, "lag"), rows)
    say_never_committed(facts.partitions)
    for what in not_known(facts):
        click.echo(f"Not known: {what}", err=True)


@group.command(epilog=example("kafka08 group explain readers"))
@click.argument("name", metavar="GROUP")
@json_option()
@admin_bootstrap_option
@zookeeper_option
def explain(name: str, as_json: bool, bootstrap: str | None, zookeeper: str) -> None:
    """Say what is wrong with GROUP, why, and what to do. Exits 1 if there is a problem.

    A group that is just rebalancing has problems that pass by themselves.
    """
    from dataclasses import asdict

    from kafka08.groups import explain as findings_of

    facts = read(name, bootstrap, zookeeper)
    findings = findings_of(facts)
    if as_json:
        click.echo(json.dumps({"group": name, "findings": [asdict(f) for f in findings]}))
    else:
        for finding in findings:
            click.echo(str(finding))
        if not findings:
            owned = sum(p.owner is not None for p in facts.partitions)
            click.echo(f"All is well: {len(facts.members)} members own {owned} partitions.")
    sys.exit(1 if any(finding.problem for finding in findings) else 0)


def read(name: str, bootstrap: str | None, zookeeper: str) -> GroupFacts:
    """The facts of a group; KafkaError if neither store knows it."""
    from kafka08.groups import GroupReader

    with GroupReader(zookeeper, bootstrap) as reader:
        facts = reader.facts(name)
        if not facts.exists:
            raise no_such_group(name, [known.name for known in reader.groups()])
    return facts


def as_dict(facts: GroupFacts) -> dict[str, Any]:
    return {
        "group": facts.group,
        "members": [member_row(facts, member) for member in facts.members],
        "partitions": as_objects(
            (*PARTITION_COLUMNS, "lag", "never committed"),
            [(*partition_row(p), p.lag, p.never_committed) for p in facts.partitions],
        ),
        "unanswered": not_known(facts),
    }


def not_known(facts: GroupFacts) -> list[str]:
    """What could not be asked, and offsets that cannot be read, each with the reason."""
    faults = [p.zookeeper_fault for p in facts.partitions if p.zookeeper_fault is not None]
    return [*facts.unanswered, *faults]


def member_row(facts: GroupFacts, member: Member) -> dict[str, Any]:
    threads = [p.owner.thread_id.rpartition("-")[0] for p in facts.partitions if p.owner]
    streams = ",".join(f"{name}:{count}" for name, count in member.streams.items())
    return {
        "member": member.consumer_id,
        "subscribes": f"{member.pattern} {streams}" if member.fault is None else member.fault,
        "owns": threads.count(member.consumer_id),
        "pattern": member.pattern,
        "streams": dict(member.streams),
        "session": f"{member.session:#x}",
    }


def partition_row(partition: PartitionFacts) -> tuple[object, ...]:
    """One row of PARTITION_COLUMNS; None where there is nothing."""
    return (
        partition.topic_partition.topic,
        partition.topic_partition.partition,
        None if partition.owner is None else partition.owner.thread_id,
        partition.zookeeper,
        partition.kafka,
        partition.log_start,
        partition.log_end,
    )
