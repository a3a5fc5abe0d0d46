"""The journal of a migration: /kafka08/migrations/<group>, written before anything else changes.

    {"version":1,"state":"dual","updated":"1795231929681","taken":"1795231929600","step":1,
     "storage":"dual",
     "offsets":{"<topic>":{"<partition>":[<ZooKeeper's offset or null>,<Kafka's or null>]}}}

`step` and `storage` are the order that live kafka08 members follow
(kafka08/zk/migration_protocol.py); a storage of null orders nothing. `offsets` is the snapshot of
both stores, taken when the migration began (`taken`); it stays until another migration begins or
this one is forgotten. One that is too large for a znode (jute.maxbuffer, 1 MB) is in parts,
`/kafka08/migration_snapshots/<group>/<taken>-<n>`, written before the journal, which has their
number (`parts`) instead of `offsets`. Every write is conditional on the version read, so of two
tools one fails. 0.8.2.2 does not know the znodes. They are persistent, and so is the child
`members`.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kafka08.admin.group_facts import OfBoth, Offset
from kafka08.errors import BadVersion, MigrationError, NodeExists, NoNode, ZooKeeperError
from kafka08.migration.facts import Snapshot
from kafka08.migration.results import raised
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.migration_protocol import DAMAGE, OffsetStorage, Order
from kafka08.zk.operations import Create, Delete, Get, Node, Set

VERSION: Final = 1
PART_CHARACTERS: Final = 300_000
"""In a part of a snapshot at most, and in one that is whole in the journal. A character is a byte:
topics that exist have no other names."""
PARTS_MAX: Final = 10_000
TIME_MAX_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""
LONGEST_ENTRY: Final = 70
"""Characters of one partition's number and offsets, and of what JSON puts around them and a topic:
ten digits, two of nineteen, quotes, brackets, commas."""
UNWRITTEN: Final = -1
"""`zk_version` of an entry without a znode."""


class State(enum.Enum):
    """The state of a migration; the journal holds its value.

    COPYING, FINISHING, RETURNING and ROLLING_… mean that a step began and may have been
    interrupted: run it again.
    """

    COPYING = "copying"
    DUAL = "dual"
    VERIFIED = "verified"
    FINISHING = "finishing"
    FINISHED = "finished"
    ROLLING_TO_NEWEST = "rolling back to the newest offsets"
    RETURNING = "returning to ZooKeeper"
    ROLLING_TO_SNAPSHOT = "rolling back to the snapshot"
    ROLLED_BACK = "rolled back"


ORDERS: Final[dict[State, OffsetStorage]] = {
    State.DUAL: OffsetStorage.DUAL,
    State.VERIFIED: OffsetStorage.DUAL,
    State.FINISHING: OffsetStorage.KAFKA,
    State.FINISHED: OffsetStorage.KAFKA,
    State.ROLLING_TO_NEWEST: OffsetStorage.DUAL,
    State.RETURNING: OffsetStorage.ZOOKEEPER,
    State.ROLLING_TO_SNAPSHOT: OffsetStorage.ZOOKEEPER,
    State.ROLLED_BACK: OffsetStorage.ZOOKEEPER,
}
"""State → the storage that it orders from members. COPYING changes nothing for them."""

_BEGUN: Final = frozenset(
    {
        State.COPYING,
        State.DUAL,
        State.VERIFIED,
        State.FINISHING,
        State.FINISHED,
        State.ROLLED_BACK,
    }
)

DONE: Final = frozenset({State.FINISHED, State.ROLLED_BACK})
"""States in which a migration may be forgotten."""

VALID_PREVIOUS: Final[dict[State, frozenset[State | None]]] = {
    State.COPYING: frozenset({None, State.COPYING, State.ROLLED_BACK}),
    State.DUAL: frozenset({State.COPYING, State.DUAL, State.VERIFIED}),
    State.VERIFIED: frozenset({State.DUAL, State.VERIFIED}),
    State.FINISHING: frozenset({State.VERIFIED, State.FINISHING, State.FINISHED}),
    State.FINISHED: frozenset({State.FINISHING}),
    State.ROLLING_TO_NEWEST: _BEGUN | {State.ROLLING_TO_NEWEST},
    State.RETURNING: frozenset(
        {
            State.ROLLING_TO_NEWEST,
            State.RETURNING,
            State.COPYING,
            State.DUAL,
            State.VERIFIED,
            State.ROLLED_BACK,
        }
    ),
    State.ROLLING_TO_SNAPSHOT: _BEGUN | {State.ROLLING_TO_SNAPSHOT},
    State.ROLLED_BACK: frozenset({State.RETURNING, State.ROLLING_TO_SNAPSHOT}),
}
"""State → the states from which it may be entered; None: there is no journal.

RETURNING follows immediately if members have committed to ZooKeeper all the time."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The journal as read. Its next write is conditional on `zk_version`."""

    state: State
    snapshot: Snapshot
    updated_ms: int
    order: Order | None = None
    zk_version: int = UNWRITTEN
    snapshot_ms: int | None = None
    """When the snapshot was taken; None in a journal of an earlier release."""
    parts: int = 0
    """How many znodes the snapshot is stored in; 0: in the journal, or not stored yet."""


class Journal:
    """The journal of one group."""

    def __init__(self, zk: ZkClient, group: str) -> None:
        self._zk = zk
        self._group = group

    def read_entry(self) -> Entry | None:
        """The journal; None if there is no migration. MigrationError if unreadable."""
        return raised(read_journals(self._zk, [self._group])[self._group])

    def enter(self, state: State, previous: Entry, now_ms: int) -> Entry:
        """Enter `state`. MigrationError if it does not follow, or another tool wrote meanwhile."""
        entry = entered(self._group, state, previous, now_ms)
        return raised(write_journals(self._zk, {self._group: entry})[self._group])

    def check(self, state: State, previous: Entry | None) -> None:
        check(self._group, state, previous)

    def remove(self, entry: Entry) -> None:
        """Remove the journal and the members' confirmations in one transaction. MigrationError if
        another tool wrote meanwhile, ZooKeeperError if a member confirmed."""
        confirmations = paths.migration_members(self._group)
        members = self._zk.children_or_empty(confirmations)
        deletes = [Delete(paths.migration_confirmation(self._group, name)) for name in members]
        deletes += [Delete(confirmations), Delete(paths.migration(self._group), entry.zk_version)]
        parts = _found_parts(self._zk, self._group)
        try:
            self._zk.multi(deletes)
        except (NoNode, BadVersion) as error:
            raise MigrationError(
                f"the migration of {self._group} has changed; check its status again: {error}"
            ) from error
        gone = [*parts, paths.migration_snapshot(self._group)]
        self._zk.pipeline([Delete(path) for path in gone])


def read_journals(zk: ZkClient, groups: Sequence[str]) -> dict[str, Entry | MigrationError | None]:
    """group → its journal; None if there is no migration."""
    read = zk.pipeline([Get(paths.migration(group)) for group in groups])
    found: dict[str, Entry | MigrationError | None] = {}
    for group, node in zip(groups, read, strict=True):
        if isinstance(node, NoNode):
            found[group] = None
        elif isinstance(node, ZooKeeperError):
            raise node
        else:
            found[group] = _decoded(zk, group, node)
    return found


def _decoded(zk: ZkClient, group: str, node: Node) -> Entry | MigrationError:
    try:
        entry = replace(decode(node.data or ""), zk_version=node.version)
        if not entry.parts:
            return entry
        read = zk.pipeline([Get(path) for path in _part_paths(group, entry)])
        snapshot: dict[TopicPartition, OfBoth] = {}
        for path, part in zip(_part_paths(group, entry), read, strict=True):
            if isinstance(part, NoNode):
                raise ValueError(f"the part {path} of its snapshot is gone")
            if isinstance(part, ZooKeeperError):
                raise part
            snapshot |= decode_offsets(json.loads(part.data or ""))
        return replace(entry, snapshot=snapshot)
    except DAMAGE as error:
        return MigrationError(f"{paths.migration(group)} cannot be read: {error}")


def write_journals(zk: ZkClient, entries: Mapping[str, Entry]) -> dict[str, Entry | MigrationError]:
    """Write each on condition of its version (UNWRITTEN: create it): group → the entry as
    written, or MigrationError if another tool wrote meanwhile."""
    entries = {group: _with_stored_parts(zk, group, entry) for group, entry in entries.items()}
    others = {
        group: set(_found_parts(zk, group)) - set(_part_paths(group, entry))
        for group, entry in entries.items()
        if entry.parts
    }
    """Those of a former snapshot, and of tools that were killed before they wrote the journal."""
    writes = [
        Create(paths.migration(group), encode(entry))
        if entry.zk_version == UNWRITTEN
        else Set(paths.migration(group), encode(entry), entry.zk_version)
        for group, entry in entries.items()
    ]
    results = zk.pipeline(writes)
    # Each time: the last writer may have died before this, and live members confirm below it.
    parents = [Create(paths.migration_members(group), None) for group in entries]
    for made in zk.pipeline(parents, make_parents=False):
        if isinstance(made, ZooKeeperError) and not isinstance(made, NodeExists | NoNode):
            raise made
    written: dict[str, Entry | MigrationError] = {}
    for (group, entry), result in zip(entries.items(), results, strict=True):
        if isinstance(result, NodeExists | BadVersion):
            written[group] = MigrationError(
                f"another tool is migrating {group} at the same time: {result}"
            )
        elif isinstance(result, ZooKeeperError):
            raise result
        else:
            written[group] = replace(entry, zk_version=entry.zk_version + 1)
            zk.pipeline([Delete(path) for path in others.get(group, ())])
    return written


def _with_stored_parts(zk: ZkClient, group: str, entry: Entry) -> Entry:
    """The entry whose snapshot is stored in parts if it is too large for the journal, and is not
    stored yet."""
    if entry.parts:
        return entry
    parts = parts_of(entry.snapshot)
    if len(parts) < 2:
        return entry
    entry = replace(entry, parts=len(parts), snapshot_ms=entry.snapshot_ms or entry.updated_ms)
    creates = [
        Create(path, text) for path, text in zip(_part_paths(group, entry), parts, strict=True)
    ]
    for made in zk.pipeline(creates):
        if isinstance(made, NodeExists):
            raise MigrationError(f"another tool is migrating {group} at the same time: {made}")
        if isinstance(made, ZooKeeperError):
            raise made
    return entry


def _found_parts(zk: ZkClient, group: str) -> list[str]:
    """The parts of snapshots that there are. Read before the journal is written, and deleted after
    it: a tool that reads what was written may store a snapshot of its own at once."""
    parent = paths.migration_snapshot(group)
    return [f"{parent}/{name}" for name in zk.children_or_empty(parent)]


def _part_paths(group: str, entry: Entry) -> list[str]:
    parent = paths.migration_snapshot(group)
    return [f"{parent}/{entry.snapshot_ms}-{number}" for number in range(entry.parts)]


def begun(group: str, snapshot: Snapshot, now_ms: int, previous: Entry | None) -> Entry:
    """The entry for COPYING with the `snapshot` of now, to be written. Of an interrupted copy an
    offset that the copy wrote is left out of it: the former one stays. MigrationError if it cannot
    begin now."""
    if previous is None:
        return Entry(State.COPYING, snapshot, now_ms, snapshot_ms=now_ms)
    if previous.state is State.COPYING:
        snapshot = {
            tp: _before_copy(offsets, previous.snapshot.get(tp, offsets))
            for tp, offsets in {**previous.snapshot, **snapshot}.items()
        }
    entry = entered(group, State.COPYING, previous, now_ms)
    # Later than the former one, whatever the clock says: its parts are named by it.
    taken_ms = max(now_ms, (previous.snapshot_ms or 0) + 1)
    return replace(entry, snapshot=snapshot, snapshot_ms=taken_ms, parts=0)


def _before_copy(now: OfBoth, former: OfBoth) -> OfBoth:
    """Both stores without what an interrupted copy of `former` wrote into one from the other."""
    zookeeper = former[0] if now[0] == former[1] else now[0]
    kafka = former[1] if now[1] == former[0] else now[1]
    return zookeeper, kafka


def entered(group: str, state: State, previous: Entry, now_ms: int) -> Entry:
    """`previous` in `state`, to be written. MigrationError if the state does not follow."""
    check(group, state, previous)
    order = next_order(previous.order, ORDERS.get(state))
    return replace(previous, state=state, order=order, updated_ms=now_ms)


def unfinished(group: str, entry: Entry | None) -> str:
    """A sentence with the state of a migration and what to do."""
    now = "has not begun" if entry is None else f"is {entry.state.value!r}"
    return f"the migration of {group} {now}; {_ADVICE[None if entry is None else entry.state]}"


def check(group: str, state: State, previous: Entry | None) -> None:
    """MigrationError, with what to do, unless `state` follows."""
    if not follows(state, previous):
        raise MigrationError(unfinished(group, previous))


def follows(state: State, previous: Entry | None) -> bool:
    """Whether a migration may enter `state` now."""
    return (None if previous is None else previous.state) in VALID_PREVIOUS[state]


_ADVICE: Final[dict[State | None, str]] = {
    None: "start it first: kafka08 migrate start GROUP",
    State.COPYING: "the copy was interrupted: start it again",
    State.DUAL: "verify it, or roll it back",
    State.VERIFIED: "finish it, or roll it back",
    State.FINISHING: "finish was interrupted: repeat it, or roll it back",
    State.FINISHED: "it is done, or can be rolled back",
    State.ROLLING_TO_NEWEST: "the rollback was interrupted: repeat it",
    State.RETURNING: "the rollback was interrupted: repeat it",
    State.ROLLING_TO_SNAPSHOT: "the rollback was interrupted: repeat it",
    State.ROLLED_BACK: "start it again",
}


def next_order(order: Order | None, storage: OffsetStorage | None) -> Order | None:
    """The order that follows; the same one if members have nothing to change."""
    if storage is None or (order is not None and order.storage is storage):
        return order
    return Order(1 if order is None else order.step + 1, storage)


def encode(entry: Entry) -> str:
    """The text of the journal; of a snapshot in parts only their number."""
    fields: dict[str, object] = {
        "version": VERSION,
        "state": entry.state.value,
        "updated": str(entry.updated_ms),
        "taken": None if entry.snapshot_ms is None else str(entry.snapshot_ms),
        "step": 0 if entry.order is None else entry.order.step,
        "storage": None if entry.order is None else entry.order.storage.value,
    }
    if entry.parts:
        fields["parts"] = entry.parts
    else:
        fields["offsets"] = _encoded_offsets(sorted(entry.snapshot.items()))
    return json.dumps(fields, separators=(",", ":"))


def parts_of(snapshot: Snapshot) -> list[str]:
    """Texts of up to PART_CHARACTERS that have the whole snapshot together."""
    parts: list[str] = []
    some: list[tuple[TopicPartition, OfBoth]] = []
    size = 0
    for tp, offsets in sorted(snapshot.items()):
        length = len(tp.topic) + LONGEST_ENTRY
        if some and size + length > PART_CHARACTERS:
            parts.append(json.dumps(_encoded_offsets(some), separators=(",", ":")))
            some, size = [], 0
        some.append((tp, offsets))
        size += length
    parts.append(json.dumps(_encoded_offsets(some), separators=(",", ":")))
    return parts


def _encoded_offsets(
    offsets: Iterable[tuple[TopicPartition, OfBoth]],
) -> dict[str, dict[str, list[Offset]]]:
    fields: dict[str, dict[str, list[Offset]]] = {}
    for tp, (zookeeper, kafka) in offsets:
        fields.setdefault(tp.topic, {})[str(tp.partition)] = [zookeeper, kafka]
    return fields


def decode(text: str) -> Entry:
    """Raises ValueError, KeyError, TypeError or AttributeError for text that `encode` does not
    write. A snapshot in parts is empty."""
    fields = json.loads(text)
    if fields["version"] != VERSION:
        raise ValueError(f"version {fields['version']} is not {VERSION}")
    parts, taken = int(fields.get("parts", 0)), fields.get("taken")
    if not 0 <= parts <= PARTS_MAX or not 0 <= int(taken or 0) <= TIME_MAX_MS:
        raise ValueError(f"{parts} parts taken at {taken} are out of range")
    storage = fields["storage"]
    order = None if storage is None else Order(int(fields["step"]), OffsetStorage(storage))
    return Entry(
        State(fields["state"]),
        {} if parts else decode_offsets(fields["offsets"]),
        int(fields["updated"]),
        order,
        snapshot_ms=None if taken is None else int(taken),
        parts=parts,
    )


def decode_offsets(
    offsets: Mapping[str, Mapping[str, list[Offset]]],
) -> dict[TopicPartition, OfBoth]:
    """A snapshot, or a part of one. Raises as `decode`."""
    return {
        TopicPartition(topic, int(number)): (zookeeper, kafka)
        for topic, partitions in offsets.items()
        for number, (zookeeper, kafka) in partitions.items()
    }
