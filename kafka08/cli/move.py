"""`kafka08 move plan | start | status | verify | switch`: topics and groups to another cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import say, show
from kafka08.cli.failures import own_options
from kafka08.cli.offset_plans import STORES, execute_option
from kafka08.cli.options import (
    Whole,
    combined,
    example,
    given,
    json_option,
    read_config,
    topic_filter,
)
from kafka08.cli.progress import copy_until_stopped
from kafka08.cli.signals import StopRequest, handles_stop_signals
from kafka08.cli.table import as_objects, show_json, show_table
from kafka08.listing import counted
from kafka08.nearest import did_you_mean

if TYPE_CHECKING:
    from kafka08.mirror.move import Move
    from kafka08.mirror.switching import GroupSwitch

FILE: Final = click.Path(dir_okay=False)
EXAMPLE: Final = (
    "--source-zookeeper old:2181 --target-bootstrap new:9093 --target-config new.properties "
    "--whitelist 'page.*'"
)


between = combined(
    click.option(
        "--source-zookeeper",
        metavar="HOST:PORT[,..][/chroot]",
        help="ZooKeeper of the source; its groups are those in it, too.",
    ),
    click.option(
        "--source-bootstrap",
        metavar="HOST:PORT[,..]",
        help="Some brokers of the source, in place of its ZooKeeper.",
    ),
    click.option(
        "--source-config",
        type=FILE,
        help="A .properties file with the keys for TLS and SASL at the source.",
    ),
    click.option(
        "--target-bootstrap",
        metavar="HOST:PORT[,..]",
        required=True,
        help="Some brokers of the target.",
    ),
    click.option(
        "--target-config",
        type=FILE,
        help="A .properties file for the target: TLS, SASL, and keys of a producer.",
    ),
    click.option("--whitelist", metavar="RE", help="Every topic whose whole name matches."),
    click.option("--blacklist", metavar="RE", help="Every topic whose whole name does not match."),
    click.option(
        "--name",
        default="default",
        show_default=True,
        metavar="NAME",
        help="Name of the move; another one to the same target has another name.",
    ),
    click.option(
        "--replication-factor",
        type=Whole(1, 32767),
        metavar="N",
        help="Replicas of new topics. Default: those of the source, at most one a broker.",
    ),
)
"""The options that name the source, the target and the topics, for `moved`."""


@click.group(cls=Commands, epilog=example(f"kafka08 move plan {EXAMPLE}"))
def move() -> None:
    """Move topics and groups to another cluster, of 0.11 or later: each message once, and the
    groups' offsets with them. `kafka08 mirror` copies without an end, to brokers of any age."""


def moved(options: dict[str, Any], *, skips_deleted: bool = False) -> Move:
    """The move that the options of `between` name. UsageError, ConfigError."""
    from kafka08.mirror.move import Cluster, Move

    topics = topic_filter(options["whitelist"], options["blacklist"])
    zookeeper, bootstrap = options["source_zookeeper"], options["source_bootstrap"]
    if (zookeeper is None) == (bootstrap is None):
        raise click.UsageError("Give one of --source-zookeeper and --source-bootstrap.")
    if zookeeper is not None and options["source_config"] is not None:
        raise click.UsageError("--source-config is for --source-bootstrap alone.")
    return Move(
        Cluster(zookeeper, properties_of(options["source_config"], bootstrap)),
        Cluster(None, properties_of(options["target_config"], options["target_bootstrap"])),
        topics,
        options["name"],
        replication_factor=options["replication_factor"],
        skips_deleted=skips_deleted,
    )


def properties_of(path: str | None, bootstrap: str | None) -> dict[str, str]:
    return read_config(path, options=given({"bootstrap.servers": bootstrap}))


@contextmanager
def advice() -> Iterator[None]:
    """The options of this command in the advice for errors."""
    with own_options(bootstrap="--target-bootstrap", zookeeper="--source-zookeeper"):
        yield


@move.command(epilog=example(f"kafka08 move plan {EXAMPLE}"))
@between
@json_option("One JSON list.")
@advice()
def plan(as_json: bool, **options: Any) -> None:
    """Show which topics the move would make at the target, and what stands against it. Changes
    nothing. Exits 1 if something stands against it."""
    steps = moved(options).plan()
    if as_json:
        show_json([step.as_dict() for step in steps])
    elif not steps:
        show("No topic of the source matches.")
    else:
        rows = [
            (s.topic, s.does, s.partitions, s.replicas, f"{len(s.config)}", ",".join(s.left_out))
            for s in steps
        ]
        names = ("topic", "step", "partitions", "replicas", "overrides", "left out")
        show_table(names, rows)
    refused = [f"{step.topic}: {why}" for step in steps for why in step.refusals]
    for why in refused:
        say(f"Refused: {why}")
    sys.exit(1 if refused else 0)


@move.command(epilog=example(f"kafka08 move start {EXAMPLE}"))
@between
@click.option("--skip-deleted", is_flag=True, help="Leave out what the source has deleted already.")
@json_option("One JSON object at the end: messages, bytes.")
@click.option("--progress", is_flag=True, help="Print the progress each second, on stderr.")
@handles_stop_signals
@advice()
def start(skip_deleted: bool, as_json: bool, progress: bool, **options: Any) -> None:
    """Make the topics at the target, and copy each message once, until stopped.

    It may be stopped, killed and started again, on any machine: the target knows how far it is.
    New topics and partitions of the source are found within a minute.
    """
    stopping = StopRequest()
    made = moved(options, skips_deleted=skip_deleted)
    try:
        copy_until_stopped(made, stopping, shows_progress=progress)
    finally:
        counts = made.counts
        if as_json:
            show_json({"messages": counts.messages, "bytes": counts.bytes})
        say(f"Copied {counted(counts.messages, 'message')} ({counts.bytes} bytes).")


@move.command(epilog=example(f"kafka08 move status {EXAMPLE}"))
@between
@json_option("One JSON object: partitions and groups.")
@advice()
def status(as_json: bool, **options: Any) -> None:
    """Show how far each partition is copied, and the offsets that groups would get. Exits 1 if
    something is not known."""
    from kafka08.cli.group_view import warn_of_failed_requests
    from kafka08.mirror.switching import switches

    made = moved(options)
    copied, view = made.copied(), made.source_view()
    rows = made.status(view, copied)
    groups = switches(view, copied)
    if as_json:
        partitions = [
            {"topic": r[0].topic, "partition": r[0].partition, "start": r.start, "end": r.end,
             "position": r.position, "lag": r.lag}
            for r in rows
        ]  # fmt: skip
        show_json({"partitions": partitions, "groups": [group.as_dict() for group in groups]})
    else:
        show_table(
            ("partition", "source start", "source end", "copied to", "lag"),
            [(str(r.topic_partition), r.start, r.end, r.position, r.lag) for r in rows],
        )
        show_groups(groups)
    warn_of_failed_requests(view.failed_requests)
    sys.exit(1 if view.failed_requests else 0)


def show_groups(groups: list[GroupSwitch]) -> None:
    rows = [
        (g.group, len(g.offsets), g.left_out, g.refusals[0] if g.refusals else "may switch")
        for g in groups
    ]
    if rows:
        show()
        show_table(("group", "offsets", "of other topics", "state"), rows)


@move.command(epilog=example(f"kafka08 move verify {EXAMPLE} --last 10000"))
@between
@click.option(
    "--last",
    type=Whole(1),
    metavar="N",
    help="The last N messages of each partition. Default: all that the source still has.",
)
@json_option("One JSON object: messages that are the same, and differences.")
@advice()
def verify(last: int | None, as_json: bool, **options: Any) -> None:
    """Compare the copies with the source, message by message: key, value, headers, timestamp.
    Exits 1 if one differs."""
    from kafka08.mirror.comparing import compare

    made = moved(options)
    found = compare(made, made.copied(), last)
    for tp, offset, what in found.differences:
        say(f"{tp}: offset {offset} of the source: {what}")
    if as_json:
        names = ("topic", "partition", "offset", "what")
        rows = [(*tp, offset, what) for tp, offset, what in found.differences]
        show_json({"messages": found.messages, "differences": as_objects(names, rows)})
    else:
        show(
            f"{counted(found.messages, 'message')} are the same, "
            f"{counted(len(found.differences), 'partition')} differ."
        )
    sys.exit(1 if found.differences else 0)


@move.command(epilog=example(f"kafka08 move switch {EXAMPLE} readers --execute"))
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@between
@click.option("--all", "all_groups", is_flag=True, help="Every group with offsets in the topics.")
@click.option(
    "--store",
    type=click.Choice(list(STORES)[1:]),
    help="The store of the source whose offsets count, where both have some.",
)
@execute_option
@json_option("One JSON list: the groups with their offsets.")
@advice()
def switch(
    groups: tuple[str, ...],
    all_groups: bool,
    store: str | None,
    execute: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Set the offsets of stopped GROUPS at the target, so that their members continue there.

    Each partition continues at the message that the group would read next at the source. Exits 1
    if a group cannot switch; then none does.
    """
    from kafka08.errors import MigrationError
    from kafka08.mirror.switching import Switcher, switches
    from kafka08.zk.migration_protocol import OffsetStorage

    if bool(groups) == all_groups:
        raise click.UsageError("Give groups, or --all.")
    made = moved(options)
    storage = None if store is None else OffsetStorage(STORES[store])
    copied, view = made.copied(), made.source_view()
    if view.failed_requests:
        raise MigrationError(f"the source is not known whole: {view.failed_requests[0]}")
    found = {one.group: one for one in switches(view, copied, storage)}
    if unknown := [group for group in groups if group not in found]:
        raise MigrationError(
            f"group {unknown[0]} has no offsets in the topics that are copied"
            f"{did_you_mean(unknown[0], found)}; kafka08 group list shows the groups of the source"
        )
    with Switcher(made.target) as switcher:
        wanted = [switcher.checked(found[name]) for name in (groups or found)]
        if as_json:
            show_json([one.as_dict() for one in wanted])
        else:
            show_groups(wanted)
        if refused := [f"  - {g.group}: {why}" for g in wanted for why in g.refusals]:
            raise MigrationError("no group switches:\n" + "\n".join(refused))
        if not execute:
            say("Nothing was changed: --execute sets the offsets.")
            return
        for one in wanted:
            count = switcher.carry_out(one)
            say(f"{one.group}: {counted(count, 'offset')} set at the target.")
