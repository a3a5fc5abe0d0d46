"""DescribeLogDirs (key 35): the log directories of the broker that is asked, and the sizes of its
replicas. Clients alone use it: no broker of ours has it. From 1.0 on. Error codes, one for each
directory: 31, 56. Source: org.apache.kafka.common.requests 2.8.2."""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Boolean, Int16, Int32, Int64, Request, Response, String


@dataclass(slots=True)
class LogDirTopic:
    topic: String
    partitions: list[Int32]


@dataclass(slots=True)
class ReplicaInLogDir:
    partition: Int32
    size: Int64
    """Bytes of its segments."""
    lag: Int64
    """Messages behind the high watermark, or for a future replica behind the present one."""
    is_future: Boolean
    """Whether it takes the place of one in another directory when it has caught up."""


@dataclass(slots=True)
class TopicInLogDir:
    topic: String
    partitions: list[ReplicaInLogDir]


@dataclass(slots=True)
class LogDir:
    error_code: Int16
    path: String
    topics: list[TopicInLogDir]


@dataclass(slots=True)
class DescribeLogDirsResponse(Response):
    throttle_ms: Int32
    log_dirs: list[LogDir]


@dataclass(slots=True)
class DescribeLogDirsRequest(Request):
    topics: list[LogDirTopic] | None
    """None: all."""


API = Api(
    35,
    "DescribeLogDirs",
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    (
        ApiVersion(0, DescribeLogDirsRequest, DescribeLogDirsResponse, since=None),
        ApiVersion(1, DescribeLogDirsRequest, DescribeLogDirsResponse, since=None),
    ),
)
