"""LeaderAndIsr: the controller sends this broker the partitions to lead and to follow.

11 without partitions for an old controller; per partition 13 for an old leader epoch, no entry if
this broker is not a replica of it. Runs in a greenlet, one at a time, because it reads
configurations from ZooKeeper and creates logs. Source: KafkaApis.handleLeaderAndIsrRequest 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
)


def handle(broker: BrokerContext, request: LeaderAndIsrRequest, call: Call) -> NoResponse:
    call.check_controller(request.controller_epoch)

    def become_leader_or_follower() -> LeaderAndIsrResponse:
        with broker.unconfirmed_leaderships.hearing(request.partition_states, call.connection):
            return broker.replica_manager.become_leader_or_follower(request)

    return call.run_in_greenlet("LeaderAndIsr", become_leader_or_follower)


def refuse(request: LeaderAndIsrRequest, code: int) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(
        code,
        [PartitionError(state.topic, state.partition, code) for state in request.partition_states],
    )
