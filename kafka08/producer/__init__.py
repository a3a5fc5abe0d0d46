"""Writing: the old `Producer` of 0.8, configured by its own keys.

Start with `producer`; `event_handler` does the work, `routing` chooses partitions.
"""

from __future__ import annotations

from kafka08.producer.config import ProducerConfig
from kafka08.producer.encoders import DefaultEncoder, NullEncoder, StringEncoder
from kafka08.producer.message import KeyedMessage
from kafka08.producer.partitioners import ByteArrayPartitioner, DefaultPartitioner
from kafka08.producer.producer import Producer

__all__ = [
    "ByteArrayPartitioner",
    "DefaultEncoder",
    "DefaultPartitioner",
    "KeyedMessage",
    "NullEncoder",
    "Producer",
    "ProducerConfig",
    "StringEncoder",
]
