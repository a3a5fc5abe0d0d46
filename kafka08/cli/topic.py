"""`kafka08 topic create | list | describe | delete`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click

from kafka08.admin import AdminClient, describe_lines
from kafka08.cli.options import example, legal_topic, zookeeper_option
from kafka08.config import parse_overrides


@click.group(epilog=example("kafka08 topic list --zookeeper localhost:2181"))
def topic() -> None:
    """Create, list, describe and delete topics."""


@contextmanager
def admin_client(zookeeper: str) -> Iterator[AdminClient]:
    admin = AdminClient(zookeeper=zookeeper)
    try:
        yield admin
    finally:
        admin.close()


@topic.command(
    epilog=example("kafka08 topic create words --partitions 4 --config retention.ms=1000")
)
@click.argument("name", callback=legal_topic)
@click.option("--partitions", default=1, show_default=True, type=click.IntRange(1))
@click.option("--replication-factor", default=1, show_default=True, type=click.IntRange(1))
@click.option("--config", "config", multiple=True, metavar="KEY=VALUE", help="A topic override.")
@click.option("--dry-run", is_flag=True, help="Show the assignment and change nothing.")
@zookeeper_option
def create(
    name: str,
    partitions: int,
    replication_factor: int,
    config: tuple[str, ...],
    dry_run: bool,
    zookeeper: str,
) -> None:
    """Create the topic NAME."""
    with admin_client(zookeeper) as admin:
        assignment = admin.create_topic(
            name,
            partitions,
            replication_factor,
            parse_overrides(config, "--config"),
            dry_run=dry_run,
        )
    if dry_run:
        for partition, replicas in sorted(assignment.items()):
            click.echo(f"partition {partition}: replicas {','.join(map(str, replicas))}")
    click.echo(f'{"Would create" if dry_run else "Created"} topic "{name}".')


@topic.command("list", epilog=example("kafka08 topic list --json"))
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
@zookeeper_option
def list_(as_json: bool, zookeeper: str) -> None:
    """List all topics, sorted."""
    with admin_client(zookeeper) as admin:
        names = admin.list_topics()
        doomed = admin.topics_marked_for_deletion()
    if as_json:
        click.echo(json.dumps(names))
        return
    for name in names:
        click.echo(f"{name} - marked for deletion" if name in doomed else name)


@topic.command(epilog=example("kafka08 topic describe words"))
@click.argument("names", nargs=-1, callback=legal_topic)
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
@zookeeper_option
def describe(names: tuple[str, ...], as_json: bool, zookeeper: str) -> None:
    """Describe the topics NAMES, or all: partitions, leader, replicas, ISR, overrides."""
    with admin_client(zookeeper) as admin:
        topics = admin.describe_topics(list(names) or None)
    if as_json:
        click.echo(json.dumps([description.as_dict() for description in topics]))
        return
    for line in describe_lines(topics):
        click.echo(line)


@topic.command(epilog=example("kafka08 topic delete words"))
@click.argument("name", callback=legal_topic)
@click.option("--dry-run", is_flag=True, help="Only check that the topic exists.")
@zookeeper_option
def delete(name: str, dry_run: bool, zookeeper: str) -> None:
    """Ask the controller to delete the topic NAME (it must have delete.topic.enable=true)."""
    with admin_client(zookeeper) as admin:
        admin.delete_topic(name, dry_run=dry_run)
    if dry_run:
        click.echo(f"Would mark topic {name} for deletion.")
        return
    click.echo(f"Topic {name} is marked for deletion.")
    click.echo("Note: This will have no impact if delete.topic.enable is not set to true.")
