"""Options of a write and what they mean or why they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import ConfigError
from kafka08.spark.write_options import BYTE_ARRAY_HASH, MURMUR2, parse_write_options

BASE = {"kafka.bootstrap.servers": "b1:9092"}


@pytest.mark.parametrize(
    ("given", "field", "meaning"),
    [
        ({}, "acks", -1),
        ({"kafka.acks": "all"}, "acks", -1),
        ({"kafka.request.required.acks": "1"}, "acks", 1),
        ({}, "codec", 0),
        ({"kafka.compression.type": "snappy"}, "codec", 2),
        ({"kafka.compression.codec": "1"}, "codec", 1),
        ({"kafka.batch.size": "1000"}, "batch_bytes", 1000),
        ({}, "hash_name", MURMUR2),
        (
            {"kafka.partitioner.class": "kafka.producer.ByteArrayPartitioner"},
            "hash_name",
            BYTE_ARRAY_HASH,
        ),
        ({"topic": "t"}, "topic", "t"),
        ({}, "topic", None),
        ({"includeHeaders": "true"}, "topic", None),
        ({}, "keeps_times", False),
        ({"includeTimestamp": "true"}, "keeps_times", True),
        ({"checkpointLocation": "/x", "queryName": "q"}, "topic", None),
    ],
)
def test_meaning(given: dict[str, str], field: str, meaning: Any) -> None:
    """The new producer's names are known, and 0.8's as aliases."""
    assert getattr(parse_write_options(BASE | given), field) == meaning


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"kafka.acks": "2"}, "acks: '2' is not one of"),
        ({"kafka.compression.type": "zstd"}, "kafka.compression.type: 'zstd'"),
        ({"kafka.value.serializer": "x"}, "kafka.value.serializer is not supported"),
        ({"kafka.partitioner.class": "x"}, "partitioner.class: 'x' is not one of"),
        ({"kafka.request.timeout.ms": "40000"}, "must be below socket.timeout.ms"),
        ({"topc": "t"}, "unknown option topc"),
        ({"topic": "a b"}, "topic: topic name a b is illegal"),
        ({"kafka.bootstrap.servers": ""}, "give one of kafka.bootstrap.servers"),
    ],
)
def test_refusals(given: dict[str, str], fault: str) -> None:
    """The error names the option and the allowed values."""
    with pytest.raises(ConfigError) as refused:
        parse_write_options(BASE | given)
    assert fault in str(refused.value)
