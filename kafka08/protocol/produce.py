"""Produce (key 0): append message sets to partitions.

The broker responds when `required_acks` is met: 1 after the leader's append, -1 when every in-sync
replica has the messages, n > 1 when n of them have. With 0 there is no response; on an error the
broker closes the connection. Error codes: 2, 3, 6, 7, 10, 17, 18, 19, 20, -1. Source:
kafka.api.ProducerRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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
    String,
    WireForm,
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
    """Version 8: a record for which its batch was refused."""

    index: Int32
    message: NullableString


@dataclass(slots=True)
class ProducePartitionResponse:
    partition: Int32
    error_code: Int16
    base_offset: Int64
    """Offset assigned to the first message of the set; -1 on error and for an empty set."""
    log_append_time_ms: Int64 = -1
    """The timestamp of all messages of the set if the broker sets it (LogAppendTime); else, and on
    error, -1."""
    log_start_offset: Int64 = -1
    """Version 5: the first offset of the log; -1 on error."""
    record_errors: list[RecordError] = field(default_factory=list)
    error_message: NullableString = None


@dataclass(slots=True)
class ProduceTopicResponse:
    topic: Name
    partitions: list[ProducePartitionResponse]


@dataclass(slots=True)
class ProduceResponse(Response):
    topics: list[ProduceTopicResponse]
    throttle_ms: Int32 = 0
    """How long a quota delayed the response."""


@dataclass(slots=True)
class ProduceRequest(Request):
    ITEMS_MAX = 40_000
    """Each costs a result and a place in the response; a producer has a batch for some hundred."""

    required_acks: Int16
    timeout_ms: Int32
    """How long to wait for `required_acks` other than 0 and 1; then error 7, although appended."""
    topics: list[ProduceTopic]
    transactional_id: NullableString = None
    """Version 3: the transaction that the batches belong to, if they are transactional."""


class ProduceTopicV3(WireForm, of=ProduceTopic):
    topic: String
    partitions: list[ProducePartition]


class ProduceRequestV3(WireForm, of=ProduceRequest):
    """0.11.0: adds the transactional id; each set is one batch of magic 2."""

    transactional_id: NullableString
    required_acks: Int16
    timeout_ms: Int32
    topics: list[ProduceTopicV3]


class ProduceResponseV1(WireForm, of=ProduceResponse):
    """0.9: adds the throttle time at the end."""

    topics: list[ProduceTopicResponse]
    throttle_ms: Int32


class ProducePartitionResponseV2(WireForm, of=ProducePartitionResponse):
    partition: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64


class ProduceTopicResponseV2(WireForm, of=ProduceTopicResponse):
    topic: String
    partitions: list[ProducePartitionResponseV2]


class ProduceResponseV2(WireForm, of=ProduceResponse):
    """0.10.0: adds the LogAppendTime; sets may have magic 1."""

    topics: list[ProduceTopicResponseV2]
    throttle_ms: Int32


class ProducePartitionResponseV5(WireForm, of=ProducePartitionResponse):
    partition: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64
    log_start_offset: Int64


class ProduceTopicResponseV5(WireForm, of=ProduceTopicResponse):
    topic: String
    partitions: list[ProducePartitionResponseV5]


class ProduceResponseV5(WireForm, of=ProduceResponse):
    """1.0: adds the log start offset."""

    topics: list[ProduceTopicResponseV5]
    throttle_ms: Int32


class ProducePartitionResponseV8(WireForm, of=ProducePartitionResponse):
    partition: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64
    log_start_offset: Int64
    record_errors: list[RecordError]
    error_message: NullableString


class ProduceTopicResponseV8(WireForm, of=ProduceTopicResponse):
    topic: String
    partitions: list[ProducePartitionResponseV8]


class ProduceResponseV8(WireForm, of=ProduceResponse):
    """2.4: adds which records were refused, and why."""

    topics: list[ProduceTopicResponseV8]
    throttle_ms: Int32


API = Api(
    0,
    "Produce",
    ProduceRequest,
    ProduceResponse,
    (
        ApiVersion(0, ProduceRequest, ProduceResponse),
        ApiVersion(1, ProduceRequest, ProduceResponseV1, since=Level.V0_9_0),
        ApiVersion(2, ProduceRequest, ProduceResponseV2, since=Level.V0_10_2),
        ApiVersion(MAGIC_2_VERSION, ProduceRequestV3, ProduceResponseV2, since=Level.V0_11_0),
        ApiVersion(4, ProduceRequestV3, ProduceResponseV2, since=None),
        ApiVersion(5, ProduceRequestV3, ProduceResponseV5, since=None),
        ApiVersion(6, ProduceRequestV3, ProduceResponseV5, since=None),
        ApiVersion(ZSTD_VERSION, ProduceRequestV3, ProduceResponseV5, since=None),
        ApiVersion(TEXT_VERSION, ProduceRequestV3, ProduceResponseV8, since=None),
    ),
)
