"""`kafka08 offsets get | set | reset | export | import | lag`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kafka08.cli.commands import Commands
from kafka08.cli.failures import no_such_group
from kafka08.cli.options import admin_bootstrap_option, example, json_option, zookeeper_option
from kafka08.cli.table import as_objects, show_table

if TYPE_CHECKING:
    from kafka08.migration.group_offsets import GroupOffsets
    from kafka08.migration.reset import ChangePlan, Target

Function = TypeVar("Function", bound=Callable[..., Any])

COLUMNS = ("topic", "partition", "zookeeper", "kafka", "log start", "log end", "lag")
PLAN_COLUMNS = ("topic", "partition", "zookeeper", "kafka", "log start", "log end", "new", "moved")
STORES = {"both": "dual", "zookeeper": "zookeeper", "kafka": "kafka"}

execute_option = click.option(
    "--execute", is_flag=True, help="Do it. Without this the plan is shown and nothing changes."
)
store_option = click.option(
    "--store",
    type=click.Choice(list(STORES)),
    default="both",
    show_default=True,
    help="Members that read both stores go on from the larger offset: a rewind needs both.",
)


def cluster_options(function: Function) -> Function:
    """--bootstrap and --zookeeper."""
    return admin_bootstrap_option(zookeeper_option(function))


@click.group(cls=Commands, epilog=example("kafka08 offsets get readers --zookeeper localhost:2181"))
def offsets() -> None:
    """Look at groups' committed offsets in both stores, and change those of stopped groups."""


@offsets.command(epilog=example("kafka08 offsets get readers --topic pages"))
@click.argument("group")
@click.option("--topic", "topics", multiple=True, help="Only these topics (repeat for more).")
@json_option()
@cluster_options
def get(
    group: str, topics: tuple[str, ...], as_json: bool, bootstrap: str | None, zookeeper: str
) -> None:
    """Show both stores' offsets of GROUP, and where the logs start and end."""
    from kafka08.migration.connections import Connections
    from kafka08.migration.group_offsets import GroupOffsets

    with Connections(zookeeper, bootstrap) as connections:
        facts = GroupOffsets(connections, group).facts(topics)
    if facts.is_empty:
        raise no_such_group(group)
    rows = [
        (*p.topic_partition, p.zookeeper, p.kafka, p.log_start, p.log_end, p.lag)
        for p in facts.partitions
    ]
    show(COLUMNS, rows, as_json, facts.unknown)


@offsets.command(epilog=example("kafka08 offsets lag readers --fail-above 10000"))
@click.argument("group")
@click.option("--fail-above", type=click.IntRange(0), metavar="N", help="Exit 1 if it is more.")
@json_option()
@cluster_options
def lag(
    group: str, fail_above: int | None, as_json: bool, bootstrap: str | None, zookeeper: str
) -> None:
    """Show how many messages GROUP is behind, by topic, counted from the newer store. Exits 1 if
    that is more than --fail-above, or not known."""
    from kafka08.migration.connections import Connections
    from kafka08.migration.group_offsets import GroupOffsets

    with Connections(zookeeper, bootstrap) as connections:
        facts = GroupOffsets(connections, group).facts()
    if facts.is_empty:
        raise no_such_group(group)
    by_topic: dict[str, list[int]] = {}
    for p in facts.partitions:
        if p.lag is not None:
            by_topic.setdefault(p.topic_partition.topic, []).append(p.lag)
    rows = [(topic, len(lags), max(lags), sum(lags)) for topic, lags in by_topic.items()]
    nothing = () if rows else ("its lag: it has no offset of a partition that exists",)
    show(("topic", "partitions", "largest", "lag"), rows, as_json, facts.unknown or nothing)
    total = sum(sum(lags) for lags in by_topic.values())
    if not as_json:
        click.echo(f"Group {group} is {total} messages behind", err=True)
    sys.exit(1 if fail_above is not None and total > fail_above else 0)


@offsets.command("set", epilog=example("kafka08 offsets set readers pages:0=120 --store kafka"))
@click.argument("group")
@click.argument("positions", nargs=-1, required=True, metavar="TOPIC:PARTITION=OFFSET...")
@store_option
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@json_option()
@cluster_options
def set_(
    group: str,
    positions: tuple[str, ...],
    store: str,
    dry_run: bool,
    as_json: bool,
    bootstrap: str | None,
    zookeeper: str,
) -> None:
    """Set offsets of the stopped GROUP: the next message that it reads of each partition."""
    from kafka08.migration.connections import Connections
    from kafka08.migration.group_offsets import GroupOffsets

    wanted = dict(parse_position(text) for text in positions)
    with Connections(zookeeper, bootstrap) as connections:
        of_group = GroupOffsets(connections, group)
        plan = of_group.plan_set(wanted)
        carry_out(of_group, plan, store, as_json, execute=not dry_run)


@offsets.command(epilog=example("kafka08 offsets reset readers --to earliest --topic pages"))
@click.argument("group")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="earliest|latest|TIME|OFFSET|+N|-N",
    help="TIME as 2026-01-31T12:00[+01:00]; +N and -N shift by so many messages.",
)
@click.option("--topic", "topics", multiple=True, help="Only these topics (repeat for more).")
@store_option
@execute_option
@json_option()
@cluster_options
def reset(
    group: str,
    target: str,
    topics: tuple[str, ...],
    store: str,
    execute: bool,
    as_json: bool,
    bootstrap: str | None,
    zookeeper: str,
) -> None:
    """Plan where the stopped GROUP goes on from, in all its partitions, and do it with --execute.

    A time is met as exactly as 0.8 can: at the start of the segment last written before it.
    """
    from kafka08.migration.connections import Connections
    from kafka08.migration.group_offsets import GroupOffsets

    kind, number = parse_target(target)
    with Connections(zookeeper, bootstrap) as connections:
        of_group = GroupOffsets(connections, group)
        plan = of_group.plan_reset(kind, number, topics)
        carry_out(of_group, plan, store, as_json, execute=execute)


@offsets.command(epilog=example("kafka08 offsets export readers --format jvm --output offsets.txt"))
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Not stdout.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jvm"]),
    default="json",
    show_default=True,
    help="jvm: that of ExportZkOffsets, one line for each offset of one store.",
)
@click.option(
    "--store",
    type=click.Choice(["zookeeper", "kafka", "newest"]),
    default="zookeeper",
    show_default=True,
    help="Whose offsets the format jvm has; json has both.",
)
@cluster_options
def export(
    groups: tuple[str, ...],
    output: Path | None,
    form: str,
    store: str,
    bootstrap: str | None,
    zookeeper: str,
) -> None:
    """Write the offsets of the GROUPs, of all that ZooKeeper knows if none is named. Exits 1 if a
    group had to be left out because not all of its offsets could be read, or does not exist."""
    from kafka08.migration.connections import Connections
    from kafka08.migration.fleet import find_groups, read_groups
    from kafka08.migration.offset_files import to_json, to_jvm_lines
    from kafka08.pace import Pace

    with Connections(zookeeper, bootstrap) as connections:
        names = find_groups(connections, groups, every=not groups)
        pace = Pace(None, connections.clock)
        batches = read_groups(connections, names, pace, everywhere=True)
        found = [f for batch in batches for f in batch]
    both = form == "json" or store != "zookeeper"
    unknown = {f.group: f.unknown_offsets if both else f.faults for f in found}
    unknown |= {f.group: (str(no_such_group(f.group)),) for f in found if groups and f.is_empty}
    facts = [f for f in found if not unknown[f.group]]
    lines = [line + "\n" for line in to_jvm_lines(facts, store)] if form == "jvm" else []
    text = "".join(lines) if form == "jvm" else to_json(facts)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text)
    count = sum(len(f.partitions) for f in facts)
    click.echo(f"Exported {count} partitions of {len(facts)} groups", err=True)
    for group, texts in unknown.items():
        for text in texts:
            click.echo(f"Not exported: {group}: {text}", err=True)
    sys.exit(0 if len(facts) == len(found) else 1)


@offsets.command("import", epilog=example("kafka08 offsets import offsets.txt --execute"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@store_option
@execute_option
@json_option()
@cluster_options
def import_(
    file: Path, store: str, execute: bool, as_json: bool, bootstrap: str | None, zookeeper: str
) -> None:
    """Plan to set what FILE says, ours or that of ExportZkOffsets; do it with --execute. Groups
    that live, and offsets that are not in the log, are refused."""
    from kafka08.migration.connections import Connections
    from kafka08.migration.group_offsets import GroupOffsets
    from kafka08.migration.offset_files import read_offsets

    with Connections(zookeeper, bootstrap) as connections:
        plans = []
        for group, wanted in read_offsets(file).items():
            of_group = GroupOffsets(connections, group)
            plans.append((of_group, of_group.plan_set(wanted)))
        # All or nothing, as far as can be seen beforehand.
        possible = not any(plan.refusals for _, plan in plans)
        for of_group, plan in plans:
            carry_out(of_group, plan, store, as_json, execute=execute and possible)
    sys.exit(0 if possible else 1)


def parse_position(text: str) -> tuple[Any, int]:
    """`TOPIC:PARTITION=OFFSET`."""
    from kafka08.structs import TopicPartition

    match = re.fullmatch(r"([^:=]+):(\d+)=(\d+)", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION=OFFSET")
    return TopicPartition(match[1], int(match[2])), int(match[3])


def parse_target(text: str) -> tuple[Target, int]:
    """(what, its number)."""
    from kafka08.migration.reset import Target

    if text in {"earliest", "latest"}:
        return Target(text), 0
    if re.fullmatch(r"[+-]\d+", text):
        return Target.SHIFT, int(text)
    if text.isdecimal():
        return Target.OFFSET, int(text)
    try:
        return Target.TIMESTAMP, round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not earliest, latest, a time, an offset, +N or -N", param_hint="--to"
        ) from None


def carry_out(
    of_group: GroupOffsets, plan: ChangePlan, store: str, as_json: bool, *, execute: bool
) -> None:
    """Show the plan; carry it out if that is wanted. Exits 1 if it is refused."""
    from kafka08.zk.migration_protocol import Storage

    rows = [
        (
            *c.facts.topic_partition,
            c.facts.zookeeper,
            c.facts.kafka,
            c.facts.log_start,
            c.facts.log_end,
            c.offset,
            c.messages,
        )
        for c in plan.changes
    ]
    show(PLAN_COLUMNS, rows, as_json)
    for refusal in plan.refusals:
        click.echo(f"Refused: {plan.group}: {refusal}", err=True)
    if plan.refusals:
        sys.exit(1)
    if not execute:
        click.echo("Nothing was changed.", err=True)
        return
    count = of_group.carry_out(plan, Storage(STORES[store]))
    click.echo(f"Set the offsets of {count} partitions of group {plan.group}", err=True)


def show(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    as_json: bool,
    unknown: Sequence[str] = (),
) -> None:
    """The rows on stdout, what is not known on stderr; exits 1 if there is such a thing."""
    if as_json:
        click.echo(json.dumps(as_objects(headings, rows)))
    else:
        show_table(headings, rows, if_none=None if unknown else "No offsets are committed.")
    for text in unknown:
        click.echo(f"Not known: {text}", err=True)
    if unknown:
        sys.exit(1)
