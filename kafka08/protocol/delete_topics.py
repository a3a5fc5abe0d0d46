"""DeleteTopics (key 20): the controller deletes topics, and waits until they no longer exist.

Error codes, one for each topic: 3, 7, 41. Source: kafka.server.AdminManager 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Request,
    Response,
    Since,
    String,
)


@dataclass(slots=True)
class DeleteTopicResult:
    topic: String
    error_code: Int16


@dataclass(slots=True)
class DeleteTopicsResponse(Response):
    topics: list[DeleteTopicResult]
    throttle_ms: Annotated[Int32, Since(1, before="topics")] = 0


@dataclass(slots=True)
class DeleteTopicsRequest(Request):
    topics: list[String]
    timeout_ms: Int32
    """How long to wait for the deletion, which continues afterwards."""


API = Api(
    20,
    "DeleteTopics",
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    (
        ApiVersion(0, DeleteTopicsRequest, DeleteTopicsResponse, since=Level.V0_10_2),
        ApiVersion(1, DeleteTopicsRequest, DeleteTopicsResponse, since=Level.V0_11_0),
    ),
)
