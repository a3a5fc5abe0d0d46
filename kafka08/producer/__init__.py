"""The producers: `KafkaProducer`, and in `old` the `Producer` of 0.8.

Start with `kafka_producer`; `topic_routes` finds the queue of a record's partition, `accumulator`
keeps accepted records in batches (`batch`), `sender` sends them through `network_client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka08.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kafka08.producer.async_producer import AsyncKafkaProducer as AsyncKafkaProducer
    from kafka08.producer.kafka_producer import KafkaProducer
    from kafka08.producer.kafka_producer_config import KafkaProducerConfig
    from kafka08.producer.old.callback_handler import CallbackHandler
    from kafka08.producer.old.config import ProducerConfig
    from kafka08.producer.old.encoders import DefaultEncoder, NullEncoder, StringEncoder
    from kafka08.producer.old.producer import Producer
    from kafka08.producer.partitioners import ByteArrayPartitioner, DefaultPartitioner
    from kafka08.producer.record import KeyedMessage, ProducerRecord, RecordMetadata
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "async_producer": ("AsyncKafkaProducer",),
            "old.callback_handler": ("CallbackHandler",),
            "old.config": ("ProducerConfig",),
            "old.encoders": (
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
            "old.producer": ("Producer",),
            "record": (
                "KeyedMessage",
                "ProducerRecord",
                "RecordMetadata",
            ),
        },
    )

# Without the clients for asyncio, which need an extra: `import *` would need it, too.
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
