"""Raw load over sockets: prepared frames out, counted bytes in, so the broker is what is timed."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Sequence

from kafka08.protocol import codec, message_set
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic

CLIENT_ID = "bench"
RECEIVE_BYTES = 1 << 20
LAST_RESPONSES_S = 60
ENTRY_OVERHEAD = 26
"""Bytes of an entry beside its value: offset, size, crc, magic, attributes, two lengths."""
RESPONSE_S = 600
"""The longest wait for a response: a JVM broker that gets 10,000 partitions takes more than a
minute."""


def connect(address: str) -> socket.socket:
    """A blocking connection to `host:port`."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=RESPONSE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def exchange(connection: socket.socket, frame: bytes) -> bytes:
    """Send one request and return its whole response, size included."""
    connection.sendall(frame)
    return receive(connection)


def receive(connection: socket.socket) -> bytes:
    """The next whole response, size included; it must be the only one on its way."""
    response = bytearray()
    while len(response) < 4 or len(response) < 4 + struct.unpack_from(">i", response)[0]:
        received = connection.recv(RECEIVE_BYTES)
        if not received:
            raise ConnectionError("the broker closed the connection")
        response += received
    return bytes(response)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """The next bytes; ConnectionError if the broker closes the connection before."""
    data = bytearray()  # MSG_WAITALL does not wait on a socket with a timeout
    while len(data) < size:
        received = connection.recv(size - len(data))
        if not received:
            raise ConnectionError("the broker closed the connection")
        data += received
    return bytes(data)


def plain_set(value_size: int, set_size: int) -> bytes:
    """A message set of about `set_size` bytes, of messages of `value_size` bytes each."""
    count = max(1, set_size // (value_size + ENTRY_OVERHEAD))
    words = b"the quick brown fox jumps over the lazy dog 0123456789 "
    text = words * (value_size // len(words) + 3)
    return message_set.encode(
        [(None, text[n % len(words) : n % len(words) + value_size]) for n in range(count)]
    )


def compressed_set(value_size: int, set_size: int, codec_id: int) -> bytes:
    """As plain_set, wrapped; `set_size` is that of the messages inside."""
    count = max(1, set_size // (value_size + ENTRY_OVERHEAD))
    values = [b"%08d " % (n * 2654435761 % 10**8) * (value_size // 9 + 1) for n in range(count)]
    return message_set.encode([(None, value[:value_size]) for value in values], codec=codec_id)


def produce_frame(topic: str, partition: int, data: bytes, acks: int = 1) -> bytes:
    request = ProduceRequest(
        acks, 10_000, [ProduceTopic(topic, [ProducePartition(partition, data)])]
    )
    return codec.encode_request(request, 1, CLIENT_ID)


def fetch_frame(
    topic: str, partition: int, offset: int, max_bytes: int, max_wait_ms: int = 0
) -> bytes:
    request = FetchRequest(
        -1, max_wait_ms, 1, [FetchTopic(topic, [FetchPartition(partition, offset, max_bytes)])]
    )
    return codec.encode_request(request, 1, CLIENT_ID)


def wide_produce_frame(topic: str, sets: Sequence[tuple[int, bytes]], acks: int = 1) -> bytes:
    """One request for many (partition, set)."""
    partitions = [ProducePartition(number, data) for number, data in sets]
    request = ProduceRequest(acks, 10_000, [ProduceTopic(topic, partitions)])
    return codec.encode_request(request, 1, CLIENT_ID)


def wide_fetch_frame(topic: str, partitions: int, offset: int) -> bytes:
    """One request for what all partitions of a topic have from `offset` on, without a wait."""
    wanted = [FetchPartition(number, offset, 1 << 20) for number in range(partitions)]
    return codec.encode_request(FetchRequest(-1, 0, 1, [FetchTopic(topic, wanted)]), 1, CLIENT_ID)


def check_response(request: type[ProduceRequest | FetchRequest], response_frame: bytes) -> None:
    """Raise unless every partition of the response is without error."""
    _, response = codec.decode_response(request, memoryview(response_frame)[4:])
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise AssertionError(f"the broker answered {partition}")


def fetched_bytes(response_frame: bytes) -> int:
    """Bytes of messages in the response to a fetch of one partition."""
    _, response = codec.decode_response(FetchRequest, memoryview(response_frame)[4:])
    [[partition]] = [topic.partitions for topic in response.topics]
    assert not partition.error_code, f"the broker answered {partition}"
    return len(partition.message_set)


class Stream:
    """One connection that sends the same frames round and round, `window` requests ahead. May be
    opened again."""

    def __init__(
        self, address: str, frames: Sequence[bytes], response_size: int, window: int
    ) -> None:
        self._address = address
        self._frames = frames
        self._response_size = response_size
        self._window = window
        self._buffer = bytearray(RECEIVE_BYTES)

    def open(self) -> None:
        """Connect, and begin to count."""
        self.connection = connect(self._address)
        self.connection.setblocking(False)
        self.answered = 0
        self.is_ending = False
        """Whether no more requests are sent."""
        self._sent = 0
        self._received = 0
        self._pending = memoryview(b"")

    @property
    def is_done(self) -> bool:
        """Whether it is ending and has all responses."""
        return self.is_ending and self.answered == self._sent

    def write(self) -> bool:
        """Send what the window allows; False when there is nothing to send."""
        while True:
            if not self._pending:
                ahead = self._sent - self.answered
                if ahead >= self._window or self.is_ending:
                    return False
                count = min(self._window - ahead, 64)
                first = self._sent
                batch = [self._frames[(first + n) % len(self._frames)] for n in range(count)]
                self._pending = memoryview(b"".join(batch) if count > 1 else batch[0])
                self._sent += count
            try:
                self._pending = self._pending[self.connection.send(self._pending) :]
            except BlockingIOError:
                return True

    def read(self) -> None:
        """Count responses until the socket is empty."""
        while True:
            try:
                received = self.connection.recv_into(self._buffer)
            except BlockingIOError:
                return
            if not received:
                raise ConnectionError("the broker closed the connection")
            self._received += received
            self.answered = self._received // self._response_size
            if received < len(self._buffer):
                return


def drive(streams: Sequence[Stream], seconds: float) -> tuple[int, float]:
    """(requests answered, seconds) of all streams going at full speed for about `seconds`, until
    the last request is answered."""
    selector = selectors.DefaultSelector()
    both = selectors.EVENT_READ | selectors.EVENT_WRITE
    for stream in streams:
        stream.open()
        selector.register(stream.connection, both, stream)
    started = time.perf_counter()
    end = started + seconds
    while not all(stream.is_done for stream in streams):
        now = time.perf_counter()
        if now > end + LAST_RESPONSES_S:
            raise AssertionError("requests without a response, or responses of several sizes")
        if now >= end:
            for stream in streams:
                stream.is_ending = True
        for key, events in selector.select(0.1):
            ready: Stream = key.data
            if events & selectors.EVENT_READ:
                ready.read()
            wanted = both if ready.write() else selectors.EVENT_READ
            if key.events != wanted:
                selector.modify(ready.connection, wanted, ready)
    answered = sum(stream.answered for stream in streams)
    elapsed = time.perf_counter() - started
    for stream in streams:
        stream.connection.close()
    selector.close()
    return answered, elapsed


def round_trips(address: str, frame: bytes, count: int) -> list[float]:
    """Seconds of `count` exchanges, one in flight, sorted."""
    times = []
    with connect(address) as connection:
        for _ in range(count):
            started = time.perf_counter()
            exchange(connection, frame)
            times.append(time.perf_counter() - started)
    return sorted(times)


def long_polls(
    address: str, topic: str, partition: int, offset: int, count: int
) -> tuple[list[float], int]:
    """Seconds from sending a message to a parked fetch's response, sorted; and the next offset."""
    times = []
    message = produce_frame(topic, partition, plain_set(100, 1))
    with connect(address) as consumer, connect(address) as producer:
        for _ in range(count):
            consumer.sendall(fetch_frame(topic, partition, offset, 1 << 20, max_wait_ms=10_000))
            time.sleep(0.001)  # the fetch must be parked before the message goes out
            started = time.perf_counter()
            producer.sendall(message)
            receive(consumer)
            times.append(time.perf_counter() - started)
            receive(producer)
            offset += 1
    return sorted(times), offset
