"""BrokerAdmin without a controller."""

from __future__ import annotations

import pytest

from kafka08.admin.broker_admin import CONTROLLER_S, BrokerAdmin
from kafka08.errors import AdminError
from kafka08.levels import Level
from kafka08.protocol.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from kafka08.protocol.metadata import MetadataResponse
from kafka08.protocol.types import Request, Response
from tests.mock_clock import MockClock
from tests.network.scripted import ScriptedNetwork


def test_a_controller_is_looked_for_for_a_limited_time() -> None:
    """However slowly the brokers respond. (Twenty looks of 9 s took three minutes.)"""
    clock = MockClock()

    def respond(request: Request) -> Response:
        clock.advance(4.0)
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsResponse(0, [ApiVersionRange(3, 0, 2), ApiVersionRange(19, 0, 1)])
        return MetadataResponse([], [], controller_id=-1)

    network = ScriptedNetwork(level=Level.V0_10_2)
    network.broker("b1", 9092, respond)
    with BrokerAdmin([("b1", 9092)], runtime=network.runtime(clock)) as admin:
        began = clock.monotonic()
        with pytest.raises(AdminError, match="have no controller"):
            admin.create_topic("t", 1, 1)
    assert CONTROLLER_S - 4.5 <= clock.monotonic() - began <= CONTROLLER_S + 8.0
