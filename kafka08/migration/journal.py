"""The journal of a migration: /kafka08/migrations/<group>, written before anything else changes.

    {"version":1,"state":"copying","updated":"1795231929681",
     "offsets":{"<topic>":{"<partition>":[<ZooKeeper's offset or null>,<Kafka's or null>]}}}

`offsets` is the snapshot of both stores taken when the migration began; it stays until another
migration begins. Every write is conditional on the version read, so of two tools one loses. 0.8.2.2
does not know the znode. Persistent; nobody watches it yet.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kafka08.errors import BadVersion, MigrationError, NodeExists
from kafka08.migration.plan import Offset, Snapshot
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient

VERSION: Final = 1


class State(enum.Enum):
    """How far a migration has come; the value stands in the journal.

    COPYING and ROLLING_… mean that a step began and may have been broken off: run it again.
    """

    COPYING = "copying"
    COPIED = "copied"
    VERIFIED = "verified"
    ROLLING_TO_NEWEST = "rolling back to the newest offsets"
    ROLLING_TO_SNAPSHOT = "rolling back to the snapshot"
    ROLLED_BACK = "rolled back"


_BEGUN: Final = frozenset({State.COPYING, State.COPIED, State.VERIFIED, State.ROLLED_BACK})

VALID_PREVIOUS: Final[dict[State, frozenset[State | None]]] = {
    State.COPYING: _BEGUN | {None},
    State.COPIED: frozenset({State.COPYING}),
    State.VERIFIED: frozenset({State.COPIED, State.VERIFIED}),
    State.ROLLING_TO_NEWEST: _BEGUN | {State.ROLLING_TO_NEWEST},
    State.ROLLING_TO_SNAPSHOT: _BEGUN | {State.ROLLING_TO_SNAPSHOT},
    State.ROLLED_BACK: frozenset({State.ROLLING_TO_NEWEST, State.ROLLING_TO_SNAPSHOT}),
}
"""State → the states from which it may be entered; None: there is no journal."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The journal as read. `zk_version` is the key to its next write."""

    state: State
    snapshot: Snapshot
    updated_ms: int
    zk_version: int = -1


class Journal:
    """The journal of one group."""

    def __init__(self, zk: ZkClient, group: str) -> None:
        self._zk = zk
        self._group = group
        self._path = paths.migration(group)

    def read(self) -> Entry | None:
        """The journal; None if no migration was ever begun. MigrationError if unreadable."""
        node = self._zk.get_or_none(self._path)
        if node is None:
            return None
        try:
            return replace(decode(node.data or ""), zk_version=node.version)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MigrationError(f"{self._path} cannot be read: {error}") from error

    def begin(self, snapshot: Snapshot, now_ms: int, previous: Entry | None) -> Entry:
        """Enter COPYING. A migration that is resumed or repeated keeps its snapshot; a new one, and
        one after a rollback, gets `snapshot`."""
        self.check(State.COPYING, previous)
        if previous is None or previous.state is State.ROLLED_BACK:
            return self._write(Entry(State.COPYING, snapshot, now_ms), previous)
        return self.enter(State.COPYING, previous, now_ms)

    def enter(self, state: State, previous: Entry, now_ms: int) -> Entry:
        """Go on to `state`. MigrationError if that does not follow, or somebody else wrote."""
        self.check(state, previous)
        return self._write(replace(previous, state=state, updated_ms=now_ms), previous)

    def check(self, state: State, previous: Entry | None) -> None:
        found = None if previous is None else previous.state
        if found not in VALID_PREVIOUS[state]:
            now = "has not begun" if found is None else f"is {found.value!r}"
            raise MigrationError(f"the migration of {self._group} {now}; {_ADVICE[found]}")

    def _write(self, entry: Entry, previous: Entry | None) -> Entry:
        try:
            if previous is None:
                self._zk.create(self._path, encode(entry))
                return replace(entry, zk_version=0)
            version = self._zk.set(self._path, encode(entry), previous.zk_version)
            return replace(entry, zk_version=version)
        except (NodeExists, BadVersion) as error:
            raise MigrationError(
                f"somebody else is migrating {self._group} at the same time: {error}"
            ) from error


_ADVICE: Final[dict[State | None, str]] = {
    None: "start it first",
    State.COPYING: "the copy was broken off: start it again",
    State.COPIED: "verify it, or roll it back",
    State.VERIFIED: "it is done, or can be rolled back",
    State.ROLLING_TO_NEWEST: "the rollback was broken off: repeat it",
    State.ROLLING_TO_SNAPSHOT: "the rollback was broken off: repeat it",
    State.ROLLED_BACK: "start it anew",
}


def encode(entry: Entry) -> str:
    offsets: dict[str, dict[str, list[Offset]]] = {}
    for tp, (zookeeper, kafka) in sorted(entry.snapshot.items()):
        offsets.setdefault(tp.topic, {})[str(tp.partition)] = [zookeeper, kafka]
    fields = {
        "version": VERSION,
        "state": entry.state.value,
        "updated": str(entry.updated_ms),
        "offsets": offsets,
    }
    return json.dumps(fields, separators=(",", ":"))


def decode(text: str) -> Entry:
    """Raises ValueError, KeyError, TypeError or AttributeError for what `encode` does not write."""
    fields = json.loads(text)
    if fields["version"] != VERSION:
        raise ValueError(f"version {fields['version']} is not {VERSION}")
    offsets: Mapping[str, Mapping[str, list[Offset]]] = fields["offsets"]
    snapshot = {
        TopicPartition(topic, int(number)): (zookeeper, kafka)
        for topic, partitions in offsets.items()
        for number, (zookeeper, kafka) in partitions.items()
    }
    return Entry(State(fields["state"]), snapshot, int(fields["updated"]))
