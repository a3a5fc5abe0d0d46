"""The former place of `partition_for_key`, for one release; it is in `partitioners`."""

from __future__ import annotations

from kafka08.deprecation import renamed
from kafka08.producer import partitioners

partition_for_key = renamed(
    "kafka08.producer.hash_partitioner.partition_for_key", partitioners.partition_for_key
)
