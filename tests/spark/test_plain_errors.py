"""Errors of a plan, as Spark prints them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kafka08.errors import ConfigError, KafkaError, NoBrokersAvailable, UnknownTopicOrPartition
from kafka08.spark.plain_errors import (
    ADVICE,
    WRITE_ADVICE,
    plain_errors_of_items,
    plain_write_errors,
)
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


def test_a_stream_with_wrong_options_is_refused_when_it_is_asked() -> None:
    """PySpark hides an error of streamReader behind one of its own: whatever Spark asks first, of a
    new query or of one with a checkpoint, raises the error, once with its advice."""
    options = {**SUBSCRIBE, "fetchOffset.numRetries": "0"}
    reader = DataSource(options).streamReader(default_schema(False))
    for ask in (
        reader.getDefaultReadLimit,
        reader.initialOffset,
        lambda: reader.latestOffset({}, ReadAllAvailable()),
        reader.latestOffset,  # as PySpark before 4.2 calls it
        lambda: reader.partitions({}, {}),
    ):
        with pytest.raises(NoBrokersAvailable) as raised:
            ask()  # type: ignore[call-arg]
        assert raised.value.__notes__ == [ADVICE[NoBrokersAvailable]]


def failing(after: int) -> Iterator[int]:
    yield from range(after)
    raise UnknownTopicOrPartition("topic t") from ValueError("a cause")


def test_tasks_raise_plain_errors() -> None:
    """A task's error comes after its rows, has the advice of a read or of a write, and only the
    frame that raised it."""
    items = plain_errors_of_items(failing)(2)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(UnknownTopicOrPartition) as of_read:
        next(items)
    with pytest.raises(UnknownTopicOrPartition) as of_write:
        plain_write_errors(list)(failing(0))
    for raised, advice in ((of_read, ADVICE), (of_write, WRITE_ADVICE)):
        printed = "".join(traceback.format_exception(raised.value))
        assert printed.rstrip().endswith(advice[UnknownTopicOrPartition])
        assert "a cause" not in printed
        assert "in failing" not in printed
