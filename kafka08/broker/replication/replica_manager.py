"""ReplicaManager: all partitions of this broker, and the requests that concern them.

    become_leader_or_follower(...)  LeaderAndIsrRequest of the controller
    stop_replicas(...)              StopReplicaRequest
    update_metadata(...)            UpdateMetadataRequest

Requests of a controller with an old epoch are refused. Leadership changes of `__consumer_offsets`
are passed to the listeners added by `listen`. Source:
kafka.server.ReplicaManager 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Protocol, TypeVar

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.purgatory.purgatories import Purgatories
from kafka08.broker.replica import replica_state
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replica.traffic import Traffic, traffic_of
from kafka08.broker.replication.high_watermark_checkpoints import HighWatermarkCheckpoints
from kafka08.broker.replication.isr_change_notifications import IsrChangeNotifications
from kafka08.broker.replication.isr_changes import IsrChanges, without
from kafka08.broker.replication.leader_and_isr_codes import LEADER_AND_ISR_CODES
from kafka08.broker.replication.log_creator import LogCreator
from kafka08.broker.replication.refused_states import RefusedStates
from kafka08.broker.replication.replica_fetcher_manager import Followers
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import (
    Closed,
    FileRefused,
    InvalidTopic,
    ReplicaNotAvailable,
    StaleControllerEpoch,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.levels import Level
from kafka08.log.manager import LogManager
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionStateInfo,
)
from kafka08.protocol.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.timer import Timer
from kafka08.runtime.yielding import yielding_batches
from kafka08.structs import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    Broker,
    LeaderAndIsr,
    TopicPartition,
)
from kafka08.topic_name import fault_of

if TYPE_CHECKING:
    from kafka08.zk.store import ClusterStore

T = TypeVar("T")
AnyState = LeaderAndIsr | PartitionStateInfo
"""A partition's state as ZooKeeper has it, or as a request does."""

logger = logging.getLogger(__name__)
state_change_log = logging.getLogger("state.change.logger")


class LeadershipListener(Protocol):
    """Called at leadership changes of one topic's partitions on this broker, after the change, in
    the greenlet of the controller's request; must not switch."""

    def on_leadership(self, partition: int) -> None:
        """This broker has become the leader of the partition, in a new epoch."""

    def on_follower(self, partition: int) -> None:
        """This broker is no longer the leader: it follows, or has lost the partition."""


class ReplicaManager:
    """All partitions of one broker.

    controller_epoch   the highest seen in a controller's request, or in ZooKeeper by
                       `refuse_former_controllers`; 0 at first
    purgatories        delayed fetches and produces by partition
    by_topic_name      the partitions that have a log, by topic in bytes and number
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: BrokerRuntime,
        *,
        log_manager: LogManager,
        store: ClusterStore,
        metadata_cache: MetadataCache,
        timer: Timer,
        followers: Followers,
    ) -> None:
        self.broker_id = config.broker_id
        self.controller_epoch = 0
        self.log_manager = log_manager
        self.purgatories = Purgatories(runtime, timer)
        self._config = config
        self._runtime = runtime
        self._store = store
        self._log_creator = LogCreator(self.broker_id, runtime, log_manager, store)
        self._metadata_cache = metadata_cache
        self._followers = followers
        self.isr_change_notifications = (
            IsrChangeNotifications(runtime, store) if config.level >= Level.V0_9_0 else None
        )
        notifications = self.isr_change_notifications
        on_changed = None if notifications is None else notifications.record
        self._isr_changes = IsrChanges(
            runtime, store, self.purgatories.wake, self.on_leader_announced, on_changed
        )
        self._codes = LEADER_AND_ISR_CODES[config.level]
        self._partitions: dict[TopicPartition, Partition] = {}
        self.by_topic_name: dict[bytes, dict[int, Partition]] = {}
        self._listeners: dict[str, LeadershipListener] = {}
        self._state_change_lock = runtime.rlock()
        self._state_changes = 0
        """LeaderAndIsr requests that are being carried out, or wait for their turn."""
        self._led_elsewhere: dict[TopicPartition, AnyState] = {}
        """Partitions of other leaders, as this broker has heard meanwhile."""
        self._refused = RefusedStates(self.broker_id)
        self._deleted_until = 0
        """`Partition.led_until` of a partition that is deleted here and then comes back."""
        self._stopping = False
        self._checkpoints = HighWatermarkCheckpoints(runtime, log_manager)
        self.former_traffic = Traffic()
        """The counts of deleted partitions."""
        self.may_checkpoint = False
        """True after the first LeaderAndIsr: before it, the checkpoint has more than this
        object."""

    def load_high_watermarks(self) -> None:
        """Read the checkpoint files, creating missing ones; called before the first request.
        Switches."""
        self._checkpoints.load()

    def listen(self, topic: str, listener: LeadershipListener) -> None:
        """Call `listener` at leadership changes of that topic from now on."""
        self._listeners[topic] = listener

    # Partitions

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def find(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition, or None if this broker does not have it."""
        return self._partitions.get(topic_partition)

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """The partition; UnknownTopicOrPartition if this broker does not have it."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            raise UnknownTopicOrPartition(
                f"Partition {topic_partition} doesn't exist on {self.broker_id}"
            )
        return partition

    def leader_partition(self, topic_partition: TopicPartition) -> Partition:
        """The partition if this broker leads it; UnknownTopicOrPartition or NotLeaderForPartition
        otherwise."""
        partition = self.partition(topic_partition)
        partition.leader_log()
        return partition

    def hosted_partition(self, topic_partition: TopicPartition) -> Partition:
        """The partition with its local log, led or not; ReplicaNotAvailable if there is none."""
        partition = self._partitions.get(topic_partition)
        if partition is None or partition.log is None:
            raise ReplicaNotAvailable(
                f"Replica {self.broker_id} is not available for partition {topic_partition}"
            )
        return partition

    def committed(self, topic_partition: TopicPartition) -> int:
        """Its HW, below which it is never truncated; 0 before the first LeaderAndIsr for it."""
        partition = self._partitions.get(topic_partition)
        return 0 if partition is None else partition.high_watermark

    def committed_on_disk(self, topic_partition: TopicPartition) -> int:
        """As `committed`, and not above the HW that it will have after a crash."""
        stored = self._checkpoints.stored.get(topic_partition, 0)
        return min(stored, self.committed(topic_partition))

    @property
    def isr_changes(self) -> tuple[int, int]:
        """The numbers of ISR shrinks and expansions that this broker has begun."""
        return self._isr_changes.shrinks, self._isr_changes.expansions

    def record_follower_fetches(
        self,
        partitions: list[Partition],
        offsets: list[int],
        broker_id: int,
        log_starts: list[int] | None = None,
    ) -> bool:
        """Record a follower's fetch offsets: it has everything before them, from `log_starts` on.
        It must be a replica of all these partitions. All HWs are moved before any operation is
        completed. True if a delayed produce was."""
        moved, raised, outside = replica_state.record_fetches(
            partitions, offsets, broker_id, self._runtime.monotonic(), log_starts
        )
        for partition in outside:
            if partition.joins_isr(broker_id):
                self._isr_changes.begin(partition, (*partition.isr, broker_id))
        self.purgatories.wake_deletions(partitions)
        return self.purgatories.follower_fetched(moved, raised)

    def shrink_isrs(self) -> None:
        """Start to remove stuck or slow followers from the ISRs. Switches."""
        for turn in yielding_batches(list(self._partitions.values()), self._runtime):
            for partition in turn:
                self._shrink_isr(partition)

    def _shrink_isr(self, partition: Partition) -> None:
        config = self._config
        out_of_sync_replicas = partition.out_of_sync_replicas(
            self._runtime.monotonic(),
            config.replica_lag_time_max_ms / 1000,
            config.replica_lag_max_messages,
        )
        if out_of_sync_replicas:
            self._isr_changes.begin(partition, without(partition.isr, out_of_sync_replicas))

    # Requests of the controller

    def refuse_former_controllers(self) -> None:
        """Refuse from now on the requests of controllers that have a successor in ZooKeeper: one
        that was suspended, or cut off, may still send what it had decided. Switches. Raises
        ZooKeeperError."""
        # 0.8: a broker knows only the epochs of the requests it got, so one that has just started
        # obeys any controller.
        self._store.catch_up(again=True)
        found = self._store.controller_epoch()
        if found is not None:
            self.controller_epoch = max(self.controller_epoch, found[0])

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Apply a LeaderAndIsr request: new leaders first, then followers. Switches (it reads topic
        configurations and creates logs), so one such request runs at a time."""
        with self._changing():
            if self._is_stale(request.controller_epoch, request.controller_id, "LeaderAndIsr"):
                return LeaderAndIsrResponse(StaleControllerEpoch.code, [])
            leaders = (Broker(b.broker_id, b.host, b.port) for b in request.leaders)
            errors = self._change_states(request.partition_states, leaders)
            self.may_checkpoint = True
            return LeaderAndIsrResponse(
                0, [PartitionError(tp.topic, tp.partition, code) for tp, code in errors.items()]
            )

    def retry_refused(self) -> None:
        """Apply the states again for which the system refused a file. Switches."""
        with suppress(Closed), self._changing():
            states = [state for state in self._refused if self._is_newest(state)]
            if states:
                leaders = self._metadata_cache.live_brokers(self._config.inter_broker_listener)
                self._change_states(states, leaders)

    def _is_newest(self, state: PartitionStateInfo) -> bool:
        """Whether the metadata names no later leader epoch: a broker that is no longer a replica
        may never get the request of that epoch."""
        topic_partition = TopicPartition(state.topic, state.partition)
        known = self._metadata_cache.partition_state(topic_partition)
        if known is None or known.leader_epoch <= state.leader_epoch:
            return True
        self._refused.forget(topic_partition)
        return False

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The turn of a change of states, one after the other."""
        self._state_changes += 1
        try:
            with self._state_change_lock:
                yield
        finally:
            self._state_changes -= 1
            if not self._state_changes:
                # No LeaderAndIsr request is left that could be older than these.
                self._led_elsewhere.clear()

    def _change_states(
        self, wanted: Sequence[PartitionStateInfo], live: Iterable[Broker]
    ) -> dict[TopicPartition, int]:
        """Apply states, with the addresses of the leaders among these brokers. Returns the error
        codes of partitions."""
        errors: dict[TopicPartition, int] = {}
        legal = [
            state
            for states in self._turns(wanted)
            for state in states
            if self._may_have_log(state, errors)
        ]
        refused = self._ensure_logs(legal)
        errors |= dict.fromkeys(refused, UnknownError.code)
        accepted = [
            (self._partitions[tp], state)
            for states in self._turns(legal)
            for state in states
            if (tp := TopicPartition(state.topic, state.partition)) not in refused
            and self._accepts(tp, state, errors)
        ]
        for turn in self._turns([item for item in accepted if item[1].leader == self.broker_id]):
            self._lead(turn, refused)
        leaders = {broker.id: broker for broker in live}
        for turn in self._turns([item for item in accepted if item[1].leader != self.broker_id]):
            self._follow(turn, leaders)
        self._followers.end_idle()
        for state in legal:
            self._refused.tried(state, refused.get(TopicPartition(state.topic, state.partition)))
        return errors | dict.fromkeys(refused, UnknownError.code)

    def _may_have_log(self, state: PartitionStateInfo, errors: dict[TopicPartition, int]) -> bool:
        """Whether a partition has a name that its directory may have. Anybody can send this
        request, and the next start would fail at the directory."""
        fault = fault_of(state.topic)
        if fault is None and state.partition >= 0:
            return True
        topic_partition = TopicPartition(state.topic, state.partition)
        state_change_log.error(
            "Broker %d ignoring LeaderAndIsr request for partition %r: %s",
            self.broker_id,
            tuple(topic_partition),
            fault or "a negative number",
        )
        errors[topic_partition] = InvalidTopic.code
        return False

    def _turns(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        """`yielding_batches`; Closed if the broker stops meanwhile: it must not lead again then."""
        for turn in yielding_batches(items, self._runtime):
            if self._stopping:
                raise Closed(f"broker {self.broker_id} is stopping and changes no partitions")
            yield turn

    def _is_stale(self, controller_epoch: int, controller_id: int, what: str) -> bool:
        """Whether a controller is outdated; a newer one is recorded."""
        if controller_epoch < self.controller_epoch:
            state_change_log.warning(
                "Broker %d received %s request from an old controller %d with epoch %d. Latest "
                "known controller epoch is %d",
                self.broker_id,
                what,
                controller_id,
                controller_epoch,
                self.controller_epoch,
            )
            return True
        self.controller_epoch = controller_epoch
        return False

    def _ensure_logs(
        self, states: Sequence[PartitionStateInfo]
    ) -> dict[TopicPartition, FileRefused]:
        """Ensure that every accepted state has a partition with a log. Returns those for which the
        system refuses a file: they keep their former epochs, so that a later request is accepted.
        Switches."""
        refused: dict[TopicPartition, FileRefused] = {}
        wanted = [
            partition
            for turn in self._turns(states)
            for partition in map(self._known, turn)
            if partition is not None
        ]
        self._log_creator.configure(
            sorted({partition.topic_partition.topic for partition in wanted})
        )
        for partition in chain.from_iterable(self._turns(wanted)):
            topic_partition = partition.topic_partition
            try:
                created = self._log_creator.get_or_create(topic_partition)
            except FileRefused as error:
                # 0.8: it halts. A client that names a topic must not end a broker.
                refused[topic_partition] = error
                continue
            partition.attach_log(created, self._checkpoints.high_watermark(created))
            of_topic = self.by_topic_name.setdefault(topic_partition.topic.encode(), {})
            of_topic[topic_partition.partition] = partition
        return refused

    def _known(self, state: PartitionStateInfo) -> Partition | None:
        """Ensure that the partition exists; returns it if it needs a log."""
        topic_partition = TopicPartition(state.topic, state.partition)
        known = self._partitions.get(topic_partition)
        if known is None:
            known = Partition(topic_partition, self.broker_id, self._config.least_in_sync)
            if state.leader_epoch:
                # In leader epoch 0 the partition is new: no follower has messages of an earlier
                # leader.
                known.led_until = self._deleted_until
            self._partitions[topic_partition] = known
        return known if self.broker_id in state.replicas and known.log is None else None

    def _accepts(
        self,
        topic_partition: TopicPartition,
        state: PartitionStateInfo,
        errors: dict[TopicPartition, int],
    ) -> bool:
        """Whether to apply a state; its error code, if it has one, goes into `errors`."""
        partition = self._partitions[topic_partition]
        if state.leader_epoch <= partition.leader_epoch:
            state_change_log.warning(
                "Broker %d ignoring LeaderAndIsr request for partition %s since its associated "
                "leader epoch %d is old. Current leader epoch is %d",
                self.broker_id,
                topic_partition,
                state.leader_epoch,
                partition.leader_epoch,
            )
            errors[topic_partition] = self._codes.stale
            return False
        if self.broker_id not in state.replicas:
            state_change_log.warning(
                "Broker %d ignoring LeaderAndIsr request for partition %s as itself is not in "
                "assigned replica list %s",
                self.broker_id,
                topic_partition,
                ",".join(map(str, state.replicas)),
            )
            if self._codes.no_replica is not None:
                errors[topic_partition] = self._codes.no_replica
            return False
        errors[topic_partition] = 0
        return True

    def _lead(
        self,
        states: Sequence[tuple[Partition, PartitionStateInfo]],
        refused: dict[TopicPartition, FileRefused],
    ) -> None:
        # Nothing of the former leader is appended once this broker numbers messages itself.
        self._followers.stop_following({partition.topic_partition for partition, _ in states})
        now = self._runtime.monotonic()
        for partition, state in states:
            try:
                partition.make_leader(state.leader_and_isr, state.replicas, now)
            except FileRefused as error:
                # The epoch is not adopted, so the same state is accepted later.
                refused[partition.topic_partition] = error
                continue
            state_change_log.info("Broker %d leads %s", self.broker_id, partition)
            self.purgatories.wake(partition.topic_partition)
            # The positions of followers are reset and come with their next fetch: request it now.
            self.purgatories.follower_fetches.expire(partition.topic_partition)
            listener = self._listeners.get(state.topic)
            if listener is not None:
                listener.on_leadership(state.partition)
            # Announced while this request waited or was carried out: see `update_metadata`.
            newer = self._led_elsewhere.get(partition.topic_partition)
            if newer is not None:
                self._end_leadership(partition.topic_partition, newer)

    def _follow(
        self, states: Sequence[tuple[Partition, PartitionStateInfo]], leaders: Mapping[int, Broker]
    ) -> None:
        """Follow new leaders. Never switches: messages from the old leader must not be appended to
        a partition that follows the new one."""
        moved: list[tuple[Partition, Broker]] = []
        now = self._runtime.monotonic()
        for partition, state in states:
            if state.leader not in leaders:
                # 0.8: the epoch is not adopted, so the controller's next state is accepted.
                state_change_log.error(
                    "Broker %d cannot become follower of %s since the new leader %d is unavailable",
                    self.broker_id,
                    partition.topic_partition,
                    state.leader,
                )
                continue
            led, leader = partition.is_leader, leaders[state.leader]
            changed = partition.make_follower(state.leader_and_isr, state.replicas, now)
            # A leader that moved to another host leads again, without another one in between, if it
            # was alone in the ISR. 0.8.2.2 goes on at the former address, until it is restarted.
            if changed or not self._followers.follows(partition.topic_partition, leader):
                moved.append((partition, leader))
            state_change_log.info("Broker %d follows in %s", self.broker_id, partition)
            self.purgatories.wake(partition.topic_partition)
            listener = self._listeners.get(state.topic)
            if listener is not None and led:
                listener.on_follower(state.partition)
        self._follow_at(moved)

    def _follow_at(self, moved: Collection[tuple[Partition, Broker]]) -> None:
        """Fetch each partition from this leader, at this address, and from no other one."""
        if moved:
            self._followers.stop_following({partition.topic_partition for partition, _ in moved})
            self._followers.follow(moved)

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Apply a StopReplica request: stop following, and with `delete_partitions` delete
        partitions with their directories. Switches, as become_leader_or_follower does."""
        with self._state_change_lock:
            if self._is_stale(request.controller_epoch, request.controller_id, "StopReplica"):
                return StopReplicaResponse(StaleControllerEpoch.code, [])
            stopped = [
                topic_partition
                for turn in yielding_batches(request.partitions, self._runtime)
                for item in turn
                if (topic_partition := TopicPartition(item.topic, item.partition))
                in self._partitions
                or self.log_manager.has_directory(topic_partition)
            ]
            self._followers.stop_following(set(stopped))
            codes: dict[TopicPartition, int] = {}
            for topic_partition in stopped:
                self._refused.forget(topic_partition)
                if request.delete_partitions:
                    try:
                        self._delete(topic_partition)
                    except FileRefused as error:
                        state_change_log.error(
                            "Broker %d cannot delete the directory of partition %s: %s. Remove it",
                            self.broker_id,
                            topic_partition,
                            error,
                        )
                        codes[topic_partition] = UnknownError.code
                    self._runtime.sleep(0)
                elif partition := self._partitions.get(topic_partition):
                    # A controller that dies now does not delete it. 0.8.2.2 then copies nothing
                    # when the partition comes back under the same leader.
                    partition.stop_following_leader()
            if self.log_manager.unsynced_deletions:
                # The controller forgets the topic: a log that a power failure brought back would be
                # a replica of the next topic of that name, as in 0.8.2.2.
                self._runtime.run_native(self.log_manager.sync_deletions)
        return StopReplicaResponse(
            0,
            [
                PartitionError(*tp, codes.get(tp, 0))
                for tp in (TopicPartition(one.topic, one.partition) for one in request.partitions)
            ],
        )

    def _delete(self, topic_partition: TopicPartition) -> None:
        """Delete the partition and its log; also a log without a partition (its topic was deleted
        while this broker was down)."""
        partition = self._partitions.pop(topic_partition, None)
        led = partition is not None and partition.is_leader
        self._checkpoints.stored.pop(topic_partition, None)
        if partition is not None:
            self.former_traffic = self.former_traffic.plus(traffic_of([partition]))
            self._deleted_until = next(NUMBERS)
            name = topic_partition.topic.encode()
            of_topic = self.by_topic_name.get(name, {})
            of_topic.pop(topic_partition.partition, None)
            if not of_topic:
                self.by_topic_name.pop(name, None)
            partition.is_leader = False  # tasks that still hold it must not append any more
        listener = self._listeners.get(topic_partition.topic)
        if led and listener is not None:
            listener.on_follower(topic_partition.partition)
        try:
            self.log_manager.delete(topic_partition)
        finally:
            self.purgatories.wake(topic_partition)

    def update_metadata(self, request: UpdateMetadataRequest) -> None:
        """Apply an UpdateMetadata request; StaleControllerEpoch if the controller is outdated.

        It also ends a leadership that another broker has taken over. The controller announces that
        with LeaderAndIsr or StopReplica, but if it dies before it has sent them, a broker that is
        no longer a replica gets neither: 0.8.2.2 then accepts messages for ever, and loses them.
        That is so, too, if the leadership is that of a LeaderAndIsr request which is still being
        carried out, or waits for another one: 0.8.2.2 does one after the other."""
        if self._is_stale(request.controller_epoch, request.controller_id, "UpdateMetadata"):
            raise StaleControllerEpoch(
                f"UpdateMetadata of controller {request.controller_id} with controller epoch "
                f"{request.controller_epoch}"
            )
        self._metadata_cache.update(request)
        for state in request.partition_states:
            self.on_leader_announced(TopicPartition(state.topic, state.partition), state)
        self.purgatories.wake_deletions(self)  # they wait for live replicas
        self._follow_moved_leaders()

    def _follow_moved_leaders(self) -> None:
        """Fetch from a leader's new address: one that was alone in the ISR and came back at another
        host leads in the same epoch, if no controller saw it dead. A LeaderAndIsr request with that
        epoch is refused. 0.8.2.2 goes on at the former address."""
        live = self._metadata_cache.live_brokers(self._config.inter_broker_listener)
        moved = [
            (partition, leader)
            for tp, leader in self._followers.moved({broker.id: broker for broker in live})
            if (partition := self._partitions.get(tp)) is not None and partition.leader == leader.id
        ]
        self._follow_at(moved)
        if moved:
            self._followers.end_idle()

    def on_leader_announced(self, topic_partition: TopicPartition, state: AnyState) -> None:
        """The controller has told other brokers, or ZooKeeper, who leads a partition: end the
        leadership of this broker if another one leads under a later epoch. Never switches."""
        if state.leader not in (NO_LEADER, LEADER_DURING_DELETE, self.broker_id):
            known = self._led_elsewhere.get(topic_partition)
            if self._state_changes and (known is None or known.leader_epoch < state.leader_epoch):
                self._led_elsewhere[topic_partition] = state
            self._end_leadership(topic_partition, state)

    def _end_leadership(self, topic_partition: TopicPartition, state: AnyState) -> None:
        """Stop leading a partition that `state`'s leader leads under a later epoch."""
        partition = self._partitions.get(topic_partition)
        if (
            partition is None
            or not partition.is_leader
            or state.leader_epoch <= partition.leader_epoch
        ):
            return
        state_change_log.warning(
            "Broker %d leads %s no more: broker %d does since leader epoch %d",
            self.broker_id,
            partition,
            state.leader,
            state.leader_epoch,
        )
        partition.end_leadership()
        self.purgatories.wake(topic_partition)
        listener = self._listeners.get(topic_partition.topic)
        if listener is not None:
            listener.on_follower(topic_partition.partition)

    # The end

    def shutdown(self) -> None:
        """Stop appending, since the logs are about to be closed: the append of a set that is still
        being compressed finds a follower. Then write the HWs. Switches."""
        self._stopping = True
        self._log_creator.stop()
        for partition in self:
            partition.is_leader = False
        self.checkpoint_high_watermarks()

    def checkpoint_high_watermarks(self) -> None:
        """Write the HW of every partition that has a log, one file per log directory. Switches."""
        if self.may_checkpoint:
            self._checkpoints.write(self)
