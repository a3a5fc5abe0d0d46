"""The log lines of Produce."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import cast

import pytest

from kafka08.broker.purgatory.delayed_produce import AppendResult
from kafka08.broker.requests.call import Call
from kafka08.broker.requests.handlers.produce import report
from kafka08.errors import Refusal, UnknownTopicOrPartition
from kafka08.structs import TopicPartition

CALL = cast(
    Call, SimpleNamespace(header=SimpleNamespace(correlation_id=7, client_id="c"), cause={})
)


def test_a_request_for_many_unknown_partitions_is_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All unknown partitions of a request give one line."""
    unknown = Refusal.of(UnknownTopicOrPartition("unknown"))
    results = {TopicPartition("t", n): AppendResult(-1, -1, unknown) for n in range(1000)}
    with caplog.at_level(logging.INFO):
        report(results, CALL)
    (many,) = caplog.records
    assert "on partition [t,0] and 999 more failed due to" in many.getMessage()
    assert "INFO" == many.levelname
