"""Errors of a plan, as Spark prints them."""

from __future__ import annotations

import traceback

import pytest

from kafka08.errors import ConfigError, KafkaError, NoBrokersAvailable
from kafka08.spark.plain_errors import ADVICE
from kafka08.spark.schema import default_schema
from kafka08.spark.source import DataSource

SUBSCRIBE = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"}


@pytest.mark.parametrize(
    ("options", "kind", "end"),
    [
        ({"startingOffsets": "soon"}, ConfigError, '{"topic":{"0":23}}'),
        ({"fetchOffset.numRetries": "0"}, NoBrokersAvailable, ADVICE[NoBrokersAvailable]),
    ],
)
def test_an_error_has_no_traceback_through_kafka08(
    options: dict[str, str], kind: type[KafkaError], end: str
) -> None:
    """An error of the options or the cluster is its text and what to do, without the calls and the
    causes that led to it."""
    with pytest.raises(kind) as raised:
        DataSource({**SUBSCRIBE, **options}).reader(default_schema(False))
    printed = "".join(traceback.format_exception(raised.value))
    assert printed.rstrip().endswith(end)
    assert "During handling" not in printed
    assert "direct cause" not in printed
    assert printed.count('File "') == 2  # this test and the raise
