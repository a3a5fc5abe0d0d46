"""ScriptedBroker: a broker that registers, records a controller's requests, and answers them with
success.

    with ScriptedBroker(2, zk_connect) as broker:
        broker.register()
        requests = broker.wait_for(2)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka08.protocol.codec import RequestHeader, decode_request, encode_response
from kafka08.protocol.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
)
from kafka08.protocol.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafka08.protocol.types import Request, Response
from kafka08.protocol.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kafka08.structs import Broker
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.network.frame_server import FrameServer

DEADLINE_S = 20.0
QUIET_S = 0.3


class Received(NamedTuple):
    header: RequestHeader
    request: Any


class ScriptedBroker(FrameServer):
    """Listens on a free port from the start; is in ZooKeeper only while registered."""

    def __init__(self, broker_id: int, zk_connect: str) -> None:
        self.id = broker_id
        self.received: list[Received] = []
        self.answer: Callable[[Any], Response] = agree
        self.silent = threading.Event()
        """While set, connections are closed without a response."""
        self._zk_connect = zk_connect
        self._session: ZkClient | None = None
        self._arrived = threading.Condition()
        super().__init__()

    @property
    def address(self) -> Broker:
        return Broker(self.id, "127.0.0.1", self.port)

    def close(self) -> None:
        self.leave()
        super().close()

    def register(self) -> None:
        """Creates its znode in /brokers/ids, in a session of its own."""
        self._session = ZkClient(self._zk_connect, name=f"scripted broker {self.id}")
        self._session.start()
        ClusterStore(self._session).register_broker(
            self.address, timestamp_ms=time.time_ns() // 1_000_000
        )

    def leave(self) -> None:
        """Removes its znode from /brokers/ids."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def take(self) -> list[Received]:
        """The requests since the last call, once no more arrive for a while."""
        deadline = time.monotonic() + DEADLINE_S
        with self._arrived:
            while self._arrived.wait(QUIET_S) and time.monotonic() < deadline:
                continue
            received, self.received = self.received, []
            return received

    def wait_for(self, kind: type[Request], count: int = 1) -> list[Received]:
        """Waits until `count` requests of a kind arrived, and returns all."""
        deadline = time.monotonic() + DEADLINE_S
        with self._arrived:
            while sum(isinstance(r.request, kind) for r in self.received) < count:
                assert self._arrived.wait(max(0.0, deadline - time.monotonic())), (
                    f"broker {self.id} waited for {count} {kind.__name__}, got {self.received}"
                )
        return self.take()

    def respond(self, payload: bytes) -> bytes | None:
        if self.silent.is_set():
            return None
        header, request = decode_request(payload)
        with self._arrived:
            self.received.append(Received(header, request))
            self._arrived.notify_all()
        return encode_response(self.answer(request), header.correlation_id, request.version)


def agree(request: Any) -> Response:
    """The response of a broker that has executed the request."""
    if isinstance(request, LeaderAndIsrRequest):
        return LeaderAndIsrResponse(
            0, [PartitionError(s.topic, s.partition, 0) for s in request.partition_states]
        )
    if isinstance(request, StopReplicaRequest):
        return StopReplicaResponse(
            0, [PartitionError(p.topic, p.partition, 0) for p in request.partitions]
        )
    assert isinstance(request, UpdateMetadataRequest), f"what is {request}?"
    return UpdateMetadataResponse(0)
