"""GroupCoordinator: the groups whose partition of `__consumer_offsets` this broker leads.

Every request is checked in this order first:

    15   the broker is starting or stopping
    24   JoinGroup without a name of the group, or with one that no response can have
    16   another broker leads the group's partition
    14   the partition is being loaded. A Heartbeat gets 0 then, a SyncGroup 16
    26   JoinGroup with a session timeout out of bounds
    23   JoinGroup with a protocol type that no response can have
    -1   JoinGroup with a client id that is too long for a member id
    24   OffsetCommit for a new group with a name that no record can have

Then `Group` decides. Groups come from requests and from the log: OffsetManager reports the start
and end of a leadership, and expired offsets. Nothing here switches.

0.9.0.1 and 0.10.2.2 return 16 also during the first load, since they own a partition only after it.
Source: kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kafka08.broker.groups.coordinated_group import CoordinatedGroup
from kafka08.broker.groups.group import Group
from kafka08.broker.groups.group_events import (
    NO_ASSIGNMENT,
    NO_MEMBER_ID,
    Actions,
    Join,
    JoinReply,
    JoinResult,
    SyncReply,
)
from kafka08.broker.groups.group_state import GroupState
from kafka08.broker.groups.offset_cache import LoadState
from kafka08.broker.groups.offset_manager import (
    CommitCodes,
    FetchedOffset,
    OffsetManager,
    Producer,
)
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailable,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    NotCoordinatorForConsumer,
    OffsetsLoadInProgress,
    UnknownError,
    UnknownMemberId,
)
from kafka08.format.batch import NO_PRODUCER
from kafka08.kernel.types import STRING_BYTES_MAX
from kafka08.levels import Level
from kafka08.protocol.group_records import StoredGroup
from kafka08.protocol.join_group import JoinGroupRequest
from kafka08.protocol.offset_commit import OffsetCommitRequest
from kafka08.protocol.sync_group import SyncGroupRequest
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.timer import Timer
from kafka08.structs import OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

LOADING: Final = OffsetsLoadInProgress.code
NOT_COORDINATOR: Final = NotCoordinatorForConsumer.code


class GroupCoordinator:
    """The groups of one broker. Every request gets its response as return value or through its
    reply, which may be called before the method returns.

    session_timeouts_ms   those that a member may ask for
    """

    def __init__(
        self, runtime: BrokerRuntime, config: BrokerConfig, timer: Timer, offsets: OffsetManager
    ) -> None:
        self._runtime = runtime
        self._timer = timer
        self._offsets = offsets
        self._level = config.level
        self._initial_delay_ms = config.group_initial_rebalance_delay_ms
        self.session_timeouts_ms: Final = range(
            config.group_min_session_timeout_ms, config.group_max_session_timeout_ms + 1
        )
        self._groups: dict[str, CoordinatedGroup] = {}
        self._by_partition: dict[int, dict[str, CoordinatedGroup]] = {}
        self._is_active = False

    def startup(self) -> None:
        """Listen for groups in the log. Call it before OffsetManager.startup."""
        self._offsets.groups = self
        self._is_active = True

    def shutdown(self) -> None:
        """Return 15 from now on. Safe if startup never ran."""
        self._is_active = False

    # Requests

    def join(
        self, request: JoinGroupRequest, client_id: str, client_host: str, reply: JoinReply
    ) -> None:
        """JoinGroup. A new member gets the id `<client id>-<random UUID>`."""
        name, member_id = request.group, request.member_id
        error_code = self._refuse_join(request)
        new_member_id = ""
        if not error_code and member_id == NO_MEMBER_ID:
            new_member_id = f"{client_id}-{self._random_uuid()}"
            if not fits(new_member_id):
                error_code = UnknownError.code
        found = self._groups.get(name)
        is_new = found is None
        if not error_code and found is None:
            if member_id != NO_MEMBER_ID:
                error_code = UnknownMemberId.code
            else:
                found = self._new_group(name)
        if error_code or found is None:
            reply(JoinResult(member_id, error_code=error_code))
            return
        join = Join(
            member_id,
            new_member_id,
            client_id,
            client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            tuple([(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols]),
            reply,
        )
        found.join(join)
        if is_new and found.group.state is GroupState.EMPTY:
            self._forget_unused(found)

    def _refuse_join(self, request: JoinGroupRequest) -> int:
        if not self._is_active:
            return ConsumerCoordinatorNotAvailable.code
        if not request.group or not fits(request.group):
            return InvalidGroupId.code
        error_code = self._refuse(request.group)
        if error_code:
            return error_code
        if request.session_timeout_ms not in self.session_timeouts_ms:
            return InvalidSessionTimeout.code
        if not fits(request.protocol_type):
            return InconsistentGroupProtocol.code
        return NO_ERROR

    def abandon_join(self, name: str, reply: JoinReply) -> None:
        """The client of a new member's parked join is gone; see Group.abandon_join."""
        found = self._groups.get(name)
        if found is not None:
            found.abandon_join(reply)

    def sync(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """SyncGroup."""
        error_code = self._refuse(request.group)
        # 16, as in the original, which owns a partition only after its load.
        if error_code == LOADING:
            error_code = NOT_COORDINATOR
        found = self._groups.get(request.group)
        if error_code or found is None:
            reply(NO_ASSIGNMENT, error_code or UnknownMemberId.code)
            return
        assignments = {item.member_id: bytes(item.assignment) for item in request.assignments}
        found.sync(request.member_id, request.generation, assignments, reply)

    def heartbeat(self, name: str, member_id: str, generation: int) -> int:
        """Heartbeat: the error code."""
        error_code = self._refuse(name)
        if error_code:
            # The member is probably in the log: an error would make it join again.
            return NO_ERROR if error_code == LOADING else error_code
        found = self._groups.get(name)
        if found is None:
            return UnknownMemberId.code
        return found.heartbeat(member_id, generation)

    def leave(self, name: str, member_id: str) -> int:
        """LeaveGroup: the error code, whatever the result of the rebalance."""
        error_code = self._refuse(name)
        if error_code:
            return error_code
        found = self._groups.get(name)
        if found is None:
            return UnknownMemberId.code
        return found.leave(member_id)

    def commit(
        self,
        request: OffsetCommitRequest,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Callable[[CommitCodes], object],
    ) -> None:
        """OffsetCommit of version 1 or 2; `done` is called with a code for each of `offsets`."""
        error_code = self._refuse(request.group) or self._refuse_commit(request)
        if error_code:
            done(dict.fromkeys(offsets, error_code))
        else:
            self._offsets.commit(request.group, offsets, done, request.retention_ms)

    def commit_in_transaction(
        self,
        name: str,
        producer: Producer,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Callable[[CommitCodes], object],
    ) -> None:
        """TxnOffsetCommit; `done` is called with a code for each of `offsets`. Members are not
        checked. 15 instead of 14, which ends a producer of 0.11 (KAFKA-7296)."""
        error_code = self._refuse(name)
        if error_code == LOADING:
            error_code = ConsumerCoordinatorNotAvailable.code
        elif not error_code and name not in self._groups:
            if fits(name):
                self._new_group(name)
            else:
                error_code = InvalidGroupId.code
        if error_code:
            done(dict.fromkeys(offsets, error_code))
            return
        is_plain = producer.id == NO_PRODUCER
        self._offsets.commit(name, offsets, done, producer=None if is_plain else producer)

    def _refuse_commit(self, request: OffsetCommitRequest) -> int:
        found = self._groups.get(request.group)
        if found is not None:
            return found.check_commit(request.member or NO_MEMBER_ID, request.generation)
        if request.generation >= 0:
            return IllegalGeneration.code
        if not fits(request.group):
            return InvalidGroupId.code
        if self._level >= Level.V0_10_2:
            self._new_group(request.group)
        return NO_ERROR

    def fetch(
        self, name: str, partitions: Iterable[TopicPartition]
    ) -> tuple[int, dict[TopicPartition, FetchedOffset]]:
        """OffsetFetch from version 1 on: the error code of the group and, without one, the offsets
        of `partitions`. Does not check members."""
        error_code = self._refuse(name)
        if error_code:
            return error_code, {}
        return NO_ERROR, self._offsets.fetch(name, partitions)

    def find(self, name: str) -> tuple[int, Group | None]:
        """For DescribeGroups: the error code, or the group, if there is one."""
        error_code = self._refuse(name)
        found = None if error_code else self._groups.get(name)
        return error_code, None if found is None else found.group

    def all_groups(self) -> tuple[int, list[Group]]:
        """For ListGroups: the error code, and the known groups in any case."""
        if not self._is_active:
            return ConsumerCoordinatorNotAvailable.code, []
        error_code = LOADING if self._offsets.is_loading else NO_ERROR
        return error_code, [found.group for found in self._groups.values()]

    def loaded(self, name: str) -> CoordinatedGroup | None:
        """The group, if it is known and may be used now."""
        found = self._groups.get(name)
        if found is None or not self._is_active or not self._offsets.is_loaded(found.partition):
            return None
        return found

    def _refuse(self, name: str) -> int:
        """15, 16 or 14 if the group must not be used now; else 0."""
        if not self._is_active:
            return ConsumerCoordinatorNotAvailable.code
        found = self._groups.get(name)
        # A known group has its partition: no hash of the name for each heartbeat.
        partition = self._offsets.partition_for(name) if found is None else found.partition
        state = self._offsets.state(partition)
        if state is LoadState.LOADED:
            return NO_ERROR
        return LOADING if state is LoadState.LOADING else NOT_COORDINATOR

    def _random_uuid(self) -> str:
        """A UUID of version 4."""
        text = f"{self._runtime.random.getrandbits(128):032x}"
        variant = "89ab"[int(text[16], 16) & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    # Called by OffsetManager

    def load_groups(self, partition: int, records: Mapping[str, StoredGroup | None]) -> None:
        """Some groups of a partition that is being loaded. From 0.10.2 on offsets alone are a
        group. A record with a text that no response can have, which other brokers and clients may
        write, counts as unreadable: its members join again."""
        for name, record in records.items():
            if name in self._groups:
                continue
            if not fits(name):
                logger.error("Group %.100s of the log is left out: no response can name it", name)
                continue
            if record is not None and not all(map(fits, texts_of(record))):
                logger.error("skipped the record of group %s: a text is too long", name)
                record = None
            if record is not None and (record.members or self._level >= Level.V0_10_2):
                group, actions = Group.loaded(
                    name,
                    self._level,
                    record,
                    self._runtime.monotonic() * 1000,
                    self._initial_delay_ms,
                )
                logger.info(
                    "Loading group metadata for %s with generation %d", name, group.generation
                )
                self._add(group, partition, actions)
            elif self._level >= Level.V0_10_2 and self._offsets.has_offsets(partition, name):
                self._add(Group(name, self._level, self._initial_delay_ms), partition)

    def unload_groups(self, partition: int) -> None:
        """Another broker now coordinates the groups of a partition: parked requests get 16."""
        unloaded = self._by_partition.pop(partition, {})
        # All go first: a reply may bring the next request, for another one of them.
        for name in unloaded:
            del self._groups[name]
        for name, found in unloaded.items():
            logger.info(
                "Unloading group metadata for %s with generation %d", name, found.group.generation
            )
            found.perform(found.group.unload())

    def expire_groups(self, partition: int) -> None:
        """Remove groups without members and offsets. 0.9 has none: there a group ends with its last
        member. Only a group with a generation has a record to delete."""
        dead = [
            found
            for name, found in self._by_partition.get(partition, {}).items()
            if found.group.expire(self._offsets.has_offsets(partition, name))
        ]
        for found in dead:
            self._forget(found)
        stored = [found.group.name for found in dead if found.group.generation > 0]
        if stored:
            self._offsets.append_group_tombstones(partition, stored)

    def forget_partitions(self, deleted: Iterable[TopicPartition]) -> None:
        """Deletes offsets of partitions of deleted topics, as from 0.10.2 on."""
        gone = list(deleted)
        if gone and self._level >= Level.V0_10_2:
            self._runtime.spawn(
                self._offsets.forget_partitions, gone, name="offsets of deleted topics"
            )

    # Inside

    def _new_group(self, name: str) -> CoordinatedGroup:
        group = Group(name, self._level, self._initial_delay_ms)
        return self._add(group, self._offsets.partition_for(name))

    def _add(
        self, group: Group, partition: int, actions: Actions | None = None
    ) -> CoordinatedGroup:
        found = CoordinatedGroup(
            group,
            partition,
            runtime=self._runtime,
            timer=self._timer,
            append=self._offsets.append_group,
            remove=self._remove,
        )
        self._groups[group.name] = found
        self._by_partition.setdefault(partition, {})[group.name] = found
        found.perform(actions or [])
        return found

    def _remove(self, found: CoordinatedGroup) -> None:
        self._forget(found)
        self._offsets.append_group_tombstones(found.partition, [found.group.name])

    def _forget(self, found: CoordinatedGroup) -> None:
        name = found.group.name
        # Not a newer group of that name.
        if self._groups.get(name) is found:
            del self._groups[name]
            del self._by_partition[found.partition][name]

    def _forget_unused(self, found: CoordinatedGroup) -> None:
        """Remove a group whose first join was refused. From 0.10.2 on offsets alone are a group."""
        has_offsets = self._offsets.has_offsets(found.partition, found.group.name)
        if not has_offsets or self._level < Level.V0_10_2:
            self._forget(found)


def texts_of(record: StoredGroup) -> Iterator[str]:
    """Every text of a group's record that a response repeats."""
    yield from (record.protocol_type, record.protocol or "", record.leader or "")
    for member in record.members:
        yield from (member.member_id, member.client_id, member.client_host)


def fits(name: str) -> bool:
    """Whether a response and a record can have the name of a request. Each byte that is no UTF-8
    was read as U+FFFD, which takes three; one such group would make every ListGroups fail."""
    return len(name) <= STRING_BYTES_MAX // 3 or len(name.encode()) <= STRING_BYTES_MAX
