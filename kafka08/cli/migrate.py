"""`kafka08 migrate plan | start | status | verify | finish | rollback | mirror`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kafka08.cli.options import example, zookeeper_option
from kafka08.cli.table import table_lines

if TYPE_CHECKING:
    from kafka08.migration import OffsetMigration, PartitionFacts, Plan, Status, Verification
    from kafka08.migration.connections import Connections
    from kafka08.migration.fleet import Outcome, Pace

Function = TypeVar("Function", bound=Callable[..., Any])
T = TypeVar("T")

PLAN_COLUMNS = (
    "topic",
    "partition",
    "zookeeper",
    "kafka",
    "log start",
    "log end",
    "lag",
    "owner",
    "kind",
    "to do",
)

bootstrap_option = click.option(
    "--bootstrap",
    envvar="KAFKA08_BOOTSTRAP",
    metavar="HOST:PORT[,..]",
    help="Some brokers; default: those registered in ZooKeeper.",
)
max_disagreement_option = click.option(
    "--max-disagreement",
    type=click.IntRange(0),
    metavar="N",
    help="Refuse where the two stores are more than N messages apart.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a group.")
answer_option = click.option(
    "--answer-seconds",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    help="How long to wait for the answers of live kafka08 members.",
)
seconds_option = click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    help="How long to watch live members; default: two of their commit intervals.",
)
allow_idle_option = click.option(
    "--allow-idle",
    is_flag=True,
    help="Trust members that are not kafka08's although nothing moved.",
)
retention_option = click.option(
    "--retention-minutes",
    type=click.IntRange(1),
    default=1440,
    show_default=True,
    help="offsets.retention.minutes of the brokers.",
)


def group_options(function: Function) -> Function:
    """GROUP..., --all, --groups-per-second, --bootstrap, --zookeeper."""
    for option in (
        zookeeper_option,
        bootstrap_option,
        click.option(
            "--groups-per-second",
            "rate",
            type=click.FloatRange(0, min_open=True),
            help="Work on no more groups a second than this.",
        ),
        click.option("--all", "every", is_flag=True, help="All groups that ZooKeeper knows."),
        click.argument("groups", nargs=-1, metavar="GROUP..."),
    ):
        function = option(function)
    return function


@click.group(epilog=example("kafka08 migrate plan readers --zookeeper localhost:2181"))
def migrate() -> None:
    """Move groups' offsets from ZooKeeper to the offsets topic while they run, and back.

    plan, start (both stores), verify, finish (Kafka alone); rollback from any step. Each may be
    repeated. GROUP may be a pattern such as 'web-*'. Live kafka08 members switch by themselves; for
    others the properties to set are printed.
    """


@migrate.command(epilog=example("kafka08 migrate plan readers --max-disagreement 1000"))
@max_disagreement_option
@json_option
@group_options
def plan(max_disagreement: int | None, as_json: bool, **where: Any) -> None:
    """Show both stores' offsets and what start would do. Changes nothing; exits 1 if start would
    refuse."""
    from kafka08.migration.fleet import plan_groups

    refused = 0
    with opened(**where) as (connections, groups, pace), progress(len(groups)) as tick:
        for planned in plan_groups(connections, groups, pace, max_disagreement=max_disagreement):
            if not planned.steps and len(groups) > 1:
                tick()
                continue
            show_plan(planned, as_json)
            refused += not planned.is_allowed
            tick()
    sys.exit(1 if refused else 0)


@migrate.command(epilog=example("kafka08 migrate start readers"))
@max_disagreement_option
@answer_option
@json_option
@group_options
def start(max_disagreement: int | None, answer_seconds: float, as_json: bool, **where: Any) -> None:
    """Note both stores in a journal, copy to Kafka whatever is newer in ZooKeeper, and have live
    members commit to both."""
    from kafka08.migration.fleet import start_groups

    with opened(**where) as (connections, groups, pace):
        outcomes = start_groups(
            connections,
            groups,
            pace,
            max_disagreement=max_disagreement,
            answer_patience_s=answer_seconds,
        )
        alone = len(groups) == 1
        failed, copied = 0, 0
        with progress(len(groups)) as tick:
            for outcome in outcomes:
                failed += show_error(outcome)
                if outcome.result is not None:
                    copied += len(outcome.result.copies)
                    if alone or as_json:
                        show_plan(outcome.result, as_json)
                tick()
        if alone and not failed:
            show_to_do(connections, groups[0])
    click.echo(f"Copied the offsets of {copied} partitions to Kafka", err=True)
    sys.exit(1 if failed else 0)


@migrate.command(epilog=example("kafka08 migrate status readers --json"))
@json_option
@group_options
def status(as_json: bool, **where: Any) -> None:
    """Show how far a migration has come, what every member does, and whom it waits for."""
    from kafka08.migration import OffsetMigration

    failed = 0
    for outcome in run_step(OffsetMigration.status, where):
        failed += show_error(outcome)
        if outcome.result is not None:
            show_status(outcome.result, as_json)
    sys.exit(1 if failed else 0)


@migrate.command(epilog=example("kafka08 migrate verify readers --report readers-verified"))
@seconds_option
@allow_idle_option
@retention_option
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write FILE.md and FILE.json (of several groups: FILE-GROUP.md).",
)
@json_option
@group_options
def verify(
    seconds: float | None,
    allow_idle: bool,
    retention_minutes: int,
    report: Path | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Watch both stores while the group runs; exits 1 with every problem found."""
    from kafka08.migration import Watching
    from kafka08.migration.report import write_report

    watching = Watching(seconds, allow_idle=allow_idle, retention_ms=retention_minutes * 60_000)
    bad = 0
    for outcome in run_step(lambda migration: migration.verify(watching), where):
        bad += show_error(outcome)
        if (found := outcome.result) is None:
            continue
        bad += show_verification(found, as_json, "Verified: both stores say the same")
        if report is not None:
            several = len(where["groups"]) != 1 or where["every"]
            path = report.with_name(f"{report.name}-{found.group}.md") if several else report
            for written in write_report(found, path):
                click.echo(f"Wrote {written}", err=True)
    sys.exit(1 if bad else 0)


@migrate.command(epilog=example("kafka08 migrate finish readers"))
@seconds_option
@answer_option
@json_option
@group_options
def finish(seconds: float | None, answer_seconds: float, as_json: bool, **where: Any) -> None:
    """Have the members commit to Kafka alone, and show that ZooKeeper's offsets stand still."""
    from kafka08.migration import Watching

    bad = 0
    watching = Watching(seconds)
    steps = run_step(lambda migration: migration.finish(watching), where, answer_seconds)
    for outcome in steps:
        bad += show_error(outcome)
        if outcome.result is not None:
            bad += show_verification(outcome.result, as_json, "Finished: Kafka alone is used")
    sys.exit(1 if bad else 0)


@migrate.command(epilog=example("kafka08 migrate rollback readers --to snapshot"))
@click.option(
    "--to",
    type=click.Choice(["newest", "snapshot"]),
    default="newest",
    show_default=True,
    help="newest: nothing is read twice; snapshot: both stores as before the migration, for a "
    "stopped group.",
)
@answer_option
@group_options
def rollback(to: Any, answer_seconds: float, **where: Any) -> None:
    """Make ZooKeeper's offsets the ones that members go on from, and have live members do so."""
    bad = 0
    for outcome in run_step(lambda migration: migration.rollback(to), where, answer_seconds):
        bad += show_error(outcome)
        if (done := outcome.result) is None:
            continue
        click.echo(
            f"{outcome.group}: wrote {len(done.to_zookeeper)} offsets to ZooKeeper and "
            f"{len(done.to_kafka)} to Kafka, removed {len(done.remove_from_zookeeper)} from "
            "ZooKeeper",
            err=True,
        )
        for problem in done.problems:
            click.echo(f"Problem: {problem}", err=True)
        bad += bool(done.problems)
    sys.exit(1 if bad else 0)


@migrate.command(epilog=example("kafka08 migrate mirror readers --period 5"))
@click.argument("group")
@click.option(
    "--period",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds between two copies.",
)
@click.option("--rounds", type=click.IntRange(1), help="Copy so often; default: until the end.")
@bootstrap_option
@zookeeper_option
def mirror(
    group: str, period: float, rounds: int | None, bootstrap: str | None, zookeeper: str
) -> None:
    """Commit to Kafka what members of GROUP that are not kafka08's commit to ZooKeeper, until the
    migration goes on to finish or rollback. Stop it with Ctrl-C."""
    from kafka08.cli.signals import raise_on_terminate
    from kafka08.migration import OffsetMigration
    from kafka08.migration.mirror import Mirror

    raise_on_terminate()
    with OffsetMigration(zookeeper, group, bootstrap) as migration:
        Mirror(migration).run(
            period,
            lambda copied: click.echo(f"Copied {len(copied)} offsets to Kafka", err=True),
            rounds=rounds,
        )


@contextmanager
def opened(
    groups: tuple[str, ...],
    every: bool,
    rate: float | None,
    bootstrap: str | None,
    zookeeper: str,
) -> Iterator[tuple[Connections, list[str], Pace]]:
    """The connections and the groups that the options mean."""
    if bool(groups) == every:
        raise click.UsageError("Name groups or patterns, or give --all.")
    from kafka08.migration.connections import Connections
    from kafka08.migration.fleet import Pace, find_groups

    with Connections(zookeeper, bootstrap) as connections:
        found = find_groups(connections, groups, every=every)
        yield connections, found, Pace(rate, connections.clock)


def run_step(
    step: Callable[[OffsetMigration], T], where: dict[str, Any], answer_seconds: float = 60.0
) -> Iterator[Outcome[T]]:
    """The outcome of a step for each group, as they come."""
    from kafka08.migration.fleet import each_group

    with opened(**where) as (connections, groups, pace), progress(len(groups)) as tick:
        for outcome in each_group(
            connections, groups, pace, step, answer_patience_s=answer_seconds
        ):
            yield outcome
            tick()


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal's stderr when there are several groups."""
    if total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("groups", total=total)
        yield lambda: bar.advance(task)


def show_error(outcome: Outcome[Any]) -> bool:
    """Tell the error of a group, if it met one; whether it did."""
    if outcome.error is not None:
        click.echo(f"Error: {outcome.group}: {outcome.error}", err=True)
    return outcome.error is not None


def show_to_do(connections: Connections, group: str) -> None:
    """What has to be done by hand now."""
    from kafka08.migration import OffsetMigration

    with OffsetMigration(group=group, connections=connections) as migration:
        for line in migration.status().to_do:
            click.echo(f"To do: {line}", err=True)


def show_plan(plan: Plan, as_json: bool) -> None:
    """The plan on stdout, the reasons to refuse on stderr."""
    rows = [plan_row(plan, step.facts, step.reason or step.action.value) for step in plan.steps]
    if as_json:
        named = [dict(zip(PLAN_COLUMNS, row, strict=True)) for row in rows]
        click.echo(
            json.dumps(
                {
                    "group": plan.group,
                    "members": [str(member) for member in plan.members],
                    "partitions": named,
                    "refusals": plan.refusals,
                }
            )
        )
    else:
        click.echo(f"Group {plan.group}, {len(plan.members)} live members")
        show_table(PLAN_COLUMNS, rows)
    for refusal in plan.refusals:
        click.echo(f"Refused: {plan.group}: {refusal}", err=True)


def plan_row(plan: Plan, facts: PartitionFacts, to_do: str) -> tuple[object, ...]:
    owner = next((m for m in plan.members if m.owns(facts.owner)), None)
    kind = None if owner is None else "kafka08" if owner.is_ours else "other"
    return (
        *facts.topic_partition,
        facts.zookeeper,
        facts.kafka,
        facts.log_start,
        facts.log_end,
        facts.lag,
        facts.owner,
        kind,
        to_do,
    )


def show_status(status: Status, as_json: bool) -> None:
    entry = status.entry
    order = None if entry is None else entry.order
    members = [
        {
            "member": m.consumer_id,
            "kafka08": m.is_ours,
            "configured": None if m.configured is None else m.configured.value,
            "commits to": None if m.storage is None else m.storage.value,
            "answered step": None if m.answer is None else m.answer.step,
        }
        for m in status.members
    ]
    if as_json:
        fields = {
            "group": status.group,
            "state": None if entry is None else entry.state.value,
            "step": None if order is None else order.step,
            "storage": None if order is None else order.storage.value,
            "members": members,
            "waiting_for": status.waiting_for,
            "to_do": status.to_do,
            "mirrored": status.is_mirrored,
        }
        click.echo(json.dumps(fields))
        return
    state = "no migration was begun" if entry is None else entry.state.value
    ordered = "" if order is None else f"; step {order.step}: commit to {order.storage.value}"
    click.echo(f"Group {status.group}: {state}{ordered}")
    if members:
        show_table(tuple(members[0]), [tuple(member.values()) for member in members])
    for name in status.waiting_for:
        click.echo(f"Waiting for: {name}", err=True)
    for line in status.to_do:
        click.echo(f"To do: {line}", err=True)


def show_verification(found: Verification, as_json: bool, success: str) -> bool:
    """The table or the JSON on stdout, the rest on stderr; whether there are problems."""
    from kafka08.migration.report import COLUMNS, as_dict, rows

    if as_json:
        click.echo(json.dumps(as_dict(found)))
    else:
        show_table(COLUMNS, rows(found))
    for title, texts in (
        ("Problem", found.problems),
        ("Note", found.notes),
        ("To do", found.to_do),
    ):
        for text in texts:
            click.echo(f"{title}: {found.group}: {text}", err=True)
    if found.is_verified:
        click.echo(f"{success} ({found.group})", err=True)
    return not found.is_verified


def show_table(headings: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    listed = list(rows)
    if not listed:
        click.echo("No offsets are committed.", err=True)
        return
    for line in table_lines(headings, listed):
        click.echo(line)
