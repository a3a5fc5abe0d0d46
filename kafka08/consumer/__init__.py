"""The consumers. `SimpleConsumer` sends requests to one broker, `PartitionReader` follows the
leader of one partition. `ConsumerConnector` (in `zookeeper`) shares topics among a ZooKeeper group,
`KafkaConsumer` (in `group`) among a group with a coordinator; `fetching` is what both share: sets
on their way from a leader to a stream.

Which topics a pattern means is decided by `subscription`, with Java's patterns (`java_pattern`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka08.kernel import MessageAndMetadata
from kafka08.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kafka08.consumer.fetching.batch import MessageBatch
    from kafka08.consumer.fetching.fetched import FetchedSet
    from kafka08.consumer.fetching.truncation import LogTruncated
    from kafka08.consumer.group.assignors import (
        MemberAssignment,
        MemberSubscription,
        PartitionAssignor,
    )
    from kafka08.consumer.group.async_consumer import AsyncKafkaConsumer as AsyncKafkaConsumer
    from kafka08.consumer.group.broker_queries import OffsetAndTimestamp
    from kafka08.consumer.group.kafka_consumer import KafkaConsumer
    from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
    from kafka08.consumer.simple import SimpleConsumer
    from kafka08.consumer.subscription import Blacklist, Whitelist
    from kafka08.consumer.zookeeper.config import ConsumerConfig
    from kafka08.consumer.zookeeper.connector import ConsumerConnector
    from kafka08.consumer.zookeeper.kafka_stream import KafkaStream
    from kafka08.consumer.zookeeper.status import ConsumerState
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "fetching.batch": ("MessageBatch",),
            "zookeeper.config": ("ConsumerConfig",),
            "zookeeper.connector": ("ConsumerConnector",),
            "fetching.fetched": ("FetchedSet",),
            "fetching.truncation": ("LogTruncated",),
            "zookeeper.kafka_stream": ("KafkaStream",),
            "group.assignors": (
                "MemberAssignment",
                "MemberSubscription",
                "PartitionAssignor",
            ),
            "group.async_consumer": ("AsyncKafkaConsumer",),
            "group.broker_queries": ("OffsetAndTimestamp",),
            "group.kafka_consumer": ("KafkaConsumer",),
            "group.kafka_consumer_config": ("KafkaConsumerConfig",),
            "simple": ("SimpleConsumer",),
            "zookeeper.status": ("ConsumerState",),
            "subscription": (
                "Blacklist",
                "Whitelist",
            ),
        },
    )

# Without the clients for asyncio, which need an extra: `import *` would need it, too.
__all__ = [
    "Blacklist",
    "ConsumerConfig",
    "ConsumerConnector",
    "ConsumerState",
    "FetchedSet",
    "KafkaConsumer",
    "KafkaConsumerConfig",
    "KafkaStream",
    "LogTruncated",
    "MemberAssignment",
    "MemberSubscription",
    "MessageAndMetadata",
    "MessageBatch",
    "OffsetAndTimestamp",
    "PartitionAssignor",
    "SimpleConsumer",
    "Whitelist",
]
