"""OffsetCache: committed offsets of the groups that this broker coordinates. Pure: no I/O, no
clock.

Per partition of `__consumer_offsets`:

    (absent) ── begin_load ──▶ loading ── finish_load ──▶ loaded ── drop ──▶ (absent)

Every entry has the log offset of its record, and a record is applied only if it is later in the log
than the entry. So a commit made while its partition is being loaded wins over the older record that
the load reads later (0.8.2.2 loses it: its load overwrites), and commits whose acknowledgements
arrive in another order than their appends end up in log order. Changes of a partition that is no
longer here are ignored.

Offsets that a transaction commits wait until it ends. Then they are applied by the same rule: what
was committed later in the log, although before the transaction's end, is newer. Source:
kafka.server.OffsetManager 0.8.2.2, kafka.coordinator.group.GroupMetadata 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kafka08.protocol.offset_records import NO_EXPIRY, OffsetKey, OffsetValue
from kafka08.structs import TopicPartition


class LoadState(Enum):
    ABSENT = "absent"
    """Another broker coordinates these groups."""

    LOADING = "loading"
    """Commits are accepted, fetches must be retried."""

    LOADED = "loaded"
    """The cache has the content of the log."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The newest record of a key. `value` None: deleted; kept only while loading, and while an
    earlier commit of the key waits for its acknowledgement, or the end of its transaction."""

    log_offset: int
    value: OffsetValue | None


@dataclass(slots=True)
class _Group:
    """pending   number of commits in progress and in open transactions, by key"""

    entries: dict[OffsetKey, Entry] = field(default_factory=dict)
    pending: dict[OffsetKey, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Partition:
    """generation   distinguishes one load of the partition from the next: see `begin_load`
    groups          those that have an entry or a pending commit
    transactional   producer id → the newest record of each key in its open transaction"""

    generation: int
    loading: bool = True
    groups: dict[str, _Group] = field(default_factory=dict)
    deleted: set[OffsetKey] = field(default_factory=set)
    """The keys whose entry has no value; searching for them would be slow."""
    transactional: dict[int, dict[OffsetKey, Entry]] = field(default_factory=dict)

    def entry(self, key: OffsetKey) -> Entry | None:
        group = self.groups.get(key.group)
        return None if group is None else group.entries.get(key)

    def is_pending(self, key: OffsetKey) -> bool:
        """Whether a commit of the key is in progress."""
        group = self.groups.get(key.group)
        return group is not None and key in group.pending

    def group(self, name: str) -> _Group:
        """The group, created if needed."""
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = _Group()
        return group

    def remove(self, key: OffsetKey) -> None:
        group = self.groups.get(key.group)
        if group is not None:
            group.entries.pop(key, None)
            self.forget_if_empty(key.group, group)

    def begin(self, key: OffsetKey) -> None:
        """A commit of the key is pending."""
        pending = self.group(key.group).pending
        pending[key] = pending.get(key, 0) + 1

    def end(self, key: OffsetKey) -> None:
        """A commit that `begin` counted is pending no more."""
        group = self.groups.get(key.group)
        if group is None:
            return
        left = group.pending.get(key, 0) - 1
        if left > 0:
            group.pending[key] = left
            return
        group.pending.pop(key, None)
        # No older record can come any more.
        if key in self.deleted and not self.loading:
            self.deleted.discard(key)
            del group.entries[key]
        self.forget_if_empty(key.group, group)

    def forget_if_empty(self, name: str, group: _Group) -> None:
        if not group.entries and not group.pending:
            del self.groups[name]

    def __len__(self) -> int:
        return sum(len(group.entries) for group in self.groups.values())


NO_GENERATION: Final = 0
ABSENT: Final = _Partition(generation=-1)
"""In place of a partition that is not here; it is only read."""


class OffsetCache:
    """Offsets by partition of the offsets topic, then by key."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self._generations = NO_GENERATION
        self.loaded: set[int] = set()
        """The loaded partitions."""

    def state(self, partition: int) -> LoadState:
        if partition in self.loaded:
            return LoadState.LOADED
        return LoadState.LOADING if partition in self._partitions else LoadState.ABSENT

    def begin_load(self, partition: int) -> int | None:
        """Start loading. Returns the generation for the loader's calls, or None if the partition is
        there already: the leadership was confirmed, and the log is the same."""
        if partition in self._partitions:
            return None
        self._generations += 1
        self._partitions[partition] = _Partition(self._generations)
        return self._generations

    def is_current(self, partition: int, generation: int) -> bool:
        """Whether the load of that generation should continue."""
        return self._partitions.get(partition, ABSENT).generation == generation

    def apply(
        self, partition: int, log_offset: int, key: OffsetKey, value: OffsetValue | None
    ) -> None:
        """Apply the record at `log_offset`, unless the key has a newer one."""
        found = self._partitions.get(partition)
        if found is None:
            return
        known = found.entry(key)
        # A commit that was made while the log is being read wins over the records before it.
        if known is not None and known.log_offset >= log_offset:
            return
        # Otherwise the deleted entry stays, since an older record may still come.
        if value is None and not found.loading and not found.is_pending(key):
            found.remove(key)
            return
        found.group(key.group).entries[key] = Entry(log_offset, value)
        if value is None:
            found.deleted.add(key)
        else:
            found.deleted.discard(key)

    def finish_load(self, partition: int, generation: int) -> None:
        """The log was read to its end: serve fetches from now on."""
        if self.is_current(partition, generation):
            found = self._partitions[partition]
            found.loading = False
            self.loaded.add(partition)
            gone = {key for key in found.deleted if not found.is_pending(key)}
            for key in gone:
                found.remove(key)
            found.deleted -= gone

    def drop(self, partition: int) -> int:
        """Drop a partition that another broker leads now; returns the number of its offsets."""
        self.loaded.discard(partition)
        return len(self._partitions.pop(partition, ABSENT))

    def begin_commit(self, partition: int, keys: Iterable[OffsetKey]) -> int:
        """A commit of `keys` was appended to the log: until `end_commit` they do not expire,
        because the tombstone would be later in the log than the new offset and delete it. Returns
        the generation of the load."""
        found = self._partitions.get(partition)
        if found is None:
            return NO_GENERATION
        for key in keys:
            found.begin(key)
        return found.generation

    def end_commit(self, partition: int, generation: int, keys: Iterable[OffsetKey]) -> None:
        """The commit of `keys` that `begin_commit` counted in that generation has failed, or was
        applied."""
        # Else it was counted in an earlier load: nothing of it is left.
        if self.is_current(partition, generation):
            for key in keys:
                self._partitions[partition].end(key)

    def add_to_transaction(
        self, partition: int, producer_id: int, log_offset: int, key: OffsetKey, value: OffsetValue
    ) -> None:
        """The record at `log_offset` belongs to the open transaction of a producer."""
        found = self._partitions.get(partition)
        if found is None:
            return
        entries = found.transactional.setdefault(producer_id, {})
        known = entries.get(key)
        if known is None:
            found.begin(key)
        elif known.log_offset >= log_offset:
            return
        entries[key] = Entry(log_offset, value)

    def end_transaction(self, partition: int, producer_id: int, *, commits: bool) -> None:
        """A producer's transaction has ended: apply its offsets, or drop them."""
        found = self._partitions.get(partition)
        if found is None:
            return
        for key, entry in found.transactional.pop(producer_id, {}).items():
            if commits:
                self.apply(partition, entry.log_offset, key, entry.value)
            found.end(key)

    def get(self, partition: int, key: OffsetKey) -> OffsetValue | None:
        """The offset of a loaded partition; None if there is none."""
        entry = self._partitions[partition].entry(key)
        return None if entry is None else entry.value

    def of_group(self, partition: int, name: str) -> dict[OffsetKey, OffsetValue]:
        """All offsets of a group."""
        group = self._partitions.get(partition, ABSENT).groups.get(name, _Group())
        return {key: e.value for key, e in group.entries.items() if e.value is not None}

    def count_of_group(self, partition: int, name: str) -> int:
        """The number of offsets of a group, with deleted ones that are kept yet."""
        return len(self._partitions.get(partition, ABSENT).groups.get(name, _Group()).entries)

    def has_group(self, partition: int, name: str) -> bool:
        """Whether the group has offsets, or a commit in progress."""
        return name in self._partitions.get(partition, ABSENT).groups

    def groups_of(self, partition: int) -> list[str]:
        """The groups of a partition that have an offset, or one in an open transaction."""
        found = self._partitions.get(partition, ABSENT)
        return [
            name
            for name, group in found.groups.items()
            if group.pending or any(entry.value is not None for entry in group.entries.values())
        ]

    @property
    def loading(self) -> list[int]:
        """The partitions that are being loaded."""
        return [number for number, found in self._partitions.items() if found.loading]

    def keys(self, partition: int) -> list[OffsetKey]:
        """The keys with an offset in a partition."""
        found = self._partitions.get(partition, ABSENT)
        return [key for group in found.groups.values() for key in group.entries]

    def pending(self, partition: int) -> list[OffsetKey]:
        """The keys with a commit in progress."""
        found = self._partitions.get(partition, ABSENT)
        return [key for group in found.groups.values() for key in group.pending]

    def older(
        self, partition: int, keys: Iterable[OffsetKey], ends: Mapping[TopicPartition, int]
    ) -> list[OffsetKey]:
        """Those among `keys` whose record is before the log offset that `ends` has for their topic
        and partition; not while a commit of the same key is in progress."""
        found = self._partitions.get(partition, ABSENT)
        return [
            key
            for key in keys
            if (end := ends.get(key.topic_partition)) is not None
            and (entry := found.entry(key)) is not None
            and entry.log_offset < end
            and not found.is_pending(key)
        ]

    def expired(
        self, partition: int, keys: Iterable[OffsetKey], now_ms: int, retention_ms: int
    ) -> list[OffsetKey]:
        """Those among `keys` whose offset has expired; empty while the partition is loading or
        gone.

        1. A record with an expiry (written by 0.9+): once that time is over.
        2. Else: `retention_ms` after its commit time, which a client may have chosen in version 1
           of OffsetCommit.
        3. Not while a commit of the same key is in progress.
        """
        found = self._partitions.get(partition, ABSENT)
        if found.loading:
            return []
        return [
            key
            for key in keys
            if (group := found.groups.get(key.group)) is not None
            and (entry := group.entries.get(key)) is not None
            and entry.value is not None
            and key not in group.pending  # 3
            and _is_expired(entry.value, now_ms, retention_ms)
        ]

    def __len__(self) -> int:
        """The number of cached offsets."""
        return sum(map(len, self._partitions.values()))


def _is_expired(value: OffsetValue, now_ms: int, retention_ms: int) -> bool:
    if value.expire_ms != NO_EXPIRY:
        return now_ms > value.expire_ms  # 1
    return now_ms - value.committed.timestamp_ms > retention_ms  # 2
