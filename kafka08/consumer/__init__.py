"""Reading: `SimpleConsumer` asks one broker, `PartitionReader` follows the leader of one partition,
`ConsumerConnector` shares topics among a group of ZooKeeper's, `KafkaConsumer` (in `polling`) among
a group with a coordinator.

Start with `simple` and `partition_reader` for the former. For the latter: `connector` puts the
parts together, `kafka_stream` is what a program iterates and `stream` is behind it, `rebalancer`
decides who reads what, `fetcher` brings it, `offset_store` remembers how far it got. `assignors`,
`assignment`, `subscription` and `java_pattern` are pure.
"""

from __future__ import annotations

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
from kafka08.consumer.polling.kafka_consumer import KafkaConsumer
from kafka08.consumer.polling.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.polling.questions import OffsetAndTimestamp
from kafka08.consumer.simple import SimpleConsumer
from kafka08.consumer.status import ConsumerState
from kafka08.consumer.subscription import Blacklist, Whitelist
from kafka08.kernel import MessageAndMetadata

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
