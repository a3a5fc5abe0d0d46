"""FastPath: the requests that make up nearly all traffic, answered without message objects.

    Produce 0      one partition, acks 0 or 1 (or -1 while the leader is the whole ISR)
    Fetch 0        one partition, an ordinary consumer, enough to read right now; not from 0.10.2
                   on, where the set may have to be converted
    Metadata 0-2   a question that was answered before, in the same metadata epoch

Anything else, and any error, is left to the handlers: a fast path returns None before it has
changed anything, and the request is then decoded in full. So nothing is decided here; what is done
is what handlers.produce, handlers.fetch and handlers.metadata would do. Only the versions above are
looked at, for others have other layouts.

A request for one partition and its answer share the bytes `topic:str 1:i32 partition:i32` (topic,
number of partitions, partition). They are the key of the table of partitions, and go into the
answer as they are. Each method reads the request's start itself: calling a function for it adds 3
to 6 % to a fetch.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from kafka08.broker.append_queue import needs_queue
from kafka08.errors import ApiError
from kafka08.levels import Level
from kafka08.protocol.codec import CORRELATION_ID, FRAME_AND_CORRELATION_ID, REQUEST_HEADER
from kafka08.protocol.fetch import FRAME_HEADER
from kafka08.protocol.frame import SIZE
from kafka08.structs import ORDINARY_CONSUMER

if TYPE_CHECKING:
    from kafka08.broker.context import BrokerContext
    from kafka08.network.server_connection import ResponseFrame

API_NUMBER: Final = Struct(">I")
PRODUCE: Final = Struct(">hiih")
"""acks, timeout, number of topics, length of the first one's name."""
PRODUCE_PARTITION: Final = Struct(">i")
"""Size of the set."""
FETCH: Final = Struct(">iiiih")
"""Replica id, longest wait, least bytes, number of topics, length of the first one's name."""
FETCH_PARTITION: Final = Struct(">qi")
"""Offset, most bytes."""
PRODUCE_RESULT: Final = Struct(">hq")
"""Error code, base offset."""
FETCH_RESULT: Final = Struct(">hqi")
"""Error code, high watermark, size of the set."""
METADATA_VERSIONS: Final = (0, 1, 2)
VERSION: Final = slice(2, 4)
"""Where a request has its version."""
NAME_LENGTH_BYTES: Final = 2
COUNT_AND_PARTITION_BYTES: Final = 8


def api_number(key: int, version: int) -> int:
    """Key and version as the number that API_NUMBER reads at the start of a payload."""
    return key << 16 | version


class FastPath:
    """Each method takes a payload and returns its answer, or None: leave it to the handler.

    methods   the first four bytes of a request (key, version) as a number → its method
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._replica_manager = broker.replica_manager
        self._partitions = broker.replica_manager.by_name_on_the_wire
        self._metadata_cache = broker.metadata_cache
        self._question_prefix = broker.question_prefix
        self.methods: Final[dict[int, Callable[[memoryview], ResponseFrame | None]]] = {
            api_number(0, 0): self.produce,
            **{api_number(3, version): self.metadata for version in METADATA_VERSIONS},
        }
        if broker.config.level < Level.V0_10_2:
            self.methods[api_number(1, 0)] = self.fetch

    def produce(self, payload: memoryview) -> ResponseFrame | None:
        """Append one set; the answer, which is empty for acks 0."""
        try:
            _, _, correlation_id, client = REQUEST_HEADER.unpack_from(payload)
            position = REQUEST_HEADER.size + client if client > 0 else REQUEST_HEADER.size
            acks, _, topics, length = PRODUCE.unpack_from(payload, position)
            start = position + PRODUCE.size
            end = start + length + COUNT_AND_PARTITION_BYTES
            name = bytes(payload[start - NAME_LENGTH_BYTES : end])
            partition = self._partitions.get(name)
            if partition is None or topics != 1 or partition.append_queue is not None:
                return None
            (size,) = PRODUCE_PARTITION.unpack_from(payload, end)
        except struct_error:
            return None
        if acks != 1 and acks != 0 and (acks != -1 or len(partition.maximal_isr) > 1):  # noqa: PLR1714
            return None
        data = payload[end + PRODUCE_PARTITION.size : end + PRODUCE_PARTITION.size + size]
        if len(data) != size or partition.is_internal:
            return None
        if needs_queue(partition, data):
            return None
        try:
            info = partition.append(data, acks)
        except ApiError:
            return None  # nothing was appended; the handler meets the same error and reports it
        self._replica_manager.wake(partition.topic_partition)
        if acks == 0:
            return b""
        return b"%b%b%b" % (
            FRAME_HEADER.pack(
                FRAME_HEADER.size - SIZE.size + len(name) + PRODUCE_RESULT.size, correlation_id, 1
            ),
            name,
            PRODUCE_RESULT.pack(0, info.first_offset),
        )

    def fetch(self, payload: memoryview) -> ResponseFrame | None:
        """Read one partition; its set stays in the file."""
        try:
            _, _, correlation_id, client = REQUEST_HEADER.unpack_from(payload)
            position = REQUEST_HEADER.size + client if client > 0 else REQUEST_HEADER.size
            replica_id, max_wait, min_bytes, topics, length = FETCH.unpack_from(payload, position)
            start = position + FETCH.size
            end = start + length + COUNT_AND_PARTITION_BYTES
            name = bytes(payload[start - NAME_LENGTH_BYTES : end])
            partition = self._partitions.get(name)
            if partition is None or topics != 1 or replica_id != ORDINARY_CONSUMER:
                return None
            offset, max_bytes = FETCH_PARTITION.unpack_from(payload, end)
        except struct_error:
            return None
        if not partition.is_leader:
            return None
        try:
            found = partition.read(offset, max_bytes, committed_only=True)
        except ApiError:
            return None  # the handler meets the same error and reports it
        size = found.size
        if size < min_bytes and max_wait > 0:
            return None
        partition.bytes_out += size
        header = b"%b%b%b" % (
            FRAME_HEADER.pack(
                FRAME_HEADER.size - SIZE.size + len(name) + FETCH_RESULT.size + size,
                correlation_id,
                1,
            ),
            name,
            FETCH_RESULT.pack(0, partition.high_watermark, size),
        )
        return (header, found) if size else header

    def metadata(self, payload: memoryview) -> ResponseFrame | None:
        """The answer to the same question, if nothing has changed since it was given."""
        try:
            _, _, correlation_id, client = REQUEST_HEADER.unpack_from(payload)
        except struct_error:
            return None
        body = REQUEST_HEADER.size + client if client > 0 else REQUEST_HEADER.size
        question = self._question_prefix + bytes(payload[VERSION]) + bytes(payload[body:])
        answer = self._metadata_cache.encoded_answer(question)
        if answer is None:
            return None
        size = CORRELATION_ID.size + len(answer)
        return FRAME_AND_CORRELATION_ID.pack(size, correlation_id) + answer
