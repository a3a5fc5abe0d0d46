"""DescribeConfigs (key 32): the configuration of topics, or of the broker itself.

Error codes, one for each resource: 17, 42. Source: kafka.server.AdminManager.describeConfigs
0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Final, Protocol, TypeVar

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Boolean,
    Int8,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    Since,
    String,
    WireForm,
)

TOPIC: Final = 2
BROKER: Final = 4
RESOURCE_TYPES: Final = {1: "ANY", TOPIC: "TOPIC", 3: "GROUP", BROKER: "BROKER"}
"""Number of a resource type → its name; any other is UNKNOWN (also in AlterConfigs)."""
UNKNOWN_TYPE: Final = 0
NO_SOURCE: Final = 0
OF_TOPIC: Final = 1
"""The source of a topic's override; those of brokers and defaults have other numbers."""


def unexpected_type(resource_types: Iterable[int]) -> str | None:
    """The name of the first type that is neither a topic nor a broker; None if all are."""
    for one in resource_types:
        if one not in {TOPIC, BROKER}:
            return RESOURCE_TYPES.get(one, "UNKNOWN")
    return None


class Resource(Protocol):
    """A resource as both requests name it."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)


def last_of_each(resources: Iterable[R]) -> dict[tuple[int, str], R]:
    """(type, name) → the last entry of a request for that resource (also in AlterConfigs)."""
    return {(one.resource_type, one.resource_name): one for one in resources}


def known_type(resource_type: int) -> int:
    """The number of a resource's type in a response."""
    return resource_type if resource_type in RESOURCE_TYPES else UNKNOWN_TYPE


@dataclass(slots=True)
class DescribedResource:
    resource_type: Int8
    resource_name: String
    """A topic, or the id of the broker that gets the request."""
    names: list[String] | None
    """The keys; None: all."""


@dataclass(slots=True)
class ConfigSynonym:
    """A value that would count if those before it were not set."""

    key: String
    value: NullableString
    source: Int8


@dataclass(slots=True)
class DescribedConfig:
    key: String
    value: NullableString
    """None for a password."""
    is_read_only: Boolean
    is_default: Boolean
    """Whether the topic, or the broker's file, does not set it."""
    is_sensitive: Boolean
    source: Int8 = NO_SOURCE
    """Where the value is set."""
    synonyms: list[ConfigSynonym] = field(default_factory=list)


@dataclass(slots=True)
class DescribedConfigs:
    error_code: Int16
    message: NullableString
    resource_type: Int8
    resource_name: String
    configs: list[DescribedConfig]


@dataclass(slots=True)
class DescribeConfigsResponse(Response):
    throttle_ms: Int32
    resources: list[DescribedConfigs]


@dataclass(slots=True)
class DescribeConfigsRequest(Request):
    ITEMS_MAX = 10_000
    """A name of some bytes has 2 KB in the response, also that of a topic which does not exist."""

    resources: list[DescribedResource]
    with_synonyms: Annotated[Boolean, Since(1)] = False


class DescribedConfigV1(WireForm, of=DescribedConfig):
    """1.1: has the source in place of is_default."""

    key: String
    value: NullableString
    is_read_only: Boolean
    source: Int8
    is_sensitive: Boolean
    synonyms: list[ConfigSynonym]

    @staticmethod
    def make(
        key: str,
        value: str | None,
        is_read_only: bool,
        source: int,
        is_sensitive: bool,
        synonyms: list[ConfigSynonym],
    ) -> DescribedConfig:
        is_default = source != OF_TOPIC
        return DescribedConfig(key, value, is_read_only, is_default, is_sensitive, source, synonyms)


class DescribedConfigsV1(WireForm, of=DescribedConfigs):
    error_code: Int16
    message: NullableString
    resource_type: Int8
    resource_name: String
    configs: list[DescribedConfigV1]


class DescribeConfigsResponseV1(WireForm, of=DescribeConfigsResponse):
    throttle_ms: Int32
    resources: list[DescribedConfigsV1]


API = Api(
    32,
    "DescribeConfigs",
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    (
        ApiVersion(0, DescribeConfigsRequest, DescribeConfigsResponse, since=Level.V0_11_0),
        ApiVersion(1, DescribeConfigsRequest, DescribeConfigsResponseV1, since=None),
    ),
)
