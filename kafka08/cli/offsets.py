"""`kafka08 offsets get | set | reset | export | import | lag`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import pass_on, say
from kafka08.cli.failures import no_such_group
from kafka08.cli.offset_cells import OFFSET_COLUMNS, offset_cells
from kafka08.cli.offset_plans import (
    TARGET_HELP,
    TARGETS,
    carry_out,
    connect,
    execute_option,
    parse_position,
    parse_target,
    show_offsets,
    store_option,
    without_conflicts,
)
from kafka08.cli.options import (
    Whole,
    cluster_options,
    dry_run_option,
    example,
    json_option,
    match_option,
    prefers_bootstrap,
)
from kafka08.listing import counted, some_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka08.admin.connections import Connections
    from kafka08.admin.group_facts import GroupFacts
    from kafka08.observe.group import PartitionFacts
    from kafka08.observe.lag import TopicLag
    from kafka08.structs import TopicPartition

COLUMNS = (*OFFSET_COLUMNS, "lag")
COORDINATED = "that has a coordinator"
LAG_COLUMNS = ("topic", "partitions", "never committed", "largest", "lag")


@click.group(cls=Commands, epilog=example("kafka08 offsets get readers --zookeeper localhost:2181"))
def offsets() -> None:
    """Show groups' committed offsets in both stores, and change those of stopped groups. For groups
    with a coordinator --bootstrap is enough."""


@offsets.command(epilog=example("kafka08 offsets get readers --topic pages"))
@click.argument("group")
@click.option("--topic", "topics", multiple=True, help="Only these topics (repeat for more).")
@json_option()
@cluster_options
def get(group: str, topics: tuple[str, ...], as_json: bool) -> None:
    """Show both stores' offsets of GROUP in all partitions of its topics, and the start and end of
    the logs."""
    facts = read_known(group, topics)
    rows = [offsets_row(p, as_json) for p in facts.partitions]
    headings = (*COLUMNS, "never committed") if as_json else COLUMNS
    show_offsets(headings, rows, as_json, facts.unknown, facts.partitions)


@offsets.command(epilog=example("kafka08 offsets lag readers --fail-above 10000"))
@click.argument("group")
@click.option("--fail-above", type=Whole(0), metavar="N", help="Exit 1 if it is larger.")
@json_option()
@cluster_options
def lag(group: str, fail_above: int | None, as_json: bool) -> None:
    """Show the lag of GROUP by topic, in messages, from the larger of both stores' offsets. Exits 1
    if it exceeds --fail-above, or is unknown.

    A partition without a committed offset counts from its log's start: the lag is then a lower
    bound, and --fail-above fails.
    """
    from kafka08.observe.lag import lag_by_topic

    facts = read_known(group)
    topics = lag_by_topic(facts.partitions)
    rows = [lag_row(row, as_json) for row in topics]
    nothing = () if rows else ("its lag: the group has no offset of an existing partition",)
    show_offsets(LAG_COLUMNS, rows, as_json, facts.unknown or nothing, facts.partitions)
    total, is_exact = sum(row.lag for row in topics), all(row.is_exact for row in topics)
    if not as_json:
        number = total if is_exact else f"at least {total}"
        say(f"Group {group} is {number} messages behind")
    beyond_end = [tp for row in topics for tp in row.beyond_end]
    if beyond_end:
        say(
            f"Beyond the log's end: the offsets of {some_of(beyond_end)}; the topic was created "
            f"again, or its log was truncated. kafka08 group explain {group} shows them",
        )
    if fail_above is None or (is_exact and total <= fail_above):
        sys.exit(1 if beyond_end else 0)
    if total <= fail_above:
        say(f"--fail-above {fail_above} fails: the lag is only a lower bound")
    sys.exit(1)


def read_known(group: str, topics: Sequence[str] = ()) -> GroupFacts:
    """The facts of a group, of these topics alone if there are some. KafkaError if it does not
    exist."""
    from kafka08.admin.group_offsets import GroupOffsets

    with connect() as connections:
        of_group = GroupOffsets(connections, group)
        facts = of_group.facts(topics)
        if of_group.is_known(facts):
            return facts
        known = of_group.known_groups()
        raise no_such_group(group, known, has_zookeeper=of_group.has_zookeeper)


def lag_row(lag: TopicLag, as_json: bool) -> tuple[object, ...]:
    """A row of LAG_COLUMNS."""
    number = lag.lag_text if not as_json else lag.lag if lag.partitions else None
    return (lag.topic, lag.partitions, len(lag.never_committed), lag.largest, number)


def offsets_row(p: PartitionFacts, as_json: bool) -> tuple[object, ...]:
    """A row of COLUMNS; in JSON also whether it was never committed."""
    row = offset_cells(p)
    return (*row, p.lag, p.never_committed) if as_json else (*row, p.lag_text)


@offsets.command("set", epilog=example("kafka08 offsets set readers pages:0=120 --store kafka"))
@click.argument("group")
@click.argument("positions", nargs=-1, required=True, metavar="TOPIC:PARTITION=OFFSET...")
@store_option
@dry_run_option
@json_option()
@cluster_options
def set_(
    group: str,
    positions: tuple[str, ...],
    store: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set committed offsets of the stopped GROUP. OFFSET is that of the next message to read."""
    from kafka08.admin.group_offsets import GroupOffsets

    wanted = without_conflicts(map(parse_position, positions), "POSITION")
    with connect() as connections:
        of_group = GroupOffsets(connections, group)
        plan = of_group.plan_set(wanted)
        carry_out(of_group, plan, store, as_json, execute=not dry_run)


@offsets.command(epilog=example("kafka08 offsets reset readers --to earliest --topic pages"))
@click.argument("group")
@click.option("--to", "target", required=True, metavar=TARGETS, help=TARGET_HELP)
@click.option("--topic", "topics", multiple=True, help="Only these topics (repeat for more).")
@store_option
@execute_option
@json_option()
@cluster_options
def reset(
    group: str,
    target: str,
    topics: tuple[str, ...],
    store: str | None,
    execute: bool,
    as_json: bool,
) -> None:
    """Plan new offsets for the stopped GROUP in all partitions of its topics, committed or not;
    --execute commits them.

    A time selects the first message of that time or later where messages have timestamps (brokers
    from 0.10.1 on), else the start of the segment last written before it, as in 0.8.
    """
    from kafka08.admin.group_offsets import GroupOffsets

    kind, number = parse_target(target)
    with connect() as connections:
        of_group = GroupOffsets(connections, group)
        plan = of_group.plan_reset(kind, number, topics)
        carry_out(of_group, plan, store, as_json, execute=execute)


@offsets.command(epilog=example("kafka08 offsets export readers --format jvm --output offsets.txt"))
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@match_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; default: stdout.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jvm"]),
    default="json",
    show_default=True,
    help="jvm: that of ExportZkOffsets, one line per offset of one store.",
)
@click.option(
    "--store",
    type=click.Choice(["zookeeper", "kafka", "newest"]),
    help="The store for the format jvm; default: zookeeper, or kafka without --zookeeper. json has "
    "both.",
)
@cluster_options
def export(
    groups: tuple[str, ...],
    patterns: tuple[str, ...],
    output: Path | None,
    form: str,
    store: str | None,
) -> None:
    """Write the offsets of the GROUPs, by default of all; without --zookeeper, of those that have
    a coordinator. Exits 1 if a group does not exist, or is left out because some of its offsets are
    unreadable."""
    from kafka08.admin.offset_files import to_json, to_jvm_lines

    has_zookeeper = not prefers_bootstrap()
    if store is None:
        store = "zookeeper" if has_zookeeper else "kafka"
    elif store == "zookeeper" and not has_zookeeper:
        raise click.UsageError("--store zookeeper needs --zookeeper, the address of ZooKeeper")
    both = form == "json" or store != "zookeeper"
    with connect() as connections:
        found, unlisted = exported(connections, groups, patterns, with_kafka=both)
    never_committed = {f.group: others for f, others in found}
    unknown = {f.group: f.unknown_offsets if both else f.faults for f, _ in found}
    for f, _ in found:
        if groups and f.is_empty:
            unknown[f.group] = (str(no_such_group(f.group, has_zookeeper=has_zookeeper)),)
    facts = [f for f, _ in found if not unknown[f.group]]
    lines = [line + "\n" for line in to_jvm_lines(facts, store)] if form == "jvm" else []
    text = "".join(lines) if form == "jvm" else to_json(facts)
    if output is None:
        pass_on(text)
    else:
        output.write_text(text, encoding="utf-8")
    count = sum(p.newest is not None for f in facts for p in f.partitions)
    say(f"Exported {counted(count, 'partition')} of {counted(len(facts), 'group')}")
    for f in facts:
        if missing := never_committed[f.group]:
            say(f"Never committed, not exported: {f.group}: {some_of(missing)}")
    unknown_groups = [f"{group}: {why}" for group, texts in unknown.items() for why in texts]
    for why in (*unlisted, *unknown_groups):
        say(f"Not exported: {why}")
    sys.exit(0 if len(facts) == len(found) and not unlisted else 1)


def exported(
    connections: Connections, groups: Sequence[str], patterns: Sequence[str], *, with_kafka: bool
) -> tuple[list[tuple[GroupFacts, list[TopicPartition]]], tuple[str, ...]]:
    """The groups meant, all if none is named, each with the partitions that it never committed; and
    which could not be listed, and why. `with_kafka`: also those that only a coordinator knows."""
    from kafka08.admin.group_facts import read_committed
    from kafka08.cli.group_view import note_zookeeper_is_not_read
    from kafka08.migration.fleet import choose_groups, find_groups
    from kafka08.observe.coordinator_reader import may_coordinate

    every = not groups and not patterns
    if not connections.has_zookeeper:
        listed = connections.groups.groups()
        known = [group.name for group in listed.groups]
        if listed.old_brokers and not known and every:
            why = "groups in ZooKeeper, and brokers of 0.8 have no others; give --zookeeper"
            return [], (*listed.failed_requests, why)
        note_zookeeper_is_not_read(listed)
        names = known if every else choose_groups(groups, patterns, known, COORDINATED)
        return list(read_committed(names, connections)), listed.failed_requests
    names = find_groups(connections, groups, patterns, every=every)
    unlisted: tuple[str, ...] = ()
    if every and with_kafka and may_coordinate(connections.store):
        listed = connections.groups.groups()
        names = list(dict.fromkeys([*names, *(group.name for group in listed.groups)]))
        unlisted = listed.failed_requests
    return list(read_committed(names, connections)), unlisted


@offsets.command("import", epilog=example("kafka08 offsets import offsets.txt --execute"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@store_option
@execute_option
@json_option()
@cluster_options
def import_(
    file: Path,
    store: str | None,
    execute: bool,
    as_json: bool,
) -> None:
    """Plan to set the offsets in FILE, in our format, which has each store's own, or that of
    ExportZkOffsets; --execute commits them. Refuses groups with live members, and offsets outside
    the log."""
    from kafka08.admin.group_offsets import GroupOffsets
    from kafka08.admin.offset_files import read_offsets

    with connect() as connections:
        plans = []
        for group, wanted in read_offsets(file).items():
            of_group = GroupOffsets(connections, group)
            plans.append((of_group, plan := of_group.plan_import(wanted)))
            if kept := [change.kept for change in plan.changes if change.kept]:
                say(f"Not in {file}, so unchanged: {group}: {some_of(kept)}")
            if left_out := of_group.left_out(wanted):
                say(f"Not in {file}, so unchanged: {group}: {some_of(left_out)}")
        # All or nothing, as far as it can be checked beforehand.
        possible = not any(plan.refusals for _, plan in plans)
        for of_group, plan in plans:
            carry_out(of_group, plan, store, as_json, execute=execute and possible)
    sys.exit(0 if possible else 1)
