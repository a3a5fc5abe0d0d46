"""Heartbeat (key 12) as 0.8.2 has it: parsed, then always answered -1.

Source: kafka.api.HeartbeatRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.types import (
    Int16,
    Int32,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class HeartbeatResponse(Response):
    error_code: Int16


@dataclass(slots=True)
class HeartbeatRequest(Request):
    KEY = 12
    VERSION = 0
    RESPONSE = HeartbeatResponse

    group: String
    generation: Int32
    consumer_id: String
