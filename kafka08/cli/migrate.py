"""`kafka08 migrate plan | start | status | verify | finish | rollback | handover | forget |
mirror`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import say
from kafka08.cli.migration_output import (
    show_error,
    show_handover,
    show_plan,
    show_rollback,
    show_status,
    show_to_do,
    show_verification,
)
from kafka08.cli.options import (
    DURATION,
    RATE,
    SECONDS_MAX,
    Number,
    Whole,
    admin_bootstrap_option,
    cluster_places,
    combined,
    dry_run_option,
    example,
    json_option,
    match_option,
    zookeeper_option,
)
from kafka08.cli.table import show_json
from kafka08.listing import counted
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.migration import OffsetMigration, Rollback, Status, Verification, Watching
    from kafka08.migration.fleet import Fleet, Outcome
    from kafka08.migration.journal import Entry
    from kafka08.migration.plan import Terms

T = TypeVar("T")

max_disagreement_option = click.option(
    "--max-disagreement",
    type=Whole(0),
    metavar="N",
    help="Refuse if the two stores are more than N messages apart.",
)
SHOWN_MAX: Final = 100
"""Names of groups before a step."""
counts_option = click.option(
    "--store-that-counts",
    "store_that_counts",
    type=click.Choice(["zookeeper", "kafka", "newest"]),
    help="Where both stores have an offset, they differ, and nothing shows which one is current: "
    "bring both to this one. Default: refuse.",
)
group_json_option = json_option("One JSON object per group.")
confirmation_option = click.option(
    "--confirmation-seconds",
    type=Number(0, SECONDS_MAX),
    default=60.0,
    show_default=True,
    help="How long to wait until live kafka08 members have confirmed a step.",
)
seconds_option = click.option(
    "--seconds",
    type=DURATION,
    help="How long to watch live members; default: two of their commit intervals.",
)
allow_idle_option = click.option(
    "--allow-idle",
    is_flag=True,
    help="Accept members other than kafka08's although none of their offsets moved.",
)
retention_option = click.option(
    "--retention-minutes",
    type=Whole(1),
    default=1440,
    show_default=True,
    help="offsets.retention.minutes of the brokers.",
)


group_options = combined(
    click.argument("groups", nargs=-1, metavar="GROUP..."),
    match_option,
    click.option("--all", "every", is_flag=True, help="All groups in ZooKeeper."),
    click.option(
        "--groups-per-second", "rate", type=RATE, help="Limit the number of groups per second."
    ),
    admin_bootstrap_option,
    zookeeper_option,
)


@click.group(
    cls=Commands, epilog=example("kafka08 migrate plan readers --zookeeper localhost:2181")
)
def migrate() -> None:
    """Move groups' offsets from ZooKeeper to the offsets topic while they run, and back.

    plan, start (both stores), verify, finish (Kafka alone), forget; rollback from any step;
    handover to members with a coordinator. You can repeat each step. --match 'web-*' means the
    groups that match. Live kafka08 members switch by themselves; for others the command prints the
    properties to set.
    """


@migrate.command(epilog=example("kafka08 migrate plan readers --max-disagreement 1000"))
@counts_option
@max_disagreement_option
@retention_option
@group_json_option
@group_options
def plan(
    store_that_counts: str | None,
    max_disagreement: int | None,
    retention_minutes: int,
    as_json: bool,
    **where: Any,
) -> None:
    """Show both stores' offsets and the effect of start. Changes nothing; exits 1 if start would
    refuse."""
    from kafka08.migration.fleet import plan_groups

    refused = 0
    terms = terms_of(store_that_counts, max_disagreement)
    with opened(**where) as fleet, progress(len(fleet.groups)) as tick:
        for planned in plan_groups(fleet, terms):
            if planned.steps or not planned.is_allowed:
                show_plan(planned, as_json, retention_minutes * 60_000)
            refused += not planned.is_allowed
            tick()
    sys.exit(1 if refused else 0)


@migrate.command(epilog=example("kafka08 migrate start readers"))
@counts_option
@max_disagreement_option
@confirmation_option
@dry_run_option
@group_json_option
@group_options
@click.pass_context
def start(
    context: click.Context,
    /,
    store_that_counts: str | None,
    max_disagreement: int | None,
    confirmation_seconds: float,
    dry_run: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Save both stores in a journal, copy newer offsets from ZooKeeper to Kafka, and have live
    members commit to both."""
    from kafka08.migration.fleet import start_groups

    if dry_run:
        context.invoke(
            plan,
            store_that_counts=store_that_counts,
            max_disagreement=max_disagreement,
            as_json=as_json,
            **where,
        )
    terms = terms_of(store_that_counts, max_disagreement)
    with opened(**where) as fleet:
        alone = len(fleet.groups) == 1
        failed, copied = 0, 0
        with progress(len(fleet.groups)) as tick:
            for outcome in start_groups(fleet, terms, confirmation_timeout_s=confirmation_seconds):
                failed += show_error(outcome, as_json)
                if outcome.result is not None:
                    copied += len(outcome.result.copies)
                    if alone or as_json:
                        show_plan(outcome.result, as_json)
                tick()
        if alone and not failed:
            show_to_do(fleet.connections, fleet.groups[0])
    if copied or not failed:
        say(f"Copied the offsets of {counted(copied, 'partition')} to Kafka")
    sys.exit(1 if failed else 0)


@migrate.command(epilog=example("kafka08 migrate status readers --json"))
@group_json_option
@group_options
def status(as_json: bool, **where: Any) -> None:
    """Show the progress of a migration, the state of every member, and which ones it waits for."""
    from kafka08.migration import OffsetMigration

    outcomes = run_step(OffsetMigration.status, where)
    show_all(outcomes, as_json, lambda _, found: show_status(found, as_json))


@migrate.command(epilog=example("kafka08 migrate verify readers --report readers-verified"))
@seconds_option
@allow_idle_option
@retention_option
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write FILE.md and FILE.json (of several groups: FILE-GROUP.md).",
)
@group_json_option
@group_options
def verify(
    seconds: float | None,
    allow_idle: bool,
    retention_minutes: int,
    report: Path | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Watch both stores while the group runs; exits 1 with all problems."""
    from kafka08.migration import Watching
    from kafka08.migration.fleet import verify_groups
    from kafka08.migration.report import write_report

    watching = Watching(seconds, allow_idle=allow_idle, retention_ms=retention_minutes * 60_000)
    several = where["every"] or where["patterns"] or len(where["groups"]) > 1

    def show(group: str, found: Verification) -> bool:
        is_bad = show_verification(found, as_json, "Verified: both stores agree")
        if report is not None:
            path = report.with_name(f"{report.name}-{group}.md") if several else report
            for written in write_report(found, path):
                say(f"Wrote {written}")
        return is_bad

    show_all(run(verify_groups, watching, where), as_json, show)


@migrate.command(epilog=example("kafka08 migrate finish readers"))
@seconds_option
@allow_idle_option
@confirmation_option
@dry_run_option
@group_json_option
@group_options
def finish(
    seconds: float | None,
    allow_idle: bool,
    confirmation_seconds: float,
    dry_run: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Have the members commit to Kafka alone, and check that ZooKeeper's offsets stop moving."""
    from kafka08.migration import Watching
    from kafka08.migration.fleet import finish_groups
    from kafka08.migration.preview import preview_finish

    if dry_run:
        preview(preview_finish, where, as_json, "commit to Kafka alone")
    watching = Watching(seconds, allow_idle=allow_idle)

    def show(_: str, found: Verification) -> bool:
        return show_verification(found, as_json, "Finished: Kafka alone is used")

    show_all(run(finish_groups, watching, where, confirmation_seconds), as_json, show)


@migrate.command(epilog=example("kafka08 migrate rollback readers --to snapshot"))
@click.option(
    "--to",
    type=click.Choice(["newest", "snapshot"]),
    default="newest",
    show_default=True,
    help="newest: no message is read twice; snapshot: both stores as before the migration, for a "
    "stopped group.",
)
@confirmation_option
@dry_run_option
@group_json_option
@group_options
def rollback(
    to: Any, confirmation_seconds: float, dry_run: bool, as_json: bool, **where: Any
) -> None:
    """Make members continue from ZooKeeper's offsets, and have live members commit there."""

    def step(migration: OffsetMigration) -> Rollback:
        return migration.plan_rollback(to) if dry_run else migration.rollback(to)

    def show(group: str, done: Rollback) -> bool:
        return show_rollback(group, done, as_json, dry_run=dry_run)

    show_all(run_step(step, where, confirmation_seconds), as_json, show)


@migrate.command(epilog=example("kafka08 migrate handover readers"))
@group_json_option
@group_options
def handover(as_json: bool, **where: Any) -> None:
    """Check whether members with a coordinator (KafkaConsumer) may take over, and what to do
    before. Changes nothing; exits 1 if a group is not ready."""
    from kafka08.migration import OffsetMigration

    outcomes = run_step(OffsetMigration.handover, where)
    show_all(outcomes, as_json, lambda _, found: show_handover(found, as_json))


@migrate.command(epilog=example("kafka08 migrate forget readers"))
@dry_run_option
@group_json_option
@group_options
def forget(dry_run: bool, as_json: bool, **where: Any) -> None:
    """Remove the journal of a finished or rolled back migration, with its snapshot."""
    from kafka08.migration import OffsetMigration
    from kafka08.migration.preview import preview_forget

    if dry_run:
        preview(preview_forget, where, as_json, "be forgotten")

    def show(group: str, done: Entry) -> None:
        if as_json:
            show_json({"group": group, "forgotten": done.state.value})
        say(f"{group}: {done.state.value}, and forgotten")

    show_all(run_step(OffsetMigration.forget, where), as_json, show)


@migrate.command(epilog=example("kafka08 migrate mirror readers --period 5"))
@click.argument("group")
@click.option(
    "--period",
    type=DURATION,
    default=10.0,
    show_default=True,
    help="Seconds between two copies.",
)
@click.option("--rounds", type=Whole(1), help="Number of copies; default: until the end.")
@dry_run_option
@json_option("One JSON object per copy.")
@admin_bootstrap_option
@zookeeper_option
def mirror(
    group: str,
    period: float,
    rounds: int | None,
    dry_run: bool,
    as_json: bool,
    bootstrap: str | None,
    zookeeper: str,
) -> None:
    """Keep copying the offsets of GROUP from ZooKeeper to Kafka, for members other than kafka08's.

    Those go on committing to ZooKeeper. The copying ends when the migration continues with finish
    or rollback, or by Ctrl-C.

    To copy topics to another cluster use `kafka08 mirror`.
    """
    from kafka08.admin.connections import Connections
    from kafka08.migration import OffsetMigration
    from kafka08.migration.mirror import Mirror
    from kafka08.migration.preview import preview_mirror
    from kafka08.zk.reachability import check_not_refused

    def show_copied(copied: Collection[TopicPartition]) -> None:
        if as_json:
            show_json({"group": group, "copied": len(copied), "dry_run": dry_run})
        did = "Would copy" if dry_run else "Copied"
        say(f"{did} {len(copied)} offsets to Kafka")

    check_not_refused(zookeeper)
    with (
        Connections(*cluster_places()) as connections,
        OffsetMigration(group=group, connections=connections) as migration,
    ):
        if dry_run:
            show_copied(preview_mirror(migration))
        else:
            Mirror(migration).run(period, show_copied, rounds=rounds)


def preview(
    step: Callable[[OffsetMigration], Status], where: dict[str, Any], as_json: bool, would: str
) -> NoReturn:
    """Show the state of each group before a step that is not taken."""

    def show(group: str, found: Status) -> None:
        show_status(found, as_json)
        say(f"{group} would {would}; nothing was changed.")

    show_all(run_step(step, where), as_json, show)


def show_all(
    outcomes: Iterator[Outcome[T]], as_json: bool, show: Callable[[str, T], bool | None]
) -> NoReturn:
    """Print the error of each group, or its result by `show`, which returns whether it is bad.
    Exits 1 if something is."""
    bad = 0
    for outcome in outcomes:
        bad += show_error(outcome, as_json)
        if outcome.result is not None:
            bad += bool(show(outcome.group, outcome.result))
    sys.exit(1 if bad else 0)


@contextmanager
def opened(
    groups: tuple[str, ...],
    patterns: tuple[str, ...],
    every: bool,
    rate: float | None,
    bootstrap: str | None,
    zookeeper: str,
) -> Iterator[Fleet]:
    """The connections and groups selected by the options."""
    if bool(groups or patterns) == every:
        raise click.UsageError("Give groups, --match, or --all.")
    from kafka08.admin.connections import Connections
    from kafka08.migration.fleet import Fleet, find_groups
    from kafka08.rate_limiter import RateLimiter
    from kafka08.zk.reachability import check_not_refused

    check_not_refused(zookeeper)
    with Connections(*cluster_places()) as connections:
        found = find_groups(connections, groups, patterns, every=every)
        if patterns or every:
            say(f"{counted(len(found), 'group')}: {shown_groups(found)}")
        yield Fleet(connections, found, RateLimiter(rate, connections.runtime), named=groups)


def terms_of(store_that_counts: str | None, max_disagreement: int | None) -> Terms:
    from kafka08.migration.plan import Terms
    from kafka08.migration.proof import StoreThatCounts

    counts = None if store_that_counts is None else StoreThatCounts(store_that_counts)
    return Terms(counts, max_disagreement)


def shown_groups(names: Sequence[str]) -> str:
    """Their names; of very many only some."""
    rest = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")


def run_step(
    step: Callable[[OffsetMigration], T], where: dict[str, Any], confirmation_seconds: float = 60.0
) -> Iterator[Outcome[T]]:
    """The outcome of a step for each group, as soon as it is known."""
    from kafka08.migration.fleet import each_group

    return run(each_group, step, where, confirmation_seconds)


def run(
    steps: Callable[..., Iterator[Outcome[T]]],
    what: Callable[[OffsetMigration], T] | Watching,
    where: dict[str, Any],
    confirmation_seconds: float = 60.0,
) -> Iterator[Outcome[T]]:
    """The outcomes of `steps`, a function of migration.fleet that takes `what`: a step for each
    group, or how groups are watched together."""
    with opened(**where) as fleet, progress(len(fleet.groups)) as tick:
        for outcome in steps(fleet, what, confirmation_timeout_s=confirmation_seconds):
            yield outcome
            tick()


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal's stderr if there are several groups."""
    if total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("groups", total=total)
        yield lambda: bar.advance(task)
