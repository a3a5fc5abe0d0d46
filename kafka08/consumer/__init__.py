"""The consumers. `SimpleConsumer` sends requests to one broker, `PartitionReader` follows the
leader of one partition, `ConsumerConnector` shares topics among a ZooKeeper group, `KafkaConsumer`
(in `polling`) among a group with a coordinator.

Start with `simple` and `partition_reader` for the first two. For groups: `connector` wires the
parts, a program iterates a `kafka_stream` with `stream` behind it, `rebalancer` claims and releases
partitions, `fetcher` fetches them, `offset_store` commits. `assignors`, `assignment`,
`subscription` and `java_pattern` are pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka08.kernel import MessageAndMetadata
from kafka08.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kafka08.consumer.batch import MessageBatch
    from kafka08.consumer.config import ConsumerConfig
    from kafka08.consumer.connector import ConsumerConnector
    from kafka08.consumer.fetched import FetchedSet
    from kafka08.consumer.kafka_stream import KafkaStream
    from kafka08.consumer.polling.assignors import (
        MemberAssignment,
        MemberSubscription,
        PartitionAssignor,
    )
    from kafka08.consumer.polling.broker_queries import OffsetAndTimestamp
    from kafka08.consumer.polling.kafka_consumer import KafkaConsumer
    from kafka08.consumer.polling.kafka_consumer_config import KafkaConsumerConfig
    from kafka08.consumer.simple import SimpleConsumer
    from kafka08.consumer.status import ConsumerState
    from kafka08.consumer.subscription import Blacklist, Whitelist
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "batch": ("MessageBatch",),
            "config": ("ConsumerConfig",),
            "connector": ("ConsumerConnector",),
            "fetched": ("FetchedSet",),
            "kafka_stream": ("KafkaStream",),
            "polling.assignors": (
                "MemberAssignment",
                "MemberSubscription",
                "PartitionAssignor",
            ),
            "polling.broker_queries": ("OffsetAndTimestamp",),
            "polling.kafka_consumer": ("KafkaConsumer",),
            "polling.kafka_consumer_config": ("KafkaConsumerConfig",),
            "simple": ("SimpleConsumer",),
            "status": ("ConsumerState",),
            "subscription": (
                "Blacklist",
                "Whitelist",
            ),
        },
    )

__all__ = [
    "Blacklist",
    "ConsumerConfig",
    "ConsumerConnector",
    "ConsumerState",
    "FetchedSet",
    "KafkaConsumer",
    "KafkaConsumerConfig",
    "KafkaStream",
    "MemberAssignment",
    "MemberSubscription",
    "MessageAndMetadata",
    "MessageBatch",
    "OffsetAndTimestamp",
    "PartitionAssignor",
    "SimpleConsumer",
    "Whitelist",
]
