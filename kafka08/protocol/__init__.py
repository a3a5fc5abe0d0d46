"""Kafka's wire protocol: bytes ↔ objects, no socket and no decision in here.

One module per API holds its request and response classes, the layouts of each version (types), and
a row per version (api). `apis` is the registry of all rows, `served` says which of them a broker of
a level serves. Start with `codec`, which turns messages into bytes and back, then `frame` for
cutting a stream into payloads, and `message_set` with `compression` for what producers put into it;
`grouping` goes from partitions to topics and back; `offset_records` and `group_records` are the
messages of the offsets topic, `consumer_protocol` what consumers put into the group APIs.
"""

from __future__ import annotations

from kafka08.protocol.codec import (
    RequestHeader,
    decode_body,
    decode_request,
    decode_response,
    encode_body,
    encode_request,
    encode_response,
)
from kafka08.protocol.frame import FrameReader
from kafka08.protocol.served import SERVED, Served, UnknownApi, UnservedVersion

__all__ = [
    "SERVED",
    "FrameReader",
    "RequestHeader",
    "Served",
    "UnknownApi",
    "UnservedVersion",
    "decode_body",
    "decode_request",
    "decode_response",
    "encode_body",
    "encode_request",
    "encode_response",
]
