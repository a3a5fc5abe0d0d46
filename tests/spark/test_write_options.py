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


EXACTLY_ONCE = BASE | {"transactional.id.prefix": "p"}


@pytest.mark.parametrize(
    ("given", "journal"),
    [
        ({"checkpointLocation": "/c"}, "/c/kafka08-transactions"),
        ({"checkpointLocation": "file:///c%20d"}, "/c d/kafka08-transactions"),
        ({"checkpointLocation": "hdfs://n/c", "journalLocation": "/j"}, "/j"),
        ({"journalLocation": "file:/j"}, "/j"),
    ],
)
def test_the_journal_is_in_the_checkpoint_or_where_an_option_says(
    given: dict[str, str], journal: str
) -> None:
    """Paths and URIs of files. The timeout is as long as brokers allow by default."""
    transactions = parse_write_options(EXACTLY_ONCE | given).transactions
    assert transactions is not None
    assert (transactions.prefix, transactions.journal) == ("p", journal)
    assert transactions.timeout_ms == 900_000


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({}, "needs a directory in which the driver notes what it commits: set the option chec"),
        ({"checkpointLocation": "s3a://b/c"}, "not at s3a://b/c: set journalLocation"),
        ({"journalLocation": "/j", "kafka.acks": "1"}, "needs kafka.acks=-1"),
        (
            {"journalLocation": "/j", "kafka.api.version.request": "false"},
            "needs kafka.api.version.request=true",
        ),
        ({"journalLocation": "/j", "transactional.id.prefix": ""}, "is empty"),
        ({"journalLocation": "/j", "kafka.transactional.id": "x"}, "set the option transactional"),
    ],
)
def test_what_exactly_once_needs(given: dict[str, str], fault: str) -> None:
    """Less than that would be at least once without a word."""
    with pytest.raises(ConfigError) as refused:
        parse_write_options(EXACTLY_ONCE | given)
    assert fault in str(refused.value)


def test_a_journal_without_a_prefix_is_an_error() -> None:
    """Nothing would be noted there."""
    with pytest.raises(ConfigError, match="journalLocation: a write without transactional"):
        parse_write_options(BASE | {"journalLocation": "/j"})
