"""`kafka08 group list | describe | explain | reset`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import say, show
from kafka08.cli.failures import no_such_group
from kafka08.cli.lag import warn_of_never_committed
from kafka08.cli.offset_plans import (
    TARGET_HELP,
    TARGETS,
    carry_out,
    connect,
    execute_option,
    parse_target,
    read_csv,
    store_option,
)
from kafka08.cli.options import (
    cluster_admin,
    cluster_options,
    cluster_place,
    dry_run_option,
    example,
    json_option,
    prefers_bootstrap,
)
from kafka08.cli.table import as_objects, show_json, show_table

if TYPE_CHECKING:
    from kafka08.groups import GroupReader
    from kafka08.groups.views import ShownGroup

LIST_COLUMNS: Final = ("group", "kind", "state", "members", "topics")


@click.group(
    cls=Commands, epilog=example("kafka08 group describe readers --zookeeper localhost:2181")
)
def group() -> None:
    """Look at consumer groups, in ZooKeeper and with a coordinator: members, owners, offsets, and
    problems. For groups with a coordinator --bootstrap is enough."""


kind_option = click.option(
    "--kind",
    type=click.Choice(["zookeeper", "coordinator"]),
    help="Which group, if ZooKeeper and a coordinator have one of this name. Default: the one with "
    "members; if both have some, that in ZooKeeper.",
)


@group.command("list", epilog=example("kafka08 group list --bootstrap localhost:9092"))
@json_option()
@cluster_options
def list_(as_json: bool) -> None:
    """List the groups in ZooKeeper and those that brokers coordinate (from 0.9 on), with their live
    members. Exits 1 if a broker did not respond, so that its groups are missing."""
    from kafka08.cli.group_view import note_zookeeper_is_not_read, warn_of_failed_requests
    from kafka08.observe.snapshot import COORDINATOR, ZOOKEEPER, GroupState

    with open_reader() as reader:
        has_zookeeper = reader.has_zookeeper
        in_zookeeper = reader.groups() if has_zookeeper else []
        if has_zookeeper and not in_zookeeper:
            reader.check_registered()
        coordinated = reader.coordinated_groups()
    rows: list[tuple[Any, ...]] = [
        (g.name, ZOOKEEPER, None, g.members, list(g.topics)) for g in in_zookeeper
    ]
    names = {g.name for g in in_zookeeper}
    for g in coordinated.groups:
        if COORDINATOR in GroupState(in_zookeeper=g.name in names, coordinated=g).kinds:
            topics = sorted({topic for member in g.members for topic in member.topics})
            rows.append((g.name, COORDINATOR, g.state, len(g.members), topics))
    rows.sort(key=lambda row: row[:2])
    if as_json:
        show_json(as_objects(LIST_COLUMNS, rows))
    else:
        show_table(LIST_COLUMNS, [(*row[:-1], ",".join(row[-1])) for row in rows])
    warn_of_failed_requests(coordinated.failed_requests)
    if not has_zookeeper:
        note_zookeeper_is_not_read(coordinated)
    sys.exit(1 if coordinated.failed_requests else 0)


@group.command(epilog=example("kafka08 group describe readers"))
@click.argument("name", metavar="GROUP")
@kind_option
@json_option()
@cluster_options
def describe(name: str, kind: str | None, as_json: bool) -> None:
    """Show the members of GROUP, and owner, offsets and lag of each partition of its topics.

    The lag of a partition without a committed offset counts from the log's start. An offset in
    Kafka expires unless it is committed again. Exits 1 if a part is not known.
    """
    from kafka08.cli.group_view import show_group, warn_of_failed_requests

    view = read_group(name, kind, with_times=True)
    if as_json:
        show_json(view.as_dict())
    else:
        show_group(view)
        warn_of_failed_requests(view.failed_requests)
    warn_of_never_committed(view.partitions)
    for finding in view.findings():
        if finding.kind == "no-members":
            say(f"No members: {finding.says}")
    sys.exit(1 if view.failed_requests else 0)


@group.command(epilog=example("kafka08 group explain readers"))
@click.argument("name", metavar="GROUP")
@kind_option
@json_option()
@cluster_options
def explain(name: str, kind: str | None, as_json: bool) -> None:
    """Say what is wrong with GROUP, why, and what to do. Exits 1 if there is a problem.

    During a rebalance a group shows problems that disappear by themselves.
    """
    from dataclasses import asdict

    view = read_group(name, kind)
    findings = view.findings()
    if as_json:
        show_json({"group": name, "findings": [asdict(f) for f in findings]})
    else:
        for finding in findings:
            show(str(finding))
        if not findings:
            show(view.all_is_well())
    sys.exit(1 if any(finding.problem for finding in findings) else 0)


@group.command(epilog=example("kafka08 group reset readers --to 2026-01-31T12:00 --execute"))
@click.argument("name", metavar="GROUP")
@click.option("--to", "target", metavar=TARGETS, help=TARGET_HELP)
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The offsets written by --export: topic,partition,offset in each line.",
)
@click.option("--topic", "topics", multiple=True, help="Only these topics (repeat for more).")
@click.option("--export", "as_csv", is_flag=True, help="CSV for --from-file instead of a table.")
@store_option
@execute_option
@json_option()
@cluster_options
def reset(
    name: str,
    target: str | None,
    from_file: Path | None,
    topics: tuple[str, ...],
    as_csv: bool,
    store: str | None,
    execute: bool,
    as_json: bool,
) -> None:
    """Plan new offsets for GROUP, of either kind, in all partitions of its topics; --execute
    commits them. Refuses a group with live members, which would overwrite them.

    A time selects the first message of that time or later where messages have timestamps (brokers
    from 0.10.1 on), else the start of the segment last written before it, as in 0.8.
    """
    from kafka08.admin.group_offsets import GroupOffsets

    if (target is None) == (from_file is None):
        raise click.UsageError("Give one of --to and --from-file.")
    wanted = {} if from_file is None else read_csv(from_file, topics)
    with connect() as connections:
        of_group = GroupOffsets(connections, name)
        if target is None:
            plan = of_group.plan_set(wanted)
        else:
            plan = of_group.plan_reset(*parse_target(target), topics)
        carry_out(of_group, plan, store, as_json, execute=execute, as_csv=as_csv)


@group.command(epilog=example("kafka08 group delete readers --bootstrap localhost:9092"))
@click.argument("name", metavar="GROUP")
@dry_run_option
@json_option("One JSON object.")
@cluster_options
def delete(name: str, dry_run: bool, as_json: bool) -> None:
    """Delete GROUP, which has a coordinator and no members, with its offsets in Kafka. It needs
    --bootstrap, and brokers of Kafka 1.1 or later."""
    from kafka08.admin import BrokerAdmin
    from kafka08.errors import AdminError

    if not prefers_bootstrap():
        raise click.UsageError("Groups are deleted by brokers: give --bootstrap alone.")
    kinds = {finding.kind for finding in read_group(name, "coordinator").findings()}
    if dry_run and "no-members" not in kinds:
        raise AdminError(f"Group {name} has members: stop them first")
    if not dry_run:
        with cluster_admin() as admin:
            assert isinstance(admin, BrokerAdmin), "prefers_bootstrap"
            admin.delete_group(name)
    if as_json:
        show_json({"group": name, "deleted": not dry_run})
    else:
        show(f"{'Would delete' if dry_run else 'Deleted'} group {name}.")


def open_reader() -> GroupReader:
    """A reader for --zookeeper and --bootstrap of the running command."""
    from kafka08.groups import GroupReader

    return GroupReader(*cluster_place())


def read_group(name: str, kind: str | None, *, with_times: bool = False) -> ShownGroup:
    """The group, of the given kind or of the one with members; KafkaError if there is none.
    `with_times`: with the times of its commits to Kafka."""
    from kafka08.cli.group_view import note_other_kind, warn_of_failed_requests
    from kafka08.errors import KafkaError
    from kafka08.groups.views import shown
    from kafka08.observe.snapshot import COORDINATOR, ZOOKEEPER
    from kafka08.zk.paths import check_group

    with open_reader() as reader:
        if kind == ZOOKEEPER:
            if not reader.has_zookeeper:
                raise click.UsageError("--kind zookeeper needs --zookeeper.")
            check_group(name)
        snapshot = reader.snapshot(name)
        group = snapshot.groups[name]
        kinds = [k for k in group.kinds if k == COORDINATOR or reader.may_be_in_zookeeper(name)]
        wanted = [k for k in kinds if kind in (None, k)]
        if group.unknown_group is not None and kind != ZOOKEEPER:
            if not wanted:
                raise group.unknown_group
            warn_of_failed_requests([f"group {name} at a coordinator: {group.unknown_group}"])
        if not wanted:
            if reader.has_zookeeper:
                reader.check_registered()
            known = [g.name for g in reader.groups()] if reader.has_zookeeper else []
            known += [g.name for g in reader.coordinated_groups().groups]
            if kind is not None and name in known:
                raise KafkaError(
                    f"group {name} exists, but is not of the kind {kind}; omit --kind to see it"
                )
            raise no_such_group(name, known, has_zookeeper=reader.has_zookeeper)
        view = shown(snapshot, name, wanted[0])
        if with_times:
            view.commits = reader.commits(name, view.partitions)
    coordinated = group.coordinated
    if wanted == [ZOOKEEPER, COORDINATOR] and coordinated is not None and coordinated.members:
        note_other_kind(name, ZOOKEEPER)
    return view
