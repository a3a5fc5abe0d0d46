"""The output of `kafka08 migrate`: results on stdout, messages on stderr."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafka08.cli.echo import say, show
from kafka08.cli.offset_cells import OFFSET_COLUMNS, offset_cells
from kafka08.cli.table import as_objects, show_json, show_table
from kafka08.clock import SYSTEM_CLOCK
from kafka08.listing import counted

if TYPE_CHECKING:
    from kafka08.admin.connections import Connections
    from kafka08.migration import Handover, Plan, Rollback, Status, Step, Verification
    from kafka08.migration.fleet import Outcome

PLAN_COLUMNS = (*OFFSET_COLUMNS, "lag", "owner", "kind", "time left", "to do")
MEMBER_COLUMNS = ("member", "kafka08", "configured", "commits to", "confirmed step")
HANDOVER_COLUMNS = ("topic", "partition", "continues at")
NOTHING = "No offsets are committed."


def show_error(outcome: Outcome[Any], as_json: bool) -> bool:
    """Print the error of a group, if there is one; returns whether there is."""
    if outcome.error is not None:
        say(f"Error: {outcome.group}: {outcome.error}")
        if as_json:
            show_json({"group": outcome.group, "error": str(outcome.error)})
    return outcome.error is not None


def show_to_do(connections: Connections, group: str) -> None:
    """Print what remains to be done by hand."""
    from kafka08.migration import OffsetMigration

    with OffsetMigration(group=group, connections=connections) as migration:
        for line in migration.status().to_do:
            say(f"To do: {line}")


def show_plan(plan: Plan, as_json: bool, retention_ms: int | None = None) -> None:
    """The plan on stdout, the reasons for a refusal on stderr. In JSON the time left is in
    seconds."""
    from kafka08.migration.facts import RETENTION_MS
    from kafka08.migration.sampling import hours_and_minutes

    retention_ms = RETENTION_MS if retention_ms is None else retention_ms
    now_ms = SYSTEM_CLOCK.time_ms()
    left_s = [step.facts.seconds_left(now_ms, retention_ms) for step in plan.steps]
    if as_json:
        rows = [
            (*plan_row(plan, step, seconds, step.facts.lag), step.facts.never_committed)
            for step, seconds in zip(plan.steps, left_s, strict=True)
        ]
        show_json(
            {
                "group": plan.group,
                "members": [str(member) for member in plan.members],
                "partitions": as_objects((*PLAN_COLUMNS, "never committed"), rows),
                "refusals": plan.refusals,
            }
        )
    else:
        left = [None if seconds is None else hours_and_minutes(seconds) for seconds in left_s]
        show(f"Group {plan.group}, {len(plan.members)} live members")
        rows = [
            plan_row(plan, step, text, step.facts.lag_text)
            for step, text in zip(plan.steps, left, strict=True)
        ]
        show_table(PLAN_COLUMNS, rows, if_none=NOTHING)
    for refusal in plan.refusals:
        say(f"Refused: {plan.group}: {refusal}")


def plan_row(plan: Plan, step: Step, left: object, lag: object) -> tuple[object, ...]:
    facts = step.facts
    owner = next((m for m in plan.members if m.owns(facts.thread_id)), None)
    kind = None if owner is None else "kafka08" if owner.is_ours else "other"
    to_do = step.reason or step.action.value
    return (*offset_cells(facts), lag, facts.owner, kind, left, to_do)


def show_status(status: Status, as_json: bool) -> None:
    entry = status.entry
    order = None if entry is None else entry.order
    members = [
        (
            m.consumer_id,
            m.is_ours,
            None if m.configured is None else m.configured.value,
            None if m.storage is None else m.storage.value,
            None if m.confirmed is None else m.confirmed.step,
        )
        for m in status.members
    ]
    if as_json:
        fields = {
            "group": status.group,
            "state": None if status.state is None else status.state.value,
            "step": None if order is None else order.step,
            "storage": None if order is None else order.storage.value,
            "members": as_objects(MEMBER_COLUMNS, members),
            "waiting_for": status.waiting_for,
            "to_do": status.to_do,
            "mirrored": status.is_mirrored,
            "snapshot_at": None if entry is None else entry.snapshot_ms,
        }
        show_json(fields)
        return
    state = "no migration was begun" if status.state is None else status.state.value
    ordered = "" if order is None else f"; step {order.step}: commit to {order.storage.value}"
    taken = None if entry is None else entry.snapshot_ms
    since = "" if taken is None else f"; snapshot of {datetime.fromtimestamp(taken // 1000)}"
    show(f"Group {status.group}: {state}{ordered}{since}")
    show_table(MEMBER_COLUMNS, members)
    for name in status.waiting_for:
        say(f"Waiting for: {name}")
    for line in status.to_do:
        say(f"To do: {line}")


def show_handover(found: Handover, as_json: bool) -> bool:
    """The offsets at which members with a coordinator will start; on stderr what blocks them.
    Returns whether something does."""
    rows = [(*tp, offset) for tp, offset in sorted(found.offsets.items())]
    if as_json:
        fields = {
            "group": found.group,
            "ready": found.is_ready,
            "to_do": found.obstacles,
            "members": found.members,
            "offsets": as_objects(HANDOVER_COLUMNS, rows),
        }
        show_json(fields)
        return not found.is_ready
    show_table(HANDOVER_COLUMNS, rows)
    for line in found.obstacles:
        say(f"To do: {line}")
    if found.is_ready and found.members:
        show(f"Group {found.group} has {counted(found.members, 'member')} with a coordinator")
    elif found.is_ready:
        show(f"Group {found.group} is ready: start its new members")
    return not found.is_ready


def show_verification(found: Verification, as_json: bool, success: str) -> bool:
    """The table or the JSON on stdout, the rest on stderr; returns whether there are problems."""
    from kafka08.migration.report import COLUMNS, as_dict, rows

    if as_json:
        show_json(as_dict(found))
    else:
        show_table(COLUMNS, rows(found), if_none=NOTHING)
    for title, texts in (
        ("Problem", found.problems),
        ("Note", found.notes),
        ("To do", found.to_do),
    ):
        for text in texts:
            say(f"{title}: {found.group}: {text}")
    if found.is_verified:
        say(f"{success} ({found.group})")
    return not found.is_verified


def show_rollback(group: str, done: Rollback, as_json: bool, *, dry_run: bool = False) -> bool:
    """Print the offsets that were written, or with `dry_run` would be. Returns whether there are
    problems."""
    if as_json:
        stores = {"zookeeper": done.to_zookeeper, "kafka": done.to_kafka}
        written = [
            {"store": store, **tp._asdict(), "offset": offset}
            for store, offsets in stores.items()
            for tp, offset in sorted(offsets.items())
        ]
        removed = [{"store": "zookeeper", **tp._asdict()} for tp in done.remove_from_zookeeper]
        fields = {
            "group": group,
            "written": written,
            "removed": removed,
            "problems": list(done.problems),
        }
        show_json(fields)
    say(
        f"{group}: {'would write' if dry_run else 'wrote'} {len(done.to_zookeeper)} offsets to "
        f"ZooKeeper and {len(done.to_kafka)} to Kafka, {'remove' if dry_run else 'removed'} "
        f"{len(done.remove_from_zookeeper)} from ZooKeeper",
    )
    for problem in done.problems:
        say(f"Problem: {group}: {problem}")
    return bool(done.problems)
