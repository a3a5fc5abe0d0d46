"""Kafka's wire protocol, version 0.8.2.2: bytes ↔ objects, no socket and no decision in here.

One module per API holds its request and response classes, whose annotations are their layout
(types). Start with `codec`, which turns them into bytes and back, then `frame` for cutting a stream
into payloads, and `message_set` with `compression` for what producers put into it; `grouping` goes
from partitions to topics and back; `offset_records` are the messages of the offsets topic.
"""

from __future__ import annotations

from kafka08.protocol.codec import (
    REQUESTS,
    RequestHeader,
    UnknownApi,
    decode_body,
    decode_request,
    decode_response,
    encode_body,
    encode_request,
    encode_response,
)
from kafka08.protocol.frame import FrameReader

__all__ = [
    "REQUESTS",
    "FrameReader",
    "RequestHeader",
    "UnknownApi",
    "decode_body",
    "decode_request",
    "decode_response",
    "encode_body",
    "encode_request",
    "encode_response",
]
