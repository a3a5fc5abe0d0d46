"""OffsetLoader: loads partitions of `__consumer_offsets` that this broker leads into the cache.

Offset records go to the OffsetCache, group records to a GroupListener. A partition's cache is valid
once its log was read from the start to the end that it had.

Source: kafka.server.OffsetManager 0.8.2.2, kafka.coordinator.GroupMetadataManager 0.9.0.1 and
0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from kafka08.broker.groups.offset_cache import OffsetCache
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.committed_log import committed_parts
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.config import LONG_MAX
from kafka08.errors import KafkaError, ProtocolError, StorageError
from kafka08.format.batch import NO_PRODUCER
from kafka08.kernel import CorruptMessage, MessageAndMetadata
from kafka08.kernel.types import Buffer
from kafka08.log.log import Log
from kafka08.log.producer_entries import producer_entries
from kafka08.log.producers import Marker, SequencedBatch
from kafka08.protocol.group_records import StoredGroup, decode_group
from kafka08.protocol.offset_records import GroupKey, decode_key, decode_offset_value
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.runtime.yielding import yielding_batches
from kafka08.structs import OFFSETS_TOPIC, TopicPartition

logger = logging.getLogger(__name__)

LOAD_RETRY_S: Final = 30.0
"""Pause before a partition with an unreadable log is loaded again."""


class GroupListener(Protocol):
    """Receives the groups of the partitions led here. None of these may switch."""

    def load_groups(self, partition: int, records: Mapping[str, StoredGroup | None]) -> None:
        """Some groups of a partition that is being loaded, by name; None for a group with an
        unreadable record."""

    def unload_groups(self, partition: int) -> None:
        """Another broker leads the partition now."""

    def expire_groups(self, partition: int) -> None:
        """Offsets of the partition have expired or were deleted."""


class _Transactions:
    """The batches and markers of producers in a part of a log. `end` is called with each marker, in
    order."""

    def __init__(
        self, entries: Iterator[SequencedBatch | Marker], end: Callable[[Marker], object]
    ) -> None:
        self._entries = entries
        self._end = end
        self._next = next(entries, None)

    def producer_at(self, offset: int) -> int:
        """The producer in whose transaction a message is; NO_PRODUCER if it is in none. Offsets
        must ascend."""
        while (entry := self._next) is not None:
            if isinstance(entry, Marker):
                if entry.offset > offset:
                    break
                self._end(entry)
            elif entry.base_offset > offset:
                break
            elif offset <= entry.last_offset:
                return entry.producer_id if entry.is_transactional else NO_PRODUCER
            self._next = next(self._entries, None)
        return NO_PRODUCER

    def finish(self) -> None:
        """The markers behind the last message."""
        self.producer_at(LONG_MAX)


class OffsetLoader:
    """The loads of one broker.

    buffer_bytes   read from a log at a time (offsets.load.buffer.size)
    has_transactions   whether the log may have offsets of transactions
    finished       called in the greenlet of a load with the partition that has been loaded
    groups         receives group records; None below level 0.9.0
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        replica_manager: ReplicaManager,
        cache: OffsetCache,
        buffer_bytes: int,
        finished: Callable[[int], object],
        *,
        has_transactions: bool = False,
    ) -> None:
        self.groups: GroupListener | None = None
        self._runtime = runtime
        self._replica_manager = replica_manager
        self._cache = cache
        self._buffer_bytes = buffer_bytes
        self._finished = finished
        self._has_transactions = has_transactions
        self._loads: dict[int, Greenlet] = {}
        self._closed = False

    def shutdown(self) -> None:
        """End all loads."""
        self._closed = True
        for load in self._loads.values():
            load.kill(block=False)
        self._loads.clear()

    def begin(self, partition: int) -> None:
        """Load the log of this partition, unless that is done or in progress."""
        generation = self._cache.begin_load(partition)
        if generation is not None:
            self._start(partition, generation)

    def _start(self, partition: int, generation: int) -> None:
        if self._closed or not self._cache.is_current(partition, generation):
            return
        self._loads[partition] = self._runtime.spawn(
            self._load, partition, generation, name=f"[{OFFSETS_TOPIC},{partition}] offsets load"
        )

    def _load(self, number: int, generation: int) -> None:
        """Read the partition's log into the cache.

        An unreadable record is skipped with an error; 0.8.2.2 gives up the partition there and then
        returns -1, so that its groups silently start over. If the log cannot be read, the partition
        stays in loading, so its groups wait and lose no offset, and is loaded again after
        LOAD_RETRY_S. A storage error halts the broker.
        """
        target = TopicPartition(OFFSETS_TOPIC, number)
        found = self._replica_manager.find(target)
        if found is None or found.log is None:
            logger.warning("No log found for %s", target)
            return
        started = self._runtime.monotonic()
        logger.info("Loading offsets from %s", target)
        groups: dict[str, bytes | None] = {}
        try:
            count = self._load_log(found, found.log, generation, groups)
            self._hand_over(number, generation, groups)
        except StorageError:
            raise
        except Exception as error:
            expected = isinstance(error, KafkaError | CorruptMessage)
            logger.error(
                "Error in loading offsets from %s: %s. Its groups wait until it can be read; check "
                "it with `kafka08 log check`. Trying again in %d s",
                target,
                error,
                LOAD_RETRY_S,
                exc_info=None if expected else error,
            )
            self._runtime.call_later(LOAD_RETRY_S, self._start, number, generation)
            return
        if self._cache.is_current(number, generation):
            self._cache.finish_load(number, generation)
            self._loads.pop(number, None)
            logger.info(
                "Finished loading %d records of offsets from %s in %d milliseconds.",
                count,
                target,
                (self._runtime.monotonic() - started) * 1000,
            )
            self._finished(number)

    def _load_log(
        self,
        partition: Partition,
        source: Log,
        generation: int,
        groups: dict[str, bytes | None],
    ) -> int:
        """Apply all records up to the current log end, and collect the last value of each group in
        `groups`. Returns their number; stops when another broker leads the partition."""
        number = partition.topic_partition.partition
        count = 0
        parts = committed_parts(
            partition,
            source,
            self._runtime,
            self._buffer_bytes,
            lambda: self._cache.is_current(number, generation),
        )
        for part in parts:
            transactions = self._transactions_in(number, part.data)
            for message in part.messages:
                self._load_record(number, message, groups, transactions.producer_at(message.offset))
                count += 1
            transactions.finish()
        return count

    def _transactions_in(self, number: int, data: Buffer) -> _Transactions:
        """Those of a part of the log. None below 0.11, where nothing can have them."""
        entries = producer_entries(data) if self._has_transactions else iter(())
        return _Transactions(
            entries,
            lambda marker: self._cache.end_transaction(
                number, marker.producer_id, commits=marker.commits
            ),
        )

    def _load_record(
        self,
        number: int,
        message: MessageAndMetadata[bytes, bytes],
        groups: dict[str, bytes | None],
        producer_id: int,
    ) -> None:
        try:
            if message.key is None:
                raise ProtocolError("offsets topic: a record without a key")
            key = decode_key(message.key)
            if isinstance(key, GroupKey):
                if self.groups is not None:
                    groups[key.group] = None if message.value is None else bytes(message.value)
                return
            value = None if message.value is None else decode_offset_value(message.value)
        except ProtocolError as error:
            logger.error(
                "[%s,%d] skipped offset %d: %s", OFFSETS_TOPIC, number, message.offset, error
            )
            return
        if producer_id == NO_PRODUCER or value is None:
            self._cache.apply(number, message.offset, key, value)
        else:
            self._cache.add_to_transaction(number, producer_id, message.offset, key, value)

    def _hand_over(self, number: int, generation: int, values: Mapping[str, bytes | None]) -> None:
        """Pass the groups of a loaded partition to the listener. Switches."""
        if self.groups is None:
            return
        names = [name for name, value in values.items() if value is not None]
        # Groups with offsets alone, or with an unreadable record: `load_groups` decides.
        names += [name for name in self._cache.groups_of(number) if values.get(name) is None]
        for turn in yielding_batches(names, self._runtime):
            if not self._cache.is_current(number, generation):
                return
            self.groups.load_groups(
                number, {name: self._decode_group(name, values.get(name)) for name in turn}
            )

    def _decode_group(self, name: str, value: bytes | None) -> StoredGroup | None:
        """None for an unreadable record: its members must join again."""
        if value is None:
            return None
        try:
            return decode_group(value)
        except ProtocolError as error:
            logger.error("skipped the record of group %s: %s", name, error)
            return None
