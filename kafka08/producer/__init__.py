"""Writing: the old `Producer` of 0.8, configured by its own keys.

Start with `producer`; `event_handler` does the work, `routing` chooses partitions.
"""

from __future__ import annotations

from kafka08.producer.config import ProducerConfig
from kafka08.producer.encoders import DefaultEncoder, NullEncoder, StringEncoder
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.message import KeyedMessage
from kafka08.producer.partitioners import ByteArrayPartitioner, DefaultPartitioner
from kafka08.producer.producer import Producer
from kafka08.producer.record import ProducerRecord, RecordMetadata

__all__ = [
    "ByteArrayPartitioner",
    "DefaultEncoder",
    "DefaultPartitioner",
    "KafkaProducer",
    "KafkaProducerConfig",
    "KeyedMessage",
    "NullEncoder",
    "Producer",
    "ProducerConfig",
    "ProducerRecord",
    "RecordMetadata",
    "StringEncoder",
]
