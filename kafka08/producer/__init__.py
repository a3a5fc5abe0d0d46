"""The producers: the old `Producer` of 0.8 (sync and async) and the new `KafkaProducer`.

The old one: start with `producer`; `event_handler` sends messages in columns (`encoded`), `routing`
chooses partitions, `async_queue` adds the async mode. The new one: start with `kafka_producer`;
`routes` finds the queue of a record's partition, `accumulator` keeps accepted records in batches
(`batch`), `sender` sends them through `network_client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka08.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kafka08.producer.callback_handler import CallbackHandler
    from kafka08.producer.config import ProducerConfig
    from kafka08.producer.encoders import DefaultEncoder, NullEncoder, StringEncoder
    from kafka08.producer.kafka_producer import KafkaProducer
    from kafka08.producer.kafka_producer_config import KafkaProducerConfig
    from kafka08.producer.partitioners import ByteArrayPartitioner, DefaultPartitioner
    from kafka08.producer.producer import Producer
    from kafka08.producer.record import KeyedMessage, ProducerRecord, RecordMetadata
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "callback_handler": ("CallbackHandler",),
            "config": ("ProducerConfig",),
            "encoders": (
                "DefaultEncoder",
                "NullEncoder",
                "StringEncoder",
            ),
            "kafka_producer": ("KafkaProducer",),
            "kafka_producer_config": ("KafkaProducerConfig",),
            "partitioners": (
                "ByteArrayPartitioner",
                "DefaultPartitioner",
            ),
            "producer": ("Producer",),
            "record": (
                "KeyedMessage",
                "ProducerRecord",
                "RecordMetadata",
            ),
        },
    )

__all__ = [
    "ByteArrayPartitioner",
    "CallbackHandler",
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
