"""Requests of a former controller, read no further than its epoch.

They are refused whatever they contain, and may be of any size: anybody can send 100 MB of
partitions, which take seconds to decode.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from kafka08.protocol.codec import REQUEST_HEADER, RequestHeader, decode_header
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest
from kafka08.protocol.served import Served
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.types import Request
from kafka08.protocol.update_metadata import UpdateMetadataRequest

CONTROLLER: Final = struct.Struct(">ii")
"""The id and the epoch of the controller, with which each request begins."""
EMPTY: Final[dict[int, Callable[[int, int], Request]]] = {
    4: lambda controller, epoch: LeaderAndIsrRequest(controller, epoch, [], []),
    5: lambda controller, epoch: StopReplicaRequest(controller, epoch, 0, []),
    6: lambda controller, epoch: UpdateMetadataRequest(controller, epoch, [], []),
}
"""API key → a request without partitions."""


def decode_former(
    payload: memoryview, served: Served, controller_epoch: int
) -> tuple[RequestHeader, Request] | None:
    """Header and request, without its partitions, of a controller with an epoch below that one.
    None for any other request, and one that is too short or not served."""
    try:
        key, version, _, length = REQUEST_HEADER.unpack_from(payload)
        controller, epoch = CONTROLLER.unpack_from(payload, REQUEST_HEADER.size + max(0, length))
    except struct.error:
        return None
    if epoch >= controller_epoch or (key, version) not in served.rows:
        return None
    request = EMPTY[key](controller, epoch)
    request.version = version
    return decode_header(payload), request
