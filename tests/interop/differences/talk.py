"""Talk: sends the requests of one sequence to one broker, and writes a transcript.

Two transcripts are equal if the brokers behave alike. What a broker chooses at random or knows of
itself alone is masked: ids of members, its port, the cluster id, present times.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from struct import pack, unpack, unpack_from
from typing import Any, Final, Self

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol import compression
from kafka08.protocol.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafka08.protocol.alter_configs import AlterConfigsRequest
from kafka08.protocol.codec import decode_response, encode_response
from kafka08.protocol.controlled_shutdown import ControlledShutdownRequest
from kafka08.protocol.create_topics import CreateTopicsRequest
from kafka08.protocol.delete_topics import DeleteTopicsRequest
from kafka08.protocol.describe_configs import DescribeConfigsRequest
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.join_group import JoinGroupRequest
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest
from kafka08.protocol.list_groups import ListGroupsRequest
from kafka08.protocol.metadata import MetadataRequest, PartitionMetadata
from kafka08.protocol.offset_commit import OffsetCommitRequest
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.served import SERVED
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.txn_offset_commit import TxnOffsetCommitRequest
from kafka08.protocol.types import Request
from kafka08.protocol.write_txn_markers import WriteTxnMarkersRequest
from tests.interop.differences.frames import request

SENTINEL_ID = 0x5E47
SENTINEL = request(3, 0, pack(">i", 1) + pack(">h1s", 1, b"t"), correlation_id=SENTINEL_ID)
"""Sent after a request without a response: if this one is answered, the connection is usable."""
PATIENCE_S = 1.5
"""How long a request may take before the sentinel follows it. A later response still counts."""
TIMEOUT_S = 20.0
MUTE_S = 20.0
UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(rb"(?=(\x00\x00\x01[\x80-\xff].{4}))", re.DOTALL)
HOUR_MS = 3_600_000
UNORDERED: Final[dict[int, type[Request]]] = {
    0: ProduceRequest,
    2: OffsetsRequest,
    3: MetadataRequest,
    4: LeaderAndIsrRequest,
    5: StopReplicaRequest,
    7: ControlledShutdownRequest,
    8: OffsetCommitRequest,
    9: OffsetFetchRequest,
    11: JoinGroupRequest,
    16: ListGroupsRequest,
    19: CreateTopicsRequest,
    20: DeleteTopicsRequest,
    24: AddPartitionsToTxnRequest,
    27: WriteTxnMarkersRequest,
    28: TxnOffsetCommitRequest,
    32: DescribeConfigsRequest,
    33: AlterConfigsRequest,
}
"""Key → its request, where a list of the JVM's response is in the order of a hash table."""
FETCH: Final = FetchRequest
"""The same before 0.10; a response of 0.10 has the order of the request."""
CLOSED = "closed"
SILENT = "no response"
MUTE = "no response, nor any later"


class Talk:
    """One sequence with the broker on `port`, of a level; use as a context manager. `masks`: bytes
    that only this broker has → what the transcript has for them. `lines`: where it is written."""

    def __init__(
        self,
        port: int,
        level: Level,
        masks: dict[bytes, bytes],
        lines: list[str] | None = None,
    ) -> None:
        self.lines: list[str] = [] if lines is None else lines
        self.level = level
        self._served = SERVED[level]
        self._sent: dict[int, bytes] = {}
        self._port = port
        self._masks = masks
        self._numbers = {
            b"%d" % unpack(">i", own)[0]: mask for own, mask in masks.items() if len(own) == 4
        }
        """The same for ports in a decoded message."""
        self._members: dict[bytes, bytes] = {}
        self._connections: dict[int, socket.socket] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def ask(self, frame: bytes, label: str = "", *, on: int = 0, is_silent: bool = False) -> bytes:
        """Send a request on a connection of its own number, and note what comes back; returns the
        payload of the response, empty if there is none. `is_silent`: none is expected."""
        self.send(frame, on=on)
        found = self._outcome(on, is_silent)
        self.note(label, found if isinstance(found, str) else self._shown(frame, found))
        return b"" if isinstance(found, str) else found

    def probe(self, frame: bytes) -> bytes:
        """Ask, and note nothing: for requests that are repeated until something has happened."""
        found = self.ask(frame)
        self.lines.pop()
        return found

    def _shown(self, frame: bytes, found: bytes) -> str:
        """A response as the transcript has it: its bytes, unless a hash table orders them."""
        key, version = unpack_from(">hh", frame.ljust(8, b"\xff"), 4)
        of = FETCH if key == 1 and self.level < Level.V0_10_2 else UNORDERED.get(key)
        if of is None:
            return repr(self.masked(found))
        try:
            version = self._served.row(key, version).version
            correlation_id, response = decode_response(of, found, version)
        except ProtocolError as error:
            return f"{error}: {self.masked(found)!r}"
        assert encode_response(response, correlation_id, version)[4:] == found
        if all(map(is_short, vars_of(response))):
            return repr(self.masked(found))
        return f"{correlation_id} {self._ordered(response)}"

    def _ordered(self, message: Any) -> str:
        """The fields of a decoded message, with its lists of topics, partitions, members in order.
        Ids are masked first, since they decide that order in a hash table. Lists of numbers have
        the order of the response: replicas, for instance."""
        if isinstance(message, list) and all(isinstance(item, int) for item in message):
            return repr(message)
        if isinstance(message, PartitionMetadata) and self.level >= Level.V0_10_2:
            message = replace(message, replicas=sorted(message.replicas))  # a set there
        if isinstance(message, list):
            return f"[{', '.join(sorted(map(self._ordered, message)))}]"
        if hasattr(message, "__dataclass_fields__"):
            names = message.__dataclass_fields__
            texts = (f"{name}={self._ordered(getattr(message, name))}" for name in names)
            return f"({', '.join(texts)})"
        if isinstance(message, memoryview | bytearray):
            message = bytes(message)
        return self.masked(repr(message).encode()).decode()

    def ask_set(self, version: int, frame: bytes, label: str = "") -> None:
        """Fetch of `version`: notes the messages, since encoders compress differently."""
        self.send(frame)
        found = self._outcome(0, False)
        if isinstance(found, str):
            self.note(label, found)
        else:
            self.note(label, "\n    ".join(map(repr, self._fetch_lines(version, found))))

    def _fetch_lines(self, version: int, payload: bytes) -> list[bytes]:
        position = 8 if version else 4
        lines = [payload[:position]]
        (topics,) = unpack_from(">i", payload, position)
        position += 4
        for _ in range(topics):
            (length,) = unpack_from(">h", payload, position)
            name = payload[position + 2 : position + 2 + max(0, length)]
            position += 2 + len(name)
            (partitions,) = unpack_from(">i", payload, position)
            position += 4
            for _ in range(partitions):
                head = payload[position : position + 18]
                (size,) = unpack_from(">i", head, 14)
                message_set = payload[position + 18 : position + 18 + size]
                # The size of a set with compressed messages differs, too.
                lines.append(name + b" " + head[:14])
                lines += self._set_lines(message_set, version < 2 and self.level >= Level.V0_10_2)
                position += 18 + size
        return [*lines, payload[position:]]

    def _set_lines(self, message_set: bytes, converted: bool, depth: int = 0) -> list[bytes]:
        """The messages of a set. In a converted one wrappers and the rest do not count: ours has
        one for each of the log, theirs one for all."""
        lines: list[bytes] = []
        position = 0
        while len(message_set) - position >= 14:
            offset, size = unpack_from(">qi", message_set, position)
            content = message_set[position + 12 : position + 12 + size]
            if size < 0 or len(content) < size:
                break
            position += 12 + size
            magic, attributes = content[4], content[5]
            start = 6 + 8 * (magic == 1)
            codec = attributes & 7
            head = b"%d%s: " % (depth * (not converted), pack(">q", offset)) + self.masked(
                content[4:start]
            )
            value = content[start + 8 :]
            try:
                inner = (
                    compression.decompress(codec, value, 1 << 20, magic=magic) if codec else None
                )
            except ValueError:
                inner = None
            if inner is None:
                crc = content[:4] if self.masked(content) == content else b"crc "
                lines.append(crc + head + self.masked(content[start:]))
            else:
                if not converted:
                    lines.append(head + content[start : start + 4])
                lines += self._set_lines(bytes(inner), converted, depth + 1)
        left = message_set[position:]
        return lines if converted or depth or not left else [*lines, b"%d bytes" % len(left)]

    def send(self, frame: bytes, *, on: int = 0) -> None:
        if on not in self._connections:
            address = ("127.0.0.1", self._port)
            self._connections[on] = socket.create_connection(address, timeout=TIMEOUT_S)
        self._connections[on].sendall(frame)
        if frame is not SENTINEL:
            self._sent[on] = frame

    def receive(self, label: str = "", *, on: int) -> bytes:
        """The response to the last request that was sent on a connection."""
        found = self._receive(on, TIMEOUT_S)
        self.note(label, found if isinstance(found, str) else self._shown(self._sent[on], found))
        return b"" if isinstance(found, str) else found

    def hang_up(self, on: int = 0) -> None:
        self._connections.pop(on).close()

    def note(self, label: str, what: str) -> None:
        self.lines.append(f"{label}: {what}" if label else what)

    def _outcome(self, on: int, is_silent: bool) -> bytes | str:
        found = SILENT if is_silent else self._receive(on, PATIENCE_S)
        if found is not SILENT:
            return found
        try:
            self.send(SENTINEL, on=on)
        except OSError:
            return self._ended(on)
        found = self._receive(on, MUTE_S)
        if found is SILENT:
            self.hang_up(on)
            return MUTE
        if isinstance(found, bytes):
            if unpack_from(">i", found) == (SENTINEL_ID,):
                return SILENT
            self._receive(on, TIMEOUT_S)  # the request was only slow
        return found

    def _receive(self, on: int, seconds: float) -> bytes | str:
        """The payload of the next response, CLOSED or SILENT."""
        connection = self._connections[on]
        connection.settimeout(seconds)
        try:
            head = self._exactly(connection, 4)
            if head is None:
                return self._ended(on)
            connection.settimeout(TIMEOUT_S)
            payload = self._exactly(connection, unpack(">i", head)[0])
            return self._ended(on) if payload is None else payload
        except TimeoutError:
            return SILENT
        except OSError:
            return self._ended(on)

    def _ended(self, on: int) -> str:
        self.hang_up(on)
        return CLOSED

    @staticmethod
    def _exactly(connection: socket.socket, size: int) -> bytes | None:
        found = b""
        while len(found) < size:
            piece = connection.recv(size - len(found))
            if not piece:
                return None
            found += piece
        return found

    def masked(self, found: bytes) -> bytes:
        """`found` without what only this broker can know."""
        for own, mask in self._masks.items():
            found = found.replace(own, mask)
        found = self._numbers.get(found, found)
        found = UUID.sub(lambda match: self._member(match[0]), found)
        now_ms = time.time_ns() // 1_000_000
        for match in TIME.finditer(found):
            if abs(unpack(">q", match[1])[0] - now_ms) < HOUR_MS:
                found = found.replace(match[1], b"PRESENT!")
        return found

    def _member(self, uuid: bytes) -> bytes:
        return self._members.setdefault(uuid, b"<member %02d>" % len(self._members))


class Talks:
    """One sequence with the brokers of a cluster, into one transcript; use as a context manager.

    Talks({1: 9092, 2: 9093}, level, masks)[2].ask(frame)
    """

    def __init__(self, ports: Mapping[int, int], level: Level, masks: dict[bytes, bytes]) -> None:
        self.lines: list[str] = []
        self.level = level
        of_ports = {pack(">i", port): b"PORT" + b"%d" % number for number, port in ports.items()}
        self._talks = {
            number: Talk(port, level, {**masks, **of_ports}, self.lines)
            for number, port in ports.items()
        }

    def __getitem__(self, broker_id: int) -> Talk:
        return self._talks[broker_id]

    def each(self, frame: bytes, label: str) -> None:
        """Ask every broker."""
        for broker_id, talk in self._talks.items():
            talk.ask(frame, f"{label}, at {broker_id}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for talk in self._talks.values():
            talk.__exit__(*error)


def vars_of(message: Any) -> list[Any]:
    return [getattr(message, name) for name in message.__dataclass_fields__]


def is_short(value: Any) -> bool:
    """Whether a value has no list of more than one item."""
    if isinstance(value, list):
        return len(value) < 2 and all(map(is_short, value))
    return not hasattr(value, "__dataclass_fields__") or all(map(is_short, vars_of(value)))
