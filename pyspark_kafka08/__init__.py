"""Found by Spark by its name: makes `spark.read.format("kafka08")` work without registration."""

from __future__ import annotations

from kafka08.spark.source import DataSource as DefaultSource

__all__ = ["DefaultSource"]
