"""OffsetManager: committed offsets of the groups whose partition this broker leads.

    commit    appends records to the group's partition of `__consumer_offsets`; updates the cache
              once they are acknowledged
    fetch     from the cache alone
    load      on becoming leader of a partition: its log from the start to the high watermark
    expire    every ten minutes: removes old offsets, with tombstones in the log

`OffsetCache` decides, this class appends to the log, and OffsetLoader reads it. The ReplicaManager
calls it at leadership changes. From level 0.9 on records have version 1, with the time at which the
offset expires, and group records are passed to a GroupListener.

Source: kafka.server.OffsetManager and KafkaApis 0.8.2.2, kafka.coordinator.GroupMetadataManager
0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from typing import Final, NamedTuple

from kafka08.broker.appends.appender import Appender
from kafka08.broker.groups.append_codes import code_of_commit, code_of_group_record
from kafka08.broker.groups.offset_cache import LoadState, OffsetCache
from kafka08.broker.groups.offset_loader import GroupListener, OffsetLoader
from kafka08.broker.purgatory.delayed_produce import AppendResult
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import (
    NO_ERROR,
    NotCoordinatorForConsumer,
    NotLeaderForPartition,
    OffsetMetadataTooLarge,
    OffsetsLoadInProgress,
    Refusal,
    RequestTimedOut,
    UnsupportedForMessageFormat,
)
from kafka08.hashing import group_partition
from kafka08.kernel.types import Messages
from kafka08.levels import Level
from kafka08.log.coordinator_batches import transactional_batch
from kafka08.log.log import Log
from kafka08.log.slices import AppendInfo
from kafka08.protocol.group_records import StoredGroup, encode_group
from kafka08.protocol.offset_records import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    encode_key,
    encode_value,
)
from kafka08.protocol_version import ProtocolVersion
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.runtime.yielding import yielding_batches
from kafka08.structs import NO_OFFSET, OFFSETS_TOPIC, OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

EXPIRY_INTERVAL_S: Final = 600.0
"""0.8: offsets.retention.check.interval.ms is parsed but not used."""
NOW: Final = -1
"""A commit time that means the broker's own clock."""
KEYS_PER_TURN: Final = 2000
"""The most offsets checked between two pauses, and the most tombstones in one set."""
BROKERS_RETENTION: Final = -1
"""A retention that means offsets.retention.minutes."""
TOPIC_NAME: Final = OFFSETS_TOPIC.encode()

CommitCodes = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """The response for one partition: NO_OFFSET and "" without an offset, or with an error."""

    offset: int = NO_OFFSET
    metadata: str | None = ""
    error_code: int = NO_ERROR


class Producer(NamedTuple):
    """A producer that commits offsets in its transaction."""

    id: int
    epoch: int


class OffsetManager:
    """The offsets of one broker. Only `startup`, `shutdown` and the load switch.

    may_have_successor   whether another broker may lead a partition that this one leads
    partition_count      of the offsets topic; 0: it will be created with
                         offsets.topic.num.partitions
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        appender: Appender,
        may_have_successor: Callable[[TopicPartition], bool],
        partition_count: int = 0,
    ) -> None:
        self._level = config.level
        self._group_record_version = int(config.protocol_version >= ProtocolVersion.V0_10_1_IV0)
        self._config = config
        self._runtime = runtime
        self._replica_manager = replica_manager
        self._appender = appender
        self._may_have_successor = may_have_successor
        self._cache = OffsetCache()
        self._retention_ms = config.offsets_retention_minutes * 60_000
        self._expiry: Greenlet | None = None
        self._loader = OffsetLoader(
            runtime,
            replica_manager,
            self._cache,
            config.offsets_load_buffer_size,
            self._forget_deleted,
            has_transactions=self._level >= Level.V0_11_0,
        )
        self._deleted: dict[int, dict[TopicPartition, int]] = {}
        """Of partitions that could not be changed: partitions deleted meanwhile → the log's end
        then."""
        self._partition_count = partition_count or config.offsets_topic_num_partitions
        self._codec = config.offsets_codec

    @property
    def groups(self) -> GroupListener | None:
        """Receives groups. Set before `startup`, from level 0.9 on."""
        return self._loader.groups

    @groups.setter
    def groups(self, listener: GroupListener) -> None:
        self._loader.groups = listener

    def startup(self) -> None:
        """Listen for leadership changes and start to expire. Before the controller's first
        request."""
        self._replica_manager.listen(OFFSETS_TOPIC, self)
        interval = EXPIRY_INTERVAL_S
        if self._level >= Level.V0_9_0:
            interval = self._config.offsets_retention_check_interval_ms / 1000
        self._expiry = self._runtime.every(interval, self.expire, name="offsets-cache-compactor")

    def shutdown(self) -> None:
        """End loads and expiry; safe if startup never ran."""
        self._loader.shutdown()
        if self._expiry is not None:
            self._expiry.kill(block=False)

    def __len__(self) -> int:
        """The number of cached offsets."""
        return len(self._cache)

    def partition_for(self, group: str) -> int:
        """The partition of the offsets topic that stores `group`."""
        return group_partition(group, self._partition_count)

    # Commits

    def commit(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Callable[[CommitCodes], object],
        retention_ms: int = BROKERS_RETENTION,
        producer: Producer | None = None,
    ) -> None:
        """Store offsets; `done` is called with one code per partition, maybe before this returns.

        1. A commit time of NOW becomes the broker's. From 0.9 on any becomes the broker's, and the
           offset expires `retention_ms` after the client's time; null metadata becomes "".
        2. Metadata longer than offset.metadata.max.bytes characters: 12, and the entry is left out.
        3. The rest is one set in the group's partition, with offsets.commit.required.acks and
           offsets.commit.timeout.ms; one code for all of it, from code_of_commit. 16 instead of 7
           if this broker may have a successor.
        4. Stored entries go to the cache. 0.8.2.2 adds the refused ones too: not copied. Those of a
           `producer` go there at the end of its transaction.
        Does not check whether the partitions exist.
        """
        limit = self._config.offset_metadata_max_bytes
        refused = [tp for tp, o in offsets.items() if java_length(o.metadata) > limit]
        codes: CommitCodes = dict.fromkeys(refused, OffsetMetadataTooLarge.code)  # 2
        now_ms = self._runtime.time_ms()
        stored = {
            OffsetKey(group, *tp): self._value(committed, retention_ms, now_ms)  # 1
            for tp, committed in offsets.items()
            if tp not in codes
        }

        def appended(result: AppendResult) -> None:
            code = code_of_commit(result.error_code, self._level)
            codes.update({key.topic_partition: code for key in stored})
            done(codes)

        if stored and producer is not None:
            self._append_to_transaction(self.partition_for(group), producer, stored, appended)
        elif stored:
            self._append_commit(self.partition_for(group), stored, appended)  # 3, 4
        else:
            done(codes)

    def _value(self, committed: OffsetAndMetadata, retention_ms: int, now_ms: int) -> OffsetValue:
        given = now_ms if committed.timestamp_ms == NOW else committed.timestamp_ms
        if self._level < Level.V0_9_0:
            return OffsetValue(OffsetAndMetadata(committed.offset, committed.metadata, given))
        if retention_ms == BROKERS_RETENTION:
            retention_ms = self._retention_ms
        metadata = committed.metadata or ""
        return OffsetValue(
            OffsetAndMetadata(committed.offset, metadata, now_ms),
            expire_ms=_as_long(given + retention_ms),
        )

    def _append_commit(
        self,
        partition: int,
        stored: Mapping[OffsetKey, OffsetValue],
        appended: Callable[[AppendResult], None],
    ) -> None:
        target = _target(partition)

        def acknowledged(result: AppendResult) -> None:
            if result.error is None:
                # 0.8: null metadata is null here until a load reads "" from the record.
                # Before `end_commit`, which drops a deleted entry and with it the offset that
                # orders the two.
                for log_offset, (key, value) in enumerate(stored.items(), result.base_offset):
                    self._cache.apply(partition, log_offset, key, value)
            self._cache.end_commit(partition, generation, stored)
            appended(result)

        records = self._records(stored)
        # Before the append, which may be acknowledged before it returns.
        generation = self._cache.begin_commit(partition, stored)
        self._append(target, records, acknowledged)

    def _records(self, stored: Mapping[OffsetKey, OffsetValue]) -> Messages:
        return [
            (self._key(key), encode_value(value.committed, expire_ms=value.expire_ms))
            for key, value in stored.items()
        ]

    def _append_to_transaction(
        self,
        partition: int,
        producer: Producer,
        stored: Mapping[OffsetKey, OffsetValue],
        done: Callable[[AppendResult], None],
    ) -> None:
        """Append offsets as a batch of a producer's transaction. They are part of it as soon as
        they are in the log, also if the replicas take too long: the marker comes behind them."""

        def appended(base_offset: int) -> None:
            for log_offset, (key, value) in enumerate(stored.items(), base_offset):
                self._cache.add_to_transaction(partition, producer.id, log_offset, key, value)

        self._appender.append_own(
            _target(partition),
            partial(append_offsets, producer, self._records(stored), self._runtime.time_ms()),
            timeout_ms=self._config.offsets_commit_timeout_ms,
            done=done,
            appended=appended,
        )

    def end_transaction(self, partition: int, producer_id: int, commits: bool) -> None:
        """The marker of a producer's transaction is replicated: the offsets that it committed in
        this partition count now, or never."""
        self._cache.end_transaction(partition, producer_id, commits=commits)

    def _append(
        self, target: TopicPartition, records: Messages, done: Callable[[AppendResult], object]
    ) -> None:
        def appended(result: AppendResult) -> None:
            if result.error_code == RequestTimedOut.code and self._may_have_successor(target):
                # The replicas may follow it. 0.8.2.2 sends 7, and a member stays here.
                error = NotLeaderForPartition(f"another broker may lead {target}: {result.error}")
                result = replace(result, error=Refusal.of(error))
            done(result)

        self._appender.append_internal(
            target,
            records,
            codec=self._codec,
            required_acks=self._config.offsets_commit_required_acks,
            timeout_ms=self._config.offsets_commit_timeout_ms,
            done=appended,
        )

    def _key(self, key: OffsetKey) -> bytes:
        return encode_key(key, int(self._level >= Level.V0_9_0))

    # Groups

    def append_group(
        self, partition: int, name: str, record: StoredGroup, done: Callable[[int], object]
    ) -> None:
        """Append a group's record to its partition like a commit; `done` is called with the code
        for a SyncGroup, maybe before this returns."""

        def acknowledged(result: AppendResult) -> None:
            code = result.error_code
            done(code if code == NO_ERROR else code_of_group_record(code, self._level))

        value = encode_group(record, self._group_record_version)
        self._append(_target(partition), [(_group_key(name), value)], acknowledged)

    def append_group_tombstones(self, partition: int, names: Iterable[str]) -> None:
        """Delete the records of groups, with acks 1. A lost tombstone does no harm: the next leader
        removes the group again. One set of all could be too large if it is compressed: it is one
        message then."""
        target = _target(partition)

        def appended(result: AppendResult) -> None:
            if result.error is not None:
                logger.error(
                    "Failed to delete groups from %s: %s. The next leader deletes them",
                    target,
                    result.error,
                )

        keys = map(_group_key, names)
        while some := list(islice(keys, KEYS_PER_TURN)):
            self._append_tombstones_to(target, some, appended)

    def has_offsets(self, partition: int, name: str) -> bool:
        """Whether a group has offsets, or a commit in progress."""
        return self._cache.has_group(partition, name)

    def is_loaded(self, partition: int) -> bool:
        """Whether its groups may be used: False also while the leadership is being moved away."""
        of_topic = self._replica_manager.by_topic_name.get(TOPIC_NAME)
        found = None if of_topic is None else of_topic.get(partition)
        return (
            found is not None
            and found.is_leader
            and partition in self._cache.loaded
            and not self._is_cut_off(found)
        )

    def state(self, partition: int) -> LoadState:
        """ABSENT also while the leadership is being moved away, or this broker is cut off."""
        found = self._replica_manager.find(_target(partition))
        leads = found is not None and found.is_leader and not self._is_cut_off(found)
        return self._cache.state(partition) if leads else LoadState.ABSENT

    def _is_cut_off(self, partition: Partition) -> bool:
        """Whether, in the safe profile, this broker may have a successor, and an in-sync replica is
        silent, which may be that one. No record can be stored meanwhile: the HW waits for it."""
        change = partition.isr_change
        return (
            change is not None
            and self._config.is_safe
            and len(change.isr) < len(partition.isr)
            and self._may_have_successor(partition.topic_partition)
        )

    @property
    def is_loading(self) -> bool:
        """Whether any partition is being loaded."""
        return bool(self._cache.loading)

    # Fetches

    def partitions_of_group(self, name: str) -> list[TopicPartition]:
        """The partitions for which a group has an offset."""
        found = self._cache.of_group(self.partition_for(name), name)
        return [key.topic_partition for key in found]

    def count_of_group(self, name: str) -> int:
        """How many offsets a group has, at most."""
        return self._cache.count_of_group(self.partition_for(name), name)

    def fetch(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, FetchedOffset]:
        """The offsets of a group: all with 16 if another broker leads its partition, all with 14
        while it is being loaded."""
        number = self.partition_for(group)
        state = self.state(number)
        if state is LoadState.ABSENT:
            refusal = FetchedOffset(error_code=NotCoordinatorForConsumer.code)
            return dict.fromkeys(partitions, refusal)
        if state is LoadState.LOADING:
            return dict.fromkeys(partitions, FetchedOffset(error_code=OffsetsLoadInProgress.code))
        return {tp: self._cached(number, OffsetKey(group, *tp)) for tp in partitions}

    def _cached(self, number: int, key: OffsetKey) -> FetchedOffset:
        value = self._cache.get(number, key)
        if value is None:
            return FetchedOffset()
        return FetchedOffset(value.committed.offset, value.committed.metadata)

    # Called by ReplicaManager at leadership changes

    def on_leadership(self, partition: int) -> None:
        """Load the log of this partition, unless that is done or in progress."""
        self._loader.begin(partition)

    def on_follower(self, partition: int) -> None:
        """Another broker coordinates these groups now: drop them."""
        dropped = self._cache.drop(partition)
        self._deleted.pop(partition, None)
        logger.info("Dropped %d offsets of [%s,%d]", dropped, OFFSETS_TOPIC, partition)
        if self.groups is not None:
            self.groups.unload_groups(partition)

    # Expiry

    def expire(self) -> None:
        """Remove expired offsets: append tombstones with acks 1, then remove them from the cache.
        After a failed append they stay until the next run. Switches between turns."""
        now_ms = self._runtime.time_ms()
        for number in sorted(self._cache.loaded):
            self._forget_deleted(number)
            for keys in yielding_batches(self._cache.keys(number), self._runtime, KEYS_PER_TURN):
                expired = self._cache.expired(number, keys, now_ms, self._retention_ms)
                if expired:
                    self._append_tombstones(number, expired)
            if self.groups is not None:
                self.groups.expire_groups(number)

    def forget_partitions(self, deleted: Collection[TopicPartition]) -> None:
        """Delete every group's offsets of deleted partitions, also those whose commit waits for the
        ISR: another topic of the name would begin at them. Those of a partition that is being
        loaded, or that may have another leader, are deleted later. Switches between turns."""
        gone = frozenset(deleted)
        for number in self._cache.loading:
            self._forget_later(number, gone)
        for number in sorted(self._cache.loaded):
            known = dict.fromkeys(self._cache.keys(number) + self._cache.pending(number))
            for keys in yielding_batches(list(known), self._runtime, KEYS_PER_TURN):
                found = [key for key in keys if key.topic_partition in gone]
                if found and self.state(number) is LoadState.LOADED:
                    self._append_tombstones(number, found)
                elif found:
                    self._forget_later(number, gone)
            if self.groups is not None:
                self.groups.expire_groups(number)

    def _forget_later(self, number: int, deleted: Iterable[TopicPartition]) -> None:
        """Delete the offsets of deleted partitions that the log of this one has now. Does nothing
        if another broker leads it."""
        found = self._replica_manager.find(_target(number))
        if found is not None and found.is_leader and found.log is not None:
            ends = dict.fromkeys(deleted, found.log.log_end_offset)
            self._deleted.setdefault(number, {}).update(ends)

    def _forget_deleted(self, number: int) -> None:
        """Do what `_forget_later` has left. Offsets that were committed since then are of another
        topic of the name. Switches between turns."""
        if number not in self._deleted or self.state(number) is not LoadState.LOADED:
            return
        ends = self._deleted.pop(number)
        for keys in yielding_batches(self._cache.keys(number), self._runtime, KEYS_PER_TURN):
            found = self._cache.older(number, keys, ends)
            if found:
                self._append_tombstones(number, found)
        if self.groups is not None:
            self.groups.expire_groups(number)

    def _append_tombstones(self, number: int, keys: list[OffsetKey]) -> None:
        target = _target(number)

        def appended(result: AppendResult) -> None:
            if result.error is not None:
                logger.error(
                    "Failed to mark %d stale offsets for deletion in %s: %s",
                    len(keys),
                    target,
                    result.error,
                )
                return
            for log_offset, key in enumerate(keys, result.base_offset):
                self._cache.apply(number, log_offset, key, None)
            logger.info("Removed %d stale offsets from %s", len(keys), target)

        self._append_tombstones_to(target, [self._key(key) for key in keys], appended)

    def _append_tombstones_to(
        self,
        target: TopicPartition,
        keys: Iterable[bytes],
        done: Callable[[AppendResult], object],
    ) -> None:
        self._appender.append_internal(
            target,
            [(key, None) for key in keys],
            codec=self._codec,
            required_acks=1,
            timeout_ms=self._config.offsets_commit_timeout_ms,
            done=done,
        )


def append_offsets(
    producer: Producer, records: Messages, now_ms: int, log: Log, leader_epoch: int
) -> AppendInfo:
    """UnsupportedForMessageFormat; InvalidProducerEpoch for a producer that was fenced."""
    if not log.config.stores_records:
        raise UnsupportedForMessageFormat(f"{log.name} cannot have transactions")
    log.records.producers.check_epoch(*producer)
    made = transactional_batch(records, *producer, log.log_end_offset, leader_epoch, now_ms)
    return log.append_prepared(*made, flush=False)


def java_length(text: str | None) -> int:
    """The length in Java: UTF-16 units; 0 for null."""
    return 0 if text is None else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _as_long(value: int) -> int:
    """The sum of two longs as Java has it: times that a client chose may overflow."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


@lru_cache(maxsize=1024)
def _target(partition: int) -> TopicPartition:
    return TopicPartition(OFFSETS_TOPIC, partition)


@lru_cache(maxsize=4096)
def _group_key(name: str) -> bytes:
    return encode_key(GroupKey(name))
