"""`kafka08 topic create | list | describe | offsets | alter | delete`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import click
from click.core import ParameterSource

from kafka08.admin import AdminClient, BrokerAdmin, TopicDescription, describe_lines, select
from kafka08.admin.moves import absent_brokers
from kafka08.assignment import parse_assignment
from kafka08.cli.commands import Commands
from kafka08.cli.echo import say, show
from kafka08.cli.failures import exit_if_silent
from kafka08.cli.options import (
    Whole,
    cluster_admin,
    cluster_options,
    example,
    json_option,
    legal_topic,
    prefers_bootstrap,
    rack_option,
)
from kafka08.cli.table import show_json
from kafka08.cli.topic_offsets import offsets
from kafka08.cli.topic_records import delete_records
from kafka08.config import INT_MAX, parse_overrides
from kafka08.listing import counted, some_of
from kafka08.structs import NO_LEADER, TopicPartition

SHORT_MAX = 2**15 - 1
"""The largest replication factor of a CreateTopics request."""


@click.group(cls=Commands, epilog=example("kafka08 topic list --zookeeper localhost:2181"))
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@topic.command(
    epilog=example("kafka08 topic create words --partitions 4 --config retention.ms=1000")
)
@click.argument("name", callback=legal_topic)
@click.option("--partitions", default=1, show_default=True, type=Whole(1, INT_MAX))
@click.option("--replication-factor", default=1, show_default=True, type=Whole(1, SHORT_MAX))
@click.option(
    "--replica-assignment",
    metavar="0:1,1:2",
    help="Replicas of partition 0, of partition 1, …, instead of the two counts.",
)
@click.option("--config", "config", multiple=True, metavar="KEY=VALUE", help="A topic override.")
@rack_option
@click.option("--dry-run", is_flag=True, help="Show the assignment and change nothing.")
@json_option("One JSON object.")
@cluster_options
@click.pass_context
def create(
    context: click.Context,
    name: str,
    partitions: int,
    replication_factor: int,
    replica_assignment: str | None,
    config: tuple[str, ...],
    rack_aware: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Create the topic NAME.

    With --bootstrap alone the controller creates it, which needs brokers of level 0.10.2 or later.
    """
    if replica_assignment is not None:
        for count in ("partitions", "replication_factor"):
            if context.get_parameter_source(count) is not ParameterSource.DEFAULT:
                raise click.UsageError("--replica-assignment cannot be used with the two counts.")
    overrides = overrides_of(config)
    chosen = None if replica_assignment is None else parse_assignment(replica_assignment)
    racks = rack_choice(rack_aware)
    absent: list[str] = []
    with cluster_admin() as admin:
        assignment = admin.create_topic(
            name, partitions, replication_factor, overrides, chosen, dry_run=dry_run, **racks
        )
        if isinstance(admin, AdminClient):
            moves = {TopicPartition(name, number): rs for number, rs in assignment.items()}
            absent = absent_brokers(moves, {}, admin.live_brokers())
    for sentence in absent:
        say(f"WARNING: {sentence}")
    if as_json:
        show_json({"topic": name, "partitions": assignment, "dry_run": dry_run})
        return
    if dry_run:
        for partition, replicas in sorted(assignment.items()):
            show(f"partition {partition}: replicas {','.join(map(str, replicas))}")
    show(f'{"Would create" if dry_run else "Created"} topic "{name}".')


@topic.command("list", epilog=example("kafka08 topic list --json"))
@json_option("One JSON list.")
@cluster_options
def list_(as_json: bool) -> None:
    """List all topics, sorted. With --zookeeper it shows the ones marked for deletion."""
    doomed: list[str] = []
    with cluster_admin() as admin:
        names = admin.list_topics()
        if isinstance(admin, AdminClient):
            doomed = admin.topics_marked_for_deletion()
            if not names:
                admin.check_registered()
    if as_json:
        show_json(names)
        return
    for name in names:
        show(f"{name} - marked for deletion" if name in doomed else name)


@topic.command(epilog=example("kafka08 topic describe words"))
@click.argument("names", nargs=-1, callback=legal_topic)
@click.option(
    "--under-replicated-partitions",
    is_flag=True,
    help="Only partitions with fewer in-sync replicas than replicas.",
)
@click.option(
    "--unavailable-partitions", is_flag=True, help="Only partitions without a live leader."
)
@click.option(
    "--topics-with-overrides", is_flag=True, help="Only topics with overrides, and no partitions."
)
@json_option("One JSON list.")
@cluster_options
def describe(
    names: tuple[str, ...],
    under_replicated_partitions: bool,
    unavailable_partitions: bool,
    topics_with_overrides: bool,
    as_json: bool,
) -> None:
    """Describe the topics NAMES, or all: partitions, leader, replicas, ISR, overrides.

    With both partition filters it shows partitions that pass either. With --bootstrap alone it
    shows no overrides if the brokers are older than 0.11, and no dead replicas before 0.10.1.
    """
    by_partition = under_replicated_partitions or unavailable_partitions
    if topics_with_overrides and by_partition:
        raise click.UsageError(
            "--topics-with-overrides shows topics, the other filters show partitions; use one kind."
        )
    silent: dict[int, str] = {}
    with cluster_admin() as admin:
        topics = admin.describe_topics(list(names) or None)
        if isinstance(admin, AdminClient):
            silent = admin.silent_brokers()
            if not topics:
                admin.check_registered()
        elif topics_with_overrides and not admin.shows_overrides():
            raise click.UsageError(
                "--topics-with-overrides needs --zookeeper: these brokers are older than 0.11."
            )
        live = admin.live_brokers()
    filters = {
        "under_replicated": under_replicated_partitions,
        "unavailable": unavailable_partitions,
        "with_overrides": topics_with_overrides,
    }
    found = select(topics, **filters, live_brokers=live)
    if as_json:
        show_json([description.as_dict() for description in found])
        exit_if_silent(silent)
        return
    lines = list(describe_lines(topics, **filters, live_brokers=live))
    for line in lines:
        show(line)
    warn_of_dead_leaders(found, live)
    if not lines and any(filters.values()):
        faults = {
            "under-replicated": under_replicated_partitions,
            "unavailable": unavailable_partitions,
        }
        asked = " or ".join(fault for fault, is_asked in faults.items() if is_asked)
        what = f"partition is {asked}" if asked else "topic has overrides"
        say(f"No {what} among {counted(len(topics), 'topic')}.")
    exit_if_silent(silent)


topic.add_command(offsets)
topic.add_command(delete_records)


@topic.command(epilog=example("kafka08 topic alter words --config retention.ms=3600000"))
@click.argument("name", callback=legal_topic)
@click.option("--config", "config", multiple=True, metavar="KEY=VALUE", help="Set an override.")
@click.option("--delete-config", multiple=True, metavar="KEY", help="Remove an override.")
@click.option("--partitions", type=Whole(1), help="Raise the number of partitions.")
@rack_option
@click.option("--dry-run", is_flag=True, help="Check everything and change nothing.")
@json_option("One JSON object.")
@cluster_options
def alter(
    name: str,
    config: tuple[str, ...],
    delete_config: tuple[str, ...],
    partitions: int | None,
    rack_aware: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Change overrides of the topic NAME, or add partitions. Brokers need no restart.

    With --bootstrap alone it needs brokers of Kafka 1.0 or later, for overrides of 0.11.
    """
    if not (config or delete_config or partitions):
        raise click.UsageError("Give --config, --delete-config or --partitions.")
    overrides = overrides_of(config)
    dropped = 0
    racks = rack_choice(rack_aware)
    with cluster_admin() as admin:
        if delete_config:
            dropped = len(admin.overrides(name).keys() & set(delete_config))
        added = admin.alter_topic(
            name,
            config=overrides,
            delete_config=delete_config,
            partitions=partitions,
            dry_run=dry_run,
            **racks,
        )
    if as_json:
        done = {"set": len(overrides), "dropped": dropped, "added": added, "dry_run": dry_run}
        show_json({"topic": name, **done})
    would = "Would " if dry_run else ""
    if (overrides or delete_config) and not as_json:
        show(
            f'{would}{"update" if dry_run else "Updated"} config for topic "{name}": '
            f"{len(overrides)} set, {dropped} dropped."
        )
    if added and not as_json:
        for number, replicas in added.items() if any(added.values()) else ():
            show(f"partition {number}: replicas {','.join(map(str, replicas))}")
        show(f"{would}{'add' if dry_run else 'Added'} {counted(len(added), 'partition')}.")
    if added:
        say(
            "WARNING: If partitions are increased for a topic that has a key, the partition logic "
            "or ordering of the messages will be affected",
        )


@topic.command(epilog=example("kafka08 topic delete words"))
@click.argument("name", callback=legal_topic)
@click.option("--dry-run", is_flag=True, help="Only check that the topic exists.")
@json_option("One JSON object.")
@cluster_options
def delete(name: str, dry_run: bool, as_json: bool) -> None:
    """Ask the controller to delete the topic NAME (it must have delete.topic.enable=true).

    With --bootstrap alone it waits until the topic is deleted, which needs brokers of level 0.10.2
    or later.
    """
    with cluster_admin() as admin:
        is_done = admin.delete_topic(name, dry_run=dry_run)
        is_by_brokers = isinstance(admin, BrokerAdmin)
    is_gone = is_by_brokers and is_done and not dry_run
    if as_json:
        marked = not dry_run and not is_gone
        shown = {"topic": name, "marked_for_deletion": marked, "dry_run": dry_run}
        show_json(shown | ({"deleted": True} if is_gone else {}))
    elif is_gone:
        show(f"Deleted topic {name}.")
    elif not is_by_brokers and not is_done:
        show(f"Topic {name} is already marked for deletion.")
    elif dry_run:
        show(f"Would mark topic {name} for deletion.")
    else:
        show(f"Topic {name} is marked for deletion.")
        show("Note: This will have no impact if delete.topic.enable is not set to true.")


def warn_of_dead_leaders(topics: Iterable[TopicDescription], live: Collection[int]) -> None:
    """Say on stderr which leaders that ZooKeeper names are not there: a broker that becomes the
    controller after their death leaves it so, and a JVM's too."""
    led: dict[int, list[TopicPartition]] = {}
    for description in topics:
        for partition in description.partitions:
            leader = partition.leader
            if leader is not None and leader not in {NO_LEADER, *live}:
                tp = TopicPartition(description.name, partition.partition)
                led.setdefault(leader, []).append(tp)
    for broker_id, partitions in led.items():
        say(
            f"Unavailable: {some_of(partitions)}: broker {broker_id}, the leader, is not registered"
        )


def overrides_of(config: tuple[str, ...]) -> dict[str, str]:
    """The overrides of --config; blanks around key and value do not count, as in kafka-topics."""
    pairs = parse_overrides(config, "--config")
    return {name.strip(): value.strip() for name, value in pairs.items()}


def rack_choice(rack_aware: bool) -> dict[str, Any]:
    """--disable-rack-aware as an argument of AdminClient. Brokers that are asked alone have no such
    choice: UsageError."""
    if not prefers_bootstrap():
        return {"rack_aware": rack_aware}
    if not rack_aware:
        raise click.UsageError("--disable-rack-aware needs --zookeeper.")
    return {}
