"""Shows and executes plans of new offsets for a stopped group.

For `kafka08 offsets set | reset | import` and `kafka08 group reset`.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka08.cli.echo import say
from kafka08.cli.lag import warn_of_never_committed
from kafka08.cli.offset_cells import OFFSET_COLUMNS, offset_cells
from kafka08.cli.options import cluster_place, is_number
from kafka08.cli.table import show_rows
from kafka08.cli.times import no_times, parse_ms
from kafka08.listing import counted

if TYPE_CHECKING:
    from kafka08.admin.connections import Connections
    from kafka08.admin.group_offsets import GroupOffsets
    from kafka08.admin.offset_changes import ChangePlan, Target
    from kafka08.observe.group import PartitionFacts
    from kafka08.structs import TopicPartition

PLAN_COLUMNS: Final = (*OFFSET_COLUMNS, "new", "moved")
WHERE: Final = {"zookeeper": "ZooKeeper", "kafka": "Kafka", "dual": "ZooKeeper and Kafka"}
STORES: Final = {"both": "dual", "zookeeper": "zookeeper", "kafka": "kafka"}

execute_option = click.option(
    "--execute", is_flag=True, help="Execute the plan. Without this it is only shown."
)
store_option = click.option(
    "--store",
    type=click.Choice(list(STORES)),
    help="The store to change. Members that read both continue from the larger offset, so a rewind "
    "needs both. Default: those where the group has offsets (for an import, or a new group, both); "
    "kafka without --zookeeper, or for a group that only a coordinator knows.",
)
OTHER_TARGETS: Final = "Use --to with earliest, an offset or -N instead"
TARGETS: Final = "earliest|latest|TIME|OFFSET|+N|-N"
TARGET_HELP: Final = (
    "TIME as 2026-01-31T12:00[+01:00]; +N and -N shift by N messages, or from the log's start in a "
    "partition without a committed offset."
)


def connect() -> Connections:
    """Connections for --zookeeper and --bootstrap of the running command."""
    from kafka08.admin.connections import Connections

    connections = Connections(*cluster_place(), is_patient=False)
    connections.wait_less()
    return connections


def parse_position(text: str) -> tuple[Any, int]:
    """`TOPIC:PARTITION=OFFSET`."""
    from kafka08.structs import TopicPartition

    match = re.fullmatch(r"([^:=]+):(\d+)=(\d+)", text)
    if match is None or not (is_number(match[2]) and is_number(match[3])):
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION=OFFSET")
    return TopicPartition(match[1], int(match[2])), int(match[3])


def without_conflicts(
    positions: Iterable[tuple[TopicPartition, int]], place: str
) -> dict[TopicPartition, int]:
    """partition → offset; BadParameter for a partition with two different ones."""
    found: dict[TopicPartition, int] = {}
    for tp, offset in positions:
        if found.setdefault(tp, offset) != offset:
            raise click.BadParameter(
                f"{place}: {tp.topic}:{tp.partition} has the offsets {found[tp]} and {offset}; "
                "leave one of them"
            )
    return found


def read_csv(file: Path, topics: Sequence[str] = ()) -> dict[TopicPartition, int]:
    """The offsets in a file of --export, which has a line `topic,partition,offset` for each; of
    these topics alone, if there are some."""
    from kafka08.structs import TopicPartition

    found = []
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for number, row in enumerate(csv.reader(lines), 1):
                if not row:
                    continue
                if len(row) != 3 or not (is_number(row[1]) and is_number(row[2])):
                    raise click.BadParameter(
                        f"{file}, line {number}: {','.join(row)!r} is not topic,partition,offset"
                    )
                found.append((TopicPartition(row[0], int(row[1])), int(row[2])))
    except (UnicodeDecodeError, csv.Error) as error:
        raise click.BadParameter(f"{file}: not a file of --export: {error}") from error
    wanted = without_conflicts(found, str(file))
    if not wanted:
        raise click.BadParameter(
            f"{file}: no offsets in it; a file of --export has lines like pages,0,120"
        )
    if missing := set(topics) - {tp.topic for tp in wanted}:
        raise click.BadParameter(f"{file}: no offsets of topic {min(missing)} in it")
    return {tp: offset for tp, offset in wanted.items() if not topics or tp.topic in topics}


def parse_target(text: str) -> tuple[Target, int]:
    """(kind of target, its number)."""
    from kafka08.admin.offset_changes import Target

    if text in {"earliest", "latest"}:
        return Target(text), 0
    if text[:1] in {"+", "-"} and is_number(text[1:]):
        return Target.SHIFT, int(text)
    if is_number(text):
        return Target.OFFSET, int(text)
    try:
        return Target.TIMESTAMP, parse_ms(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not earliest, latest, a time since 1970, an offset, +N or -N",
            param_hint="--to",
        ) from None


def carry_out(
    of_group: GroupOffsets,
    plan: ChangePlan,
    store: str | None,
    as_json: bool,
    *,
    execute: bool,
    as_csv: bool = False,
) -> None:
    """Show the plan; execute it with `execute`. Exits 1 if it is refused."""
    from kafka08.zk.migration_protocol import OffsetStorage

    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            (*tp, offset) for tp, offset in plan.offsets.items()
        )
    else:
        rows = [(*offset_cells(c.facts), c.offset, c.messages) for c in plan.changes]
        show_offsets(PLAN_COLUMNS, rows, as_json, partitions=[c.facts for c in plan.changes])
    for tp in plan.untimed:
        say(f"Warning: {no_times(tp)}. Its new offset is the log's end. {OTHER_TARGETS}")
    for refusal in plan.refusals:
        say(f"Refused: {plan.group}: {refusal}")
    if plan.refusals:
        sys.exit(1)
    storage = of_group.stores(plan) if store is None else OffsetStorage(STORES[store])
    where = WHERE[storage.value]
    if not execute:
        say(f"Nothing was changed; --execute sets the offsets in {where}.")
        return
    count = of_group.carry_out(plan, storage)
    say(f"Set the offsets of {counted(count, 'partition')} of group {plan.group} in {where}")


def show_offsets(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    as_json: bool,
    unknown: Sequence[str] = (),
    partitions: Sequence[PartitionFacts] = (),
) -> None:
    """The rows on stdout; on stderr the `partitions` without a committed offset, and what is
    unknown. Exits 1 if something is."""
    none = None if unknown else "No offsets are committed."
    show_rows(headings, rows, as_json, if_none=none)
    warn_of_never_committed(partitions)
    for text in unknown:
        say(f"Unknown: {text}")
    if unknown:
        sys.exit(1)
