"""read_ranges: the DataFrame of a batch without a data source, for PySpark 3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka08.errors import ConfigError
from tests.spark.filling import Topics, collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_it_reads_the_rows_of_the_format(spark: SparkSession, brokers: Topics) -> None:
    """The same options give the same rows, columns and types, with several tasks for a
    partition."""
    from kafka08.spark import read_ranges, register

    register(spark)
    topic = brokers.filled([50, 30])
    options = {
        "kafka.bootstrap.servers": brokers.bootstrap,
        "subscribe": topic,
        "minPartitions": "7",
    }
    ours = read_ranges(spark, options)
    formats = spark.read.format("kafka08").options(**options).load()
    assert ours.schema == formats.schema
    assert ours.rdd.getNumPartitions() >= 7
    assert collected(ours) == collected(formats)
    assert len(collected(ours)) == 80


def test_columns_and_refusals(spark: SparkSession, brokers: Topics) -> None:
    """A schema chooses the columns and their order; an unknown option is named."""
    from pyspark.sql.types import StructType

    from kafka08.spark import read_ranges

    options = {"kafka.bootstrap.servers": brokers.bootstrap, "subscribe": brokers.filled([5, 5])}
    schema = StructType().add("offset", "long").add("value", "binary")
    assert read_ranges(spark, options, schema).columns == ["offset", "value"]
    with pytest.raises(ConfigError, match="nosuch"):
        read_ranges(spark, {**options, "nosuch": "1"})
