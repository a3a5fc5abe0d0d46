"""The changes that the console can make: verbs of AdminClient, and the reset of a group's offsets,
from JSON that a browser sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka08.admin import AdminClient, BrokerAdmin
from kafka08.admin.choice import admin_of
from kafka08.admin.connections import Connections
from kafka08.admin.group_offsets import GroupOffsets
from kafka08.admin.offset_changes import Target
from kafka08.assignment import PARTITIONS_MAX, REPLICAS_MAX
from kafka08.config import LONG_MAX
from kafka08.errors import AdminError
from kafka08.listing import counted, some_of
from kafka08.observe.place import ClusterPlace
from kafka08.runtime import ClientRuntime

OVERRIDES_MAX: Final = 100
TEXT_MAX: Final = 10_000

Wanted = Mapping[str, Any]
Admin = AdminClient | BrokerAdmin


def change(place: ClusterPlace, wanted: Wanted, runtime: ClientRuntime) -> str:
    """Make the change, or only check it with `dry_run`. Returns a sentence about what was done.
    KafkaError, without any change, if it is impossible or malformed."""
    name = text_of(wanted, "verb")
    if name != RESET and name not in VERBS:
        raise AdminError(
            f"There is no change of this name; there are: {', '.join((*VERBS, RESET))}"
        )
    dry_run = wanted.get("dry_run")
    if not isinstance(dry_run, bool):
        raise AdminError("dry_run must be true or false")
    if name == RESET:
        with Connections(*place, is_patient=False, runtime=runtime) as connections:
            return _reset(connections, wanted, dry_run)
    with admin_of(place, runtime) as admin:
        return VERBS[name](admin, wanted, dry_run)


def _create(admin: Admin, wanted: Wanted, dry_run: bool) -> str:
    name = text_of(wanted, "topic")
    assigned = admin.create_topic(
        name,
        number_of(wanted, "partitions", PARTITIONS_MAX),
        number_of(wanted, "replication_factor", REPLICAS_MAX),
        overrides_of(wanted),
        dry_run=dry_run,
    )
    partitions = counted(len(assigned), "partition")
    return f"{'Would create' if dry_run else 'Created'} topic {name} with {partitions}."


def _add_partitions(admin: Admin, wanted: Wanted, dry_run: bool) -> str:
    name, total = text_of(wanted, "topic"), number_of(wanted, "partitions", PARTITIONS_MAX)
    added = admin.alter_topic(name, partitions=total, dry_run=dry_run)
    return (
        f"{'Would add' if dry_run else 'Added'} {counted(len(added), 'partition')} to {name}. "
        "Messages with a key go to other partitions from then on."
    )


def _configure(admin: Admin, wanted: Wanted, dry_run: bool) -> str:
    """Set or drop overrides; an empty value drops one."""
    name, values = text_of(wanted, "topic"), overrides_of(wanted)
    dropped = [key for key, value in values.items() if not value]
    kept = {key: value for key, value in values.items() if value}
    if not values:
        raise AdminError("No override is given: write KEY=VALUE, or KEY= to drop one")
    admin.alter_topic(name, config=kept, delete_config=dropped, dry_run=dry_run)
    return (
        f"{'Would set' if dry_run else 'Set'} {counted(len(kept), 'override')} of {name} and "
        f"{'would drop' if dry_run else 'dropped'} {len(dropped)}."
    )


def _delete(admin: Admin, wanted: Wanted, dry_run: bool) -> str:
    name = text_of(wanted, "topic")
    if not admin.delete_topic(name, dry_run=dry_run):
        return f"Topic {name} was marked for deletion before."
    return (
        f"{'Would mark' if dry_run else 'Marked'} topic {name} for deletion. Brokers need "
        "delete.topic.enable=true for it."
    )


def _elect(admin: Admin, _: Wanted, dry_run: bool) -> str:
    if isinstance(admin, BrokerAdmin):
        raise AdminError("Preferred leaders are elected through ZooKeeper, which is not given here")
    count = counted(admin.elect_preferred(dry_run=dry_run), "partition")
    would = "Would ask" if dry_run else "Asked"
    return f"{would} the controller to elect the preferred leaders of {count}."


def _reset(connections: Connections, wanted: Wanted, dry_run: bool) -> str:
    """Set the offsets of a group without members; of one topic, or of all that it reads."""
    group, to = text_of(wanted, "group"), text_of(wanted, "to")
    if to not in TARGETS:
        raise AdminError(f"to must be one of {', '.join(TARGETS)}")
    number = 0
    if to in {Target.OFFSET.value, Target.TIMESTAMP.value}:
        number = number_of(wanted, "number", LONG_MAX, least=0)
    topic = wanted.get("topic", "")
    topics = [text_of(wanted, "topic")] if topic else []
    of_group = GroupOffsets(connections, group)
    plan = of_group.plan_reset(Target(to), number, topics)
    if plan.refusals:
        raise AdminError(f"The offsets of {group} cannot be set: {'; '.join(plan.refusals)}")
    moved = [tp for tp in plan.offsets if tp not in plan.untimed]
    partitions = some_of(sorted(moved)) if moved else "no partition"
    where = of_group.stores(plan).value.replace("dual", "ZooKeeper and Kafka")
    untimed = (
        f" {some_of(plan.untimed)} to the log's end, for want of times." if plan.untimed else ""
    )
    if not dry_run:
        of_group.carry_out(plan)
    does = "Would set" if dry_run else "Set"
    return f"{does} the offsets of {group} in {where}: {partitions}.{untimed}"


RESET: Final = "reset_offsets"
TARGETS: Final = ("earliest", "latest", "timestamp", "offset")
VERBS: Final[Mapping[str, Callable[[Admin, Wanted, bool], str]]] = {
    "create_topic": _create,
    "add_partitions": _add_partitions,
    "configure_topic": _configure,
    "delete_topic": _delete,
    "elect_preferred": _elect,
}


def text_of(wanted: Wanted, key: str) -> str:
    value = wanted.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= TEXT_MAX:
        raise AdminError(f"{key} must be a text")
    return value


def number_of(wanted: Wanted, key: str, most: int, least: int = 1) -> int:
    value = wanted.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise AdminError(f"{key} must be a number from {least} to {most}")
    return value


def overrides_of(wanted: Wanted) -> dict[str, str]:
    found = wanted.get("config", {})
    if not isinstance(found, dict) or len(found) > OVERRIDES_MAX:
        raise AdminError(f"config must have at most {OVERRIDES_MAX} overrides")
    for key, value in found.items():
        if not isinstance(value, str) or len(key) + len(value) > TEXT_MAX:
            raise AdminError("config must have texts as values")
    return found
