"""The cluster of tests/client/fake_cluster on real sockets, for a sender that waits for sockets.

    with TcpCluster({"t": {0: 1, 1: 2}}) as cluster:
        KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.servers))

Faults: `pause` and `resume` a broker, `cut` its next Produce response after some bytes, and those
of FakeCluster (`refuse`, `leaders`, `down`). Brokers that are asked for their versions answer as
those of their level do."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Mapping

from kafka08.errors import (
    NO_ERROR,
    MessageSizeTooLarge,
    ProtocolError,
    UnsupportedForMessageFormat,
)
from kafka08.format import batches
from kafka08.levels import Level
from kafka08.lifecycle import Closeable
from kafka08.protocol import codec, message_set
from kafka08.protocol.api_versions import ApiVersionsRequest
from kafka08.protocol.frame import FrameReader
from kafka08.protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.metadata import BrokerEndpoint, MetadataRequest, MetadataResponse
from kafka08.protocol.produce import ProducePartition, ProducePartitionResponse, ProduceRequest
from kafka08.protocol.served import SERVED, Served, UnknownApi, api_versions
from kafka08.protocol.types import Request, Response
from kafka08.structs import NO_OFFSET, TopicPartition
from tests.client.fake_cluster import FakeCluster
from tests.network.scripted import Hangup

PAUSE_S_MAX = 30
OF_0_11 = Served(Level.V0_11_0)


class TcpCluster(FakeCluster, Closeable):
    """`asked` has every request with the broker that got it. `opened` counts connections."""

    def __init__(
        self, topics: Mapping[str, Mapping[int, int]], brokers: tuple[int, ...] = (1, 2)
    ) -> None:
        super().__init__(topics, brokers)
        self.asked: list[tuple[int, Request]] = []
        self.opened = 0
        self.served = 0
        """The number of connections that are open."""
        self.levels = dict.fromkeys(brokers, Level.V0_8_2)
        self.unborn = 0
        """The number of next connections that a proxy closes at once, as while a broker starts."""
        self.is_later = False
        """Brokers are of 0.11, and take one batch of records in each set."""
        self.log_append_time_ms = -1
        """The time that brokers of 0.10.2 set in messages."""
        self.cuts: deque[int] = deque()
        self.response_sizes: set[int] = set()
        self.guilty = b""
        """A value that no broker takes: MessageSizeTooLarge for every set with it."""
        self.largest = 0
        """Bytes of the largest set that brokers take, MessageSizeTooLarge for others; 0: any."""
        self.stores_ids = True
        """Whether topics have a format with producers: UnsupportedForMessageFormat otherwise."""
        self._lock = threading.Lock()
        self._running = {broker: threading.Event() for broker in brokers}
        self._listeners = {broker: socket.create_server(("127.0.0.1", 0)) for broker in brokers}
        self._ports = {b: sock.getsockname()[1] for b, sock in self._listeners.items()}
        self._connections: dict[int, list[socket.socket]] = {broker: [] for broker in brokers}
        for broker, listener in self._listeners.items():
            self._running[broker].set()
            threading.Thread(target=self._accept, args=(broker, listener), daemon=True).start()

    @property
    def servers(self) -> str:
        """bootstrap.servers"""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def produced(self) -> list[ProduceRequest]:
        """The Produce requests that arrived, in order."""
        return [request for _, request in self.asked if isinstance(request, ProduceRequest)]

    def messages(self, tp: TopicPartition) -> list[tuple[bytes | None, bytes | None]]:
        """The messages stored so far; a broker may be storing more."""
        with self._lock:
            log = bytes(self.logs.get(tp, b""))
        return [(message.key, message.value) for message in message_set.decode(log)]

    def pause(self, broker: int) -> None:
        """The broker accepts requests and does not handle them until `resume`."""
        self._running[broker].clear()

    def resume(self, broker: int) -> None:
        self._running[broker].set()

    def cut(self, *sizes: int) -> None:
        """Closes the connection after the given number of bytes of each of the next Produce
        responses, after the messages were stored. A negative number closes it before."""
        self.cuts.extend(sizes)

    def hang_up(self, broker: int) -> None:
        """Closes its connections."""
        for sock in self._connections[broker]:
            hang_up(sock)

    def down(self, broker_id: int) -> None:
        with self._lock:
            self.brokers.remove(broker_id)
        self._listeners[broker_id].close()
        for sock in self._connections[broker_id]:
            hang_up(sock)

    def close(self) -> None:
        for broker, listener in self._listeners.items():
            self._running[broker].set()
            listener.close()
            for sock in self._connections[broker]:
                hang_up(sock)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        response = super()._metadata(request)
        response.brokers = [BrokerEndpoint(b, "127.0.0.1", self._ports[b]) for b in self.brokers]
        return response

    def _append(
        self, broker_id: int, topic: str, part: ProducePartition
    ) -> ProducePartitionResponse:
        is_large = 0 < self.largest < len(part.message_set)
        if is_large or (self.guilty and self.guilty in bytes(part.message_set)):
            return ProducePartitionResponse(part.partition, MessageSizeTooLarge.code, NO_OFFSET)
        if not self.stores_ids and any(b.producer_id >= 0 for b in batches(part.message_set)):
            code = UnsupportedForMessageFormat.code
            return ProducePartitionResponse(part.partition, code, NO_OFFSET)
        response = super()._append(broker_id, topic, part)
        response.log_append_time_ms = self.log_append_time_ms
        return response

    def _accept(self, broker: int, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                sock, _ = listener.accept()
                self.opened += 1
                if self.unborn:
                    self.unborn -= 1
                    sock.close()
                    continue
                self._connections[broker].append(sock)
                with self._lock:
                    self.served += 1
                threading.Thread(target=self._serve, args=(broker, sock), daemon=True).start()

    def _serve(self, broker: int, sock: socket.socket) -> None:
        try:
            self._serve_all(broker, sock)
        finally:
            with self._lock:
                self.served -= 1

    def _serve_all(self, broker: int, sock: socket.socket) -> None:
        reader = FrameReader(64 << 20)
        with sock, contextlib.suppress(OSError, Hangup, ProtocolError):
            while data := sock.recv(1 << 20):
                for payload in reader.feed(data):
                    assert self._running[broker].wait(PAUSE_S_MAX)
                    self._handle(broker, sock, payload)

    def _handle(self, broker: int, sock: socket.socket, payload: bytearray) -> None:
        served = OF_0_11 if self.is_later else SERVED[self.levels[broker]]
        try:
            header, request = codec.decode_request(payload, served)
        except UnknownApi:
            if served.closes_on_unsupported:
                raise
            return
        with self._lock:
            self.asked.append((broker, request))
            is_cut = bool(self.cuts) and isinstance(request, ProduceRequest)
            size = self.cuts.popleft() if is_cut else 0
            if is_cut and size < 0:
                raise Hangup
            response: Response | None
            if isinstance(request, ApiVersionsRequest):
                response = api_versions(served, request.version)
            elif isinstance(request, ListGroupsRequest):
                response = ListGroupsResponse(NO_ERROR, [])
            else:
                response = self.respond(broker, request)
        if response is None:
            return
        data = codec.encode_response(response, header.correlation_id, request.version)
        if isinstance(request, ProduceRequest):
            self.response_sizes.add(len(data))
        sock.sendall(data[:size] if is_cut else data)
        if is_cut:
            raise Hangup


def hang_up(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it was closed by its own thread
        sock.shutdown(socket.SHUT_RDWR)
