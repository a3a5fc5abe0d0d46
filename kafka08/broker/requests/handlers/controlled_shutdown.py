"""ControlledShutdown: a stopping broker asks this one, as controller, to move its leaders.

Returns 0 and the partitions with several replicas that the broker still leads; it is done when
there are none. Any failure (not the controller, unknown broker) is -1 without partitions, before
0.10. A request whose sender has closed the connection, as the end of its process does, moves
nothing: the broker may run again meanwhile, as another process.
Source: kafka.server.KafkaApis, kafka.controller.KafkaController 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import NO_ERROR, UnknownError
from kafka08.protocol.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from kafka08.protocol.types import Response


def handle(broker: BrokerContext, request: ControlledShutdownRequest, call: Call) -> NoResponse:
    def shut_down() -> Response:
        remaining = sorted(
            broker.controller.controlled_shutdown(request.broker_id, call.is_abandoned)
        )
        return ControlledShutdownResponse(NO_ERROR, [RemainingPartition(*tp) for tp in remaining])

    return call.run_in_greenlet(f"ControlledShutdown of broker {request.broker_id}", shut_down)


def refuse_by_code(request: ControlledShutdownRequest, code: int) -> Response:
    """Code 8 for an unknown broker, 11 if this one is not the controller, as from 0.9 on."""
    return ControlledShutdownResponse(code, [])


def refuse(request: ControlledShutdownRequest, code: int) -> Response:
    # 0.8: the code is looked up for the cause of the error, which never has one.
    return ControlledShutdownResponse(UnknownError.code, [])
