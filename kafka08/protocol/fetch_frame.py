"""FetchFrame: the Fetch request of a follower or consumer, encoded once and sent many times.

While the partitions and their order stay the same, only offsets and sizes change; they are
written into the frame in place, offsets after an append by the replica's rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, Generic, Protocol, TypeVar

from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import (
    EPOCH_VERSION,
    LIMITED_VERSION,
    LOG_START_VERSION,
    MAGIC_2_VERSION,
    NO_LOG_START_OFFSET,
    RACK_VERSION,
    SESSION_VERSION,
    FetchRequest,
)
from kafka08.structs import TopicPartition

OFFSET_AND_SIZE: Final = Struct(">qi")
OFFSETS_AND_SIZE: Final = Struct(">qqi")
"""With the log start offset."""
CORRELATION_ID: Final = Struct(">i")
CORRELATION_ID_POSITION: Final = 8
HEADER_BYTES: Final = 14
"""Frame size, key, version, correlation id and the length of the client id."""
FIELDS_BYTES: Final = 16
"""Replica id, wait, least bytes, number of topics."""
LIMIT_BYTES: Final = 4
ISOLATION_BYTES: Final = 1
SESSION_BYTES: Final = 8
EPOCH_BYTES: Final = 4
NAME_LENGTH_BYTES: Final = 2
COUNT_BYTES: Final = 4
NUMBER_BYTES: Final = 4


class Placed(Protocol):
    """A partition that knows its place in the frame."""

    frame_position: int


P = TypeVar("P", bound=Placed)


class FetchFrame(Generic[P]):
    """The frame of `request`; `asked` has each of its partitions, which gets its `frame_position`.

    by_name   the same by topic name as bytes and number, for the replica's rules
    """

    def __init__(
        self,
        request: FetchRequest,
        client_id: str | None,
        asked: Mapping[TopicPartition, P],
    ) -> None:
        self.by_name: dict[bytes, dict[int, P]] = {}
        self._frame = bytearray(encode_request(request, 0, client_id))
        version = request.version
        self._has_starts = version >= LOG_START_VERSION
        fields = OFFSETS_AND_SIZE if self._has_starts else OFFSET_AND_SIZE
        before = NUMBER_BYTES + EPOCH_BYTES * (version >= EPOCH_VERSION)
        at = (
            HEADER_BYTES
            + len((client_id or "").encode())
            + FIELDS_BYTES
            + LIMIT_BYTES * (version >= LIMITED_VERSION)
            + ISOLATION_BYTES * (version >= MAGIC_2_VERSION)
            + SESSION_BYTES * (version >= SESSION_VERSION)
        )
        for topic in request.topics:
            name = topic.topic.encode()
            at += NAME_LENGTH_BYTES + len(name) + COUNT_BYTES
            numbers = self.by_name[name] = {}
            for item in topic.partitions:
                followed = asked[TopicPartition(topic.topic, item.partition)]
                followed.frame_position = at + before
                numbers[item.partition] = followed
                at += before + fields.size
        at += COUNT_BYTES * (version >= SESSION_VERSION)  # of forgotten topics
        if version >= RACK_VERSION:
            at += NAME_LENGTH_BYTES + len(request.rack_id.encode())
        assert at == len(self._frame), "the layout of a Fetch request"

    def put(
        self, placed: P, offset: int, size: int, log_start_offset: int = NO_LOG_START_OFFSET
    ) -> None:
        """Write the fetch offset and size that this partition has now, and where a follower's log
        starts."""
        at = placed.frame_position
        if self._has_starts:
            OFFSETS_AND_SIZE.pack_into(self._frame, at, offset, log_start_offset, size)
        else:
            OFFSET_AND_SIZE.pack_into(self._frame, at, offset, size)

    def numbered(self, correlation_id: int) -> bytearray:
        """The frame with this id; valid until the next call of any method."""
        CORRELATION_ID.pack_into(self._frame, CORRELATION_ID_POSITION, correlation_id)
        return self._frame
