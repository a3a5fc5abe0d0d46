"""The changes that the console can make: verbs of AdminClient, from JSON that a browser sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka08.admin import AdminClient
from kafka08.assignment import PARTITIONS_MAX, REPLICAS_MAX
from kafka08.errors import AdminError
from kafka08.listing import counted

OVERRIDES_MAX: Final = 100
TEXT_MAX: Final = 10_000

Wanted = Mapping[str, Any]


def change(admin: AdminClient, wanted: Wanted) -> str:
    """Make the change, or only check it with `dry_run`. Returns a sentence about what was done.
    AdminError or ConfigError, without any change, if it is impossible or malformed."""
    verb = VERBS.get(text_of(wanted, "verb"))
    if verb is None:
        raise AdminError(f"There is no change of this name; there are: {', '.join(VERBS)}")
    dry_run = wanted.get("dry_run")
    if not isinstance(dry_run, bool):
        raise AdminError("dry_run must be true or false")
    return verb(admin, wanted, dry_run)


def _create(admin: AdminClient, wanted: Wanted, dry_run: bool) -> str:
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


def _add_partitions(admin: AdminClient, wanted: Wanted, dry_run: bool) -> str:
    name, total = text_of(wanted, "topic"), number_of(wanted, "partitions", PARTITIONS_MAX)
    added = admin.alter_topic(name, partitions=total, dry_run=dry_run)
    return (
        f"{'Would add' if dry_run else 'Added'} {counted(len(added), 'partition')} to {name}. "
        "Messages with a key go to other partitions from then on."
    )


def _configure(admin: AdminClient, wanted: Wanted, dry_run: bool) -> str:
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


def _delete(admin: AdminClient, wanted: Wanted, dry_run: bool) -> str:
    name = text_of(wanted, "topic")
    if not admin.delete_topic(name, dry_run=dry_run):
        return f"Topic {name} was marked for deletion before."
    return (
        f"{'Would mark' if dry_run else 'Marked'} topic {name} for deletion. Brokers need "
        "delete.topic.enable=true for it."
    )


def _elect(admin: AdminClient, _: Wanted, dry_run: bool) -> str:
    count = counted(admin.elect_preferred(dry_run=dry_run), "partition")
    would = "Would ask" if dry_run else "Asked"
    return f"{would} the controller to elect the preferred leaders of {count}."


VERBS: Final[Mapping[str, Callable[[AdminClient, Wanted, bool], str]]] = {
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


def number_of(wanted: Wanted, key: str, most: int) -> int:
    value = wanted.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise AdminError(f"{key} must be a number from 1 to {most}")
    return value


def overrides_of(wanted: Wanted) -> dict[str, str]:
    found = wanted.get("config", {})
    if not isinstance(found, dict) or len(found) > OVERRIDES_MAX:
        raise AdminError(f"config must have at most {OVERRIDES_MAX} overrides")
    for key, value in found.items():
        if not isinstance(value, str) or len(key) + len(value) > TEXT_MAX:
            raise AdminError("config must have texts as values")
    return found
