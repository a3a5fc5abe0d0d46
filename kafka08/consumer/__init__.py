"""Reading: `SimpleConsumer` asks one broker, the high-level consumer shares topics among a group.

Start with `simple` for the former.
"""

from __future__ import annotations

from kafka08.consumer.fetched import FetchedSet
from kafka08.consumer.simple import SimpleConsumer

__all__ = ["FetchedSet", "SimpleConsumer"]
