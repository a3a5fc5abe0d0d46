"""BrokerAdmin while the controller is away, or behind what was changed."""

from __future__ import annotations

from math import inf

import pytest

from kafka08.admin.broker_admin import CONTROLLER_S, BrokerAdmin
from kafka08.errors import AdminError, ConfigError
from kafka08.levels import Level
from kafka08.protocol.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from kafka08.protocol.create_topics import (
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafka08.protocol.types import Request, Response
from tests.mock_clock import MockClock
from tests.network.scripted import ScriptedNetwork

VERSIONS = ApiVersionsResponse(0, [ApiVersionRange(3, 0, 2), ApiVersionRange(19, 0, 1)])


def test_a_controller_is_looked_for_for_a_limited_time() -> None:
    """However slowly the brokers respond. (Twenty looks of 9 s took three minutes.)"""
    clock = MockClock()

    def respond(request: Request) -> Response:
        clock.advance(4.0)
        if isinstance(request, ApiVersionsRequest):
            return VERSIONS
        return MetadataResponse([], [], controller_id=-1)

    network = ScriptedNetwork(level=Level.V0_10_2)
    network.broker("b1", 9092, respond)
    with BrokerAdmin([("b1", 9092)], runtime=network.runtime(clock)) as admin:
        began = clock.monotonic()
        with pytest.raises(AdminError, match="have no controller"):
            admin.create_topic("t", 1, 1)
    assert CONTROLLER_S - 4.5 <= clock.monotonic() - began <= CONTROLLER_S + 8.0


@pytest.mark.parametrize("lag_s", [0.0, 3.0, 60.0])
def test_a_change_is_waited_for_until_it_shows(lag_s: float) -> None:
    """A broker without ZooKeeper may respond before its own metadata has the partitions. They are
    the result, or after the timeout the error says which is behind."""
    clock = MockClock()
    created_at = inf

    def respond(request: Request) -> Response:
        nonlocal created_at
        if isinstance(request, ApiVersionsRequest):
            return VERSIONS
        if isinstance(request, CreateTopicsRequest):
            created_at = clock.monotonic()
            return CreateTopicsResponse([CreateTopicResult("t", 0)])
        age_s = clock.monotonic() - created_at
        shown = [0, 1] if age_s >= lag_s else [0] if age_s >= lag_s / 2 else []
        partitions = [PartitionMetadata(0, n, 1, [1], [1]) for n in shown]
        topics = [TopicMetadata(0, "t", partitions)] if shown else []
        return MetadataResponse([BrokerEndpoint(1, "b1", 9092)], topics, controller_id=1)

    network = ScriptedNetwork(level=Level.V0_10_2)
    network.broker("b1", 9092, respond)
    runtime = network.runtime(clock)
    with BrokerAdmin([("b1", 9092)], timeout_ms=30_000, runtime=runtime) as admin:
        if lag_s < 30:
            assert admin.create_topic("t", 2) == {0: (1,), 1: (1,)}
            return
        with pytest.raises(AdminError, match="30000 ms the controller shows 1 of 2 partitions"):
            admin.create_topic("t", 2)
    assert clock.monotonic() - created_at <= 30


@pytest.mark.parametrize(
    ("name", "value"), [("retention.ms", "é" * 16_384), ("x" * 32_768, "1")], ids=["value", "name"]
)
def test_an_override_that_no_request_can_carry(name: str, value: str) -> None:
    """Its name, size, the limit, and what to do; no broker is asked, or blamed."""
    network = ScriptedNetwork(level=Level.V0_10_2)
    runtime = network.runtime(MockClock())
    with BrokerAdmin([("b1", 9092)], runtime=runtime) as admin, pytest.raises(ConfigError) as found:
        admin.create_topic("t", config={name: value})
    advice = "32768 bytes, and a request carries at most 32767: shorten it, or give --zookeeper"
    assert f"{name[:80]}: {advice}" == str(found.value)
