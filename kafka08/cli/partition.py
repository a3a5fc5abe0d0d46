"""`kafka08 partition reassign | elect`: moves partitions and leaders."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from kafka08.admin import AdminClient, MoveStatus
from kafka08.admin.moves import (
    PROPOSED,
    Moves,
    absent_brokers,
    check_exist,
    format_moves,
    parse_elections,
    parse_moves,
    parse_topics,
)
from kafka08.cli.commands import Commands
from kafka08.cli.echo import say, show
from kafka08.cli.options import (
    dry_run_option,
    example,
    json_option,
    legal_topic,
    rack_option,
    topic_partition,
    zookeeper_option,
)
from kafka08.cli.table import show_json
from kafka08.errors import AdminError
from kafka08.structs import TopicPartition

PROGRESS_S = 0.5

T = TypeVar("T")

json_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=Commands, epilog=example("kafka08 partition elect --zookeeper localhost:2181"))
def partition() -> None:
    """Move partitions between brokers, and elect preferred replicas."""


@partition.command(
    epilog=example("kafka08 partition reassign --topic words --brokers 1,2,3 --execute --wait")
)
@click.option(
    "--plan",
    "plan_file",
    type=json_file,
    help="The moves, in the JSON of kafka-reassign-partitions.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    callback=legal_topic,
    help="Plan for this topic (repeat for more).",
)
@click.option(
    "--topics-file", type=json_file, help='The same as a file: {"topics":[{"topic":"t"}]}.'
)
@click.option("--brokers", metavar="ID[,..]", help="Spread the topics over these brokers.")
@rack_option
@click.option("--execute", is_flag=True, help="Move; without it the plan is only shown.")
@click.option("--verify", is_flag=True, help="Show the status of the moves in --plan.")
@click.option(
    "--cancel",
    is_flag=True,
    help="End the moves in progress: their partitions stay where they were, or as --plan says.",
)
@click.option("--wait", is_flag=True, help="With --execute: show progress until all are done.")
@json_option("One JSON object: the plan, or with --verify or --wait the status of the moves.")
@zookeeper_option
def reassign(
    plan_file: Path | None,
    topics: tuple[str, ...],
    topics_file: Path | None,
    brokers: str | None,
    rack_aware: bool,
    execute: bool,
    verify: bool,
    cancel: bool,
    wait: bool,
    as_json: bool,
    zookeeper: str,
) -> None:
    """Move partitions: by a plan file, or by a plan made for topics and brokers.

    Shows the current and the proposed assignment, each as a file for --plan; the first one undoes
    the move. --verify exits 1 if a move failed. --cancel makes a broker the controller again.
    """
    has_topics = bool(topics) or topics_file is not None
    if cancel and (has_topics or brokers is not None or verify):
        raise click.UsageError("--cancel goes with --plan, --execute and --wait.")
    if not cancel and (
        (plan_file is None) == (brokers is None) or (plan_file is not None and has_topics)
    ):
        raise click.UsageError("Give either --plan, or --brokers with --topic or --topics-file.")
    if verify and (execute or plan_file is None):
        raise click.UsageError("--verify needs the --plan that was executed, and nothing else.")
    if wait and not execute:
        raise click.UsageError("--wait needs --execute.")
    with AdminClient(zookeeper, is_patient=wait) as admin:
        if plan_file is not None:
            moves = parsed(plan_file, parse_moves)
        elif cancel:
            moves = admin.cancelled_moves()
        else:
            wanted = named(topics, topics_file)
            moves = admin.plan_moves(wanted, broker_ids(brokers or ""), rack_aware=rack_aware)
        if verify:
            sys.exit(show_statuses(admin.move_statuses(moves), as_json))
        current = admin.assigned(moves)
        check_exist(moves, current)
        if not cancel:
            admin.check_not_moved({tp.topic for tp in moves})
        absent = absent_brokers(moves, current, admin.live_brokers())
        if absent and (execute or brokers is not None):
            raise AdminError(
                "\n".join([*absent, "Nothing was changed: start that broker, or use others."])
            )
        if not as_json:
            show_plan(current, moves)
        if execute:
            (admin.cancel_moves if cancel else admin.move_partitions)(moves)
        if as_json and not wait:
            plan = {"current": current, "proposed": moves}
            texts = {name: json.loads(format_moves(what)) for name, what in plan.items()}
            show_json({**texts, "executed": execute})
        if not execute:
            for sentence in absent:
                say(f"WARNING: {sentence}")
            does = "ends" if cancel else "starts"
            say(f"Nothing was changed; --execute {does} the moves.")
            return
        did = "Cancelled the" if cancel else "Successfully started"
        (say if as_json else show)(f"{did} reassignment of {len(moves)} partitions.")
        if wait:
            sys.exit(show_progress(admin, moves, as_json))


def parsed(file: Path, parse: Callable[[str], T]) -> T:
    """The result of `parse` for the text of a file; its AdminError names the file."""
    try:
        return parse(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise AdminError(f"{file} is not UTF-8 text; give the JSON file") from None
    except AdminError as error:
        raise AdminError(f"{file}: {error}") from error


def named(topics: tuple[str, ...], topics_file: Path | None) -> list[str]:
    names = [*topics, *(parsed(topics_file, parse_topics) if topics_file else [])]
    if not names:
        raise click.UsageError("--brokers needs --topic or --topics-file.")
    return names


def broker_ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        reason = f"{text!r} is not of the form 1,2,3"
        raise click.BadParameter(reason, param_hint="--brokers") from None


def show_statuses(found: dict[TopicPartition, MoveStatus], as_json: bool) -> int:
    """Print the status of moves, in the words of the JVM's tool; returns the exit code."""
    if as_json:
        show_json({f"{tp.topic}-{tp.partition}": s.name for tp, s in found.items()})
    else:
        show("Status of partition reassignment:")
        for tp, status in found.items():
            show(f"Reassignment of partition {tp} {status.value}")
    return 1 if MoveStatus.FAILED in found.values() else 0


def show_plan(current: Moves, moves: Moves) -> None:
    """Print the current and the proposed assignment as the JVM's tool does."""
    show(f"Current partition replica assignment\n\n{format_moves(current)}")
    show(f"\n{PROPOSED}\n\n{format_moves(moves)}\n")


def show_progress(admin: AdminClient, moves: Moves, as_json: bool) -> int:
    """Print the number of finished moves whenever it changes, until all are done; returns the exit
    code."""
    done, said = -1, ""
    while True:
        found = admin.move_statuses(moves)
        counts = Counter(found.values())
        left = {tp: moves[tp] for tp, s in found.items() if s is MoveStatus.IN_PROGRESS}
        waiting = "; ".join(absent_brokers(left, {}, admin.live_brokers()))
        if waiting != said:
            said = waiting
            say(f"Waiting: {waiting or 'all brokers are registered again'}")
        if counts[MoveStatus.COMPLETED] != done:
            done = counts[MoveStatus.COMPLETED]
            say(f"{done} of {len(moves)} partitions moved")
        if not counts[MoveStatus.IN_PROGRESS]:
            return show_statuses(found, as_json)
        time.sleep(PROGRESS_S)


@partition.command(epilog=example("kafka08 partition elect --partition words:0"))
@click.option(
    "--partition",
    "names",
    multiple=True,
    metavar="TOPIC:NUMBER",
    help="Only this one (repeat for more); default: every partition of the cluster.",
)
@click.option(
    "--file", "partitions_file", type=json_file, help="The same as a JSON file of the JVM's tool."
)
@dry_run_option
@json_option("One JSON object.")
@zookeeper_option
def elect(
    names: tuple[str, ...],
    partitions_file: Path | None,
    dry_run: bool,
    as_json: bool,
    zookeeper: str,
) -> None:
    """Make preferred replicas the leaders where they are in sync."""
    wanted = [topic_partition(name) for name in names]
    if partitions_file is not None:
        wanted += parsed(partitions_file, parse_elections)
    with AdminClient(zookeeper, is_patient=False) as admin:
        count = admin.elect_preferred(wanted or None, dry_run=dry_run)
    if as_json:
        show_json({"partitions": count, "dry_run": dry_run})
    elif dry_run:
        show(f"Would start preferred replica election for {count} partitions.")
    else:
        show(f"Successfully started preferred replica election for {count} partitions.")
