"""DeleteTopics (key 20): the controller deletes topics, and waits until they no longer exist.

Error codes, one for each topic: 3, 7, 41. Source: kafka.server.AdminManager 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Request, Response, String, WireForm


@dataclass(slots=True)
class DeleteTopicResult:
    topic: String
    error_code: Int16


@dataclass(slots=True)
class DeleteTopicsResponse(Response):
    topics: list[DeleteTopicResult]
    throttle_ms: Int32 = 0


@dataclass(slots=True)
class DeleteTopicsRequest(Request):
    topics: list[String]
    timeout_ms: Int32
    """How long to wait for the deletion, which continues afterwards."""


class DeleteTopicsResponseV1(WireForm, of=DeleteTopicsResponse):
    """0.11.0: adds the throttle time at the start."""

    throttle_ms: Int32
    topics: list[DeleteTopicResult]


API = Api(
    20,
    "DeleteTopics",
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    (
        ApiVersion(0, DeleteTopicsRequest, DeleteTopicsResponse, since=Level.V0_10_2),
        ApiVersion(1, DeleteTopicsRequest, DeleteTopicsResponseV1, since=Level.V0_11_0),
    ),
)
