"""StopReplica: the controller removes partitions from this broker.

11 without partitions for an old controller, else 0 for each, whether it existed or not. Runs in a
greenlet, because it removes directories. Source: KafkaApis.handleStopReplicaRequest 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.leader_and_isr import PartitionError
from kafka08.protocol.stop_replica import StopReplicaRequest, StopReplicaResponse


def handle(broker: BrokerContext, request: StopReplicaRequest, call: Call) -> NoResponse:
    call.check_controller(request.controller_epoch)
    return call.run_in_greenlet(
        "StopReplica", lambda: broker.replica_manager.stop_replicas(request)
    )


def refuse(request: StopReplicaRequest, code: int) -> StopReplicaResponse:
    return StopReplicaResponse(
        code, [PartitionError(item.topic, item.partition, code) for item in request.partitions]
    )
