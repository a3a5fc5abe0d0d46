"""Produce (key 0): append message sets to partitions.

The broker responds when `required_acks` is met: 1 after the leader's append, -1 when every in-sync
replica has the messages, n > 1 when n of them have. With 0 there is no response; on an error the
broker closes the connection. Error codes: 2, 3, 6, 7, 10, 17, 18, 19, 20, -1. Source:
kafka.api.ProducerRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    MessageSet,
    Name,
    NullableString,
    Request,
    Response,
    Since,
)

MAGIC_1_VERSION: Final = 2
"""From this version on sets may have magic 1."""
MAGIC_2_VERSION: Final = 3
"""From this version on each set is one batch of magic 2."""
ZSTD_VERSION: Final = 7
"""From this version on a batch may be compressed with zstd."""
TEXT_VERSION: Final = 8
"""From this version on a response has texts. The last version that is not flexible: every broker
from 2.4 to 4.4 serves it."""


@dataclass(slots=True)
class ProducePartition:
    partition: Int32
    message_set: MessageSet


@dataclass(slots=True)
class ProduceTopic:
    topic: Name
    partitions: list[ProducePartition]


@dataclass(slots=True)
class RecordError:
    """A record for which its batch was refused."""

    index: Int32
    message: NullableString


@dataclass(slots=True)
class ProducePartitionResponse:
    partition: Int32
    error_code: Int16
    base_offset: Int64
    """Offset assigned to the first message of the set; -1 on error and for an empty set."""
    log_append_time_ms: Annotated[Int64, Since(2)] = -1
    """The timestamp of all messages of the set if the broker sets it (LogAppendTime); else, and on
    error, -1."""
    log_start_offset: Annotated[Int64, Since(5)] = -1
    """The first offset of the log; -1 on error."""
    record_errors: Annotated[list[RecordError], Since(8)] = field(default_factory=list)
    error_message: Annotated[NullableString, Since(8)] = None


@dataclass(slots=True)
class ProduceTopicResponse:
    topic: Name
    partitions: list[ProducePartitionResponse]


@dataclass(slots=True)
class ProduceResponse(Response):
    topics: list[ProduceTopicResponse]
    throttle_ms: Annotated[Int32, Since(1)] = 0
    """How long a quota delayed the response."""


@dataclass(slots=True)
class ProduceRequest(Request):
    ITEMS_MAX = 40_000
    """Each costs a result and a place in the response; a producer has a batch for some hundred."""

    required_acks: Int16
    timeout_ms: Int32
    """How long to wait for `required_acks` other than 0 and 1; then error 7, although appended."""
    topics: list[ProduceTopic]
    transactional_id: Annotated[NullableString, Since(3, before="required_acks")] = None
    """The transaction that the batches belong to, if they are transactional."""


API = Api(
    0,
    "Produce",
    ProduceRequest,
    ProduceResponse,
    (
        ApiVersion(0, ProduceRequest, ProduceResponse),
        ApiVersion(1, ProduceRequest, ProduceResponse, since=Level.V0_9_0),
        ApiVersion(2, ProduceRequest, ProduceResponse, since=Level.V0_10_2),
        ApiVersion(MAGIC_2_VERSION, ProduceRequest, ProduceResponse, since=Level.V0_11_0),
        ApiVersion(4, ProduceRequest, ProduceResponse, since=None),
        ApiVersion(5, ProduceRequest, ProduceResponse, since=None),
        ApiVersion(6, ProduceRequest, ProduceResponse, since=None),
        ApiVersion(ZSTD_VERSION, ProduceRequest, ProduceResponse, since=None),
        ApiVersion(TEXT_VERSION, ProduceRequest, ProduceResponse, since=None),
    ),
)
