"""RequestBatch: collects the requests to brokers after one change, and orders them. Pure.

Each broker gets, in this order, with one correlation id:

    1. LeaderAndIsr    one request with every changed partition that it hosts
    2. UpdateMetadata  one request with every changed partition, to all live brokers
    3. StopReplica     one request with every partition that only stops, and one for each whose log
                       is deleted, because that may take time; with an empty client id

Partitions of topics that are being deleted go into UpdateMetadata with LEADER_DURING_DELETE and
into every such request, as in 0.8.2.2. Source: kafka.controller.ControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.replica_state import PartitionReplica
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.stop_replica import (
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from kafka08.protocol.types import Request
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.runtime.yielding import InTurns
from kafka08.structs import LEADER_DURING_DELETE, Broker, LeaderAndIsr, TopicPartition

StopReplicaCallback = Callable[[PartitionReplica, StopReplicaResponse], object]


@dataclass(frozen=True, slots=True)
class BrokerRequest:
    """A request, the id of its broker, and the callback for the response (StopReplica only).

    named   the request carries the controller's client id; StopReplica carries ""
    """

    broker_id: int
    request: Request
    named: bool = True
    replica: PartitionReplica | None = None
    on_stopped: StopReplicaCallback | None = None


class RequestBatch:
    """The requests of one change, gathered with `add_…` and returned by `requests()`.

    The content is taken from the context when `requests()` is called. Only LeaderAndIsr is fixed
    when it is added, because it may carry another replica list than the assignment.
    """

    def __init__(self, context: ControllerContext, controller_id: int) -> None:
        self._context = context
        self._controller_id = controller_id
        self._leader_and_isr: dict[int, dict[TopicPartition, PartitionStateInfo]] = {}
        self._metadata_to_all: set[TopicPartition] = set()
        self._tell_all = False
        self._metadata_to_some: dict[int, set[TopicPartition]] = {}
        self._stop_replica: list[tuple[PartitionReplica, bool, StopReplicaCallback | None]] = []

    def add_leader_and_isr(
        self, brokers: Iterable[int], tp: TopicPartition, replicas: Sequence[int]
    ) -> None:
        """Send the known state of `tp` and its `replicas` to `brokers`, and to every live broker in
        UpdateMetadata."""
        state = partition_message(tp, self._context.leadership[tp], replicas)
        for broker in brokers:
            self._leader_and_isr.setdefault(broker, {})[tp] = state
        self._metadata_to_all.add(tp)

    def add_update_metadata(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        brokers: Iterable[int] | None = None,
    ) -> None:
        """Send the state of `partitions` (None: all) to `brokers` (None: all). A partition that
        never had a leader is left out. A broker without any partition gets no request unless
        `propagation.always`: 0.8.2.2 sends nothing to a cluster without topics."""
        wanted = self._context.leadership.keys() if partitions is None else partitions
        if brokers is None:
            self._metadata_to_all.update(wanted)
            self._tell_all = self._context.propagation.always
        else:
            for broker in brokers:
                self._metadata_to_some.setdefault(broker, set()).update(wanted)

    def add_stop_replica(
        self,
        replica: PartitionReplica,
        *,
        delete: bool,
        on_stopped: StopReplicaCallback | None = None,
    ) -> None:
        """Have the broker of `replica` stop following; with `delete`, delete its log."""
        self._stop_replica.append((replica, delete, on_stopped))

    def requests(self, in_turns: InTurns = iter) -> list[BrokerRequest]:
        """All requests in sending order; empty if nothing was added. `in_turns` goes through the
        partitions meanwhile."""
        return [
            *self._leader_and_isr_requests(),
            *self._metadata_requests(in_turns),
            *self._stop_requests(in_turns),
        ]

    def _leader_and_isr_requests(self) -> Iterator[BrokerRequest]:
        brokers = self._context.brokers
        for broker, states in sorted(self._leader_and_isr.items()):
            # Only live ones: a broker does not follow a leader that is not listed here.
            leaders = sorted({s.leader for s in states.values()} & brokers.keys())
            request = LeaderAndIsrRequest(
                controller_id=self._controller_id,
                controller_epoch=self._context.epoch,
                partition_states=list(states.values()),
                leaders=[endpoint(brokers[leader]) for leader in leaders],
            )
            yield BrokerRequest(broker, request)

    def _metadata_requests(self, in_turns: InTurns) -> Iterator[BrokerRequest]:
        """One request object serves all brokers with the same content."""
        to_all = frozenset(self._metadata_to_all)
        to_everybody = to_all or self._tell_all
        recipients = self._context.brokers.keys() if to_everybody else self._metadata_to_some.keys()
        made: dict[frozenset[TopicPartition], UpdateMetadataRequest] = {}
        for broker in sorted(recipients):
            wanted = to_all.union(self._metadata_to_some.get(broker, ()))
            if wanted not in made:
                made[wanted] = self._metadata_request(wanted, in_turns)
            if made[wanted].partition_states or self._context.propagation.always:
                yield BrokerRequest(broker, made[wanted])

    def _metadata_request(
        self, partitions: Iterable[TopicPartition], in_turns: InTurns
    ) -> UpdateMetadataRequest:
        context = self._context
        deleted = (
            context.partitions_of(context.topics_to_delete) if context.topics_to_delete else []
        )
        told = sorted(tp for tp in {*partitions, *deleted} if tp in context.leadership)
        return UpdateMetadataRequest(
            controller_id=self._controller_id,
            controller_epoch=context.epoch,
            partition_states=[self._metadata_of(tp) for tp in in_turns(told)],
            live_brokers=context.live_brokers(),
            version=context.propagation.update_metadata,
        )

    def _metadata_of(self, tp: TopicPartition) -> PartitionStateInfo:
        state = self._context.leadership[tp]
        if self._context.is_queued_for_deletion(tp.topic):
            # 0.8: epoch and version of the deletion marker are 0, whatever they were.
            state = replace(state, leader=LEADER_DURING_DELETE, leader_epoch=0, zk_version=0)
        return partition_message(tp, state, self._context.assignments[tp])

    def _stop_requests(self, in_turns: InTurns) -> Iterator[BrokerRequest]:
        stopping: dict[int, list[PartitionReplica]] = {}
        for replica, delete, on_stopped in in_turns(self._stop_replica):
            if delete:
                request = self._stop_request([replica], delete=True)
                yield BrokerRequest(replica.replica, request, False, replica, on_stopped)
            else:
                stopping.setdefault(replica.replica, []).append(replica)
        for broker, replicas in stopping.items():
            yield BrokerRequest(broker, self._stop_request(replicas, delete=False), False)

    def _stop_request(
        self, replicas: Iterable[PartitionReplica], *, delete: bool
    ) -> StopReplicaRequest:
        return StopReplicaRequest(
            controller_id=self._controller_id,
            controller_epoch=self._context.epoch,
            delete_partitions=int(delete),
            partitions=[StopReplicaPartition(r.topic, r.partition) for r in replicas],
        )


def partition_message(
    tp: TopicPartition, state: LeaderAndIsr, replicas: Sequence[int]
) -> PartitionStateInfo:
    """A partition as in LeaderAndIsr and UpdateMetadata."""
    return PartitionStateInfo(
        topic=tp.topic,
        partition=tp.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.zk_version,
        replicas=list(replicas),
    )


def endpoint(broker: Broker) -> BrokerEndpoint:
    return BrokerEndpoint(broker.id, broker.host, broker.port)
