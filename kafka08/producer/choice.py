"""Which of the two producers a command uses if its user names none.

Each release's console producer uses the producer of its age: 0.8.2.2 the old one, 0.9 and later
KafkaProducer. A command here meets brokers of any release, so it asks them. Source:
kafka.tools.ConsoleProducer 0.8.2.2 and 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafka08.errors import KafkaError
from kafka08.network.connection import Connection
from kafka08.producer.kafka_producer_config import STICKY, KafkaProducerConfig
from kafka08.producer.old.config import ProducerConfig
from kafka08.protocol.version_ranges import OF_0_8

OLD_KEYS: Final = frozenset({*ProducerConfig.KEYS, *ProducerConfig.ALIASES}).difference(
    KafkaProducerConfig.KEYS
)
"""The keys that only the old producer has."""
NEW_CLASSES: Final = "org.apache.kafka."
PATIENCE_MS: Final = 10_000


def name_old_producer(properties: Mapping[str, str]) -> bool:
    """Whether some of these keys are for the old producer alone. A partitioner.class is, unless it
    is a class of the new one: a callable that takes (key, partitions) cannot be told from others.
    """
    partitioner = properties.get("partitioner.class", NEW_CLASSES)
    is_new = partitioner == STICKY or partitioner.startswith(NEW_CLASSES)
    return bool(OLD_KEYS & properties.keys()) or not is_new


def need_old_producer(addresses: Iterable[tuple[str, int]]) -> bool:
    """Whether one of the brokers is of 0.8, or none responds: the old producer says so sooner. In a
    cluster of both ages that keeps messages with one key in one partition until the last of these
    brokers is upgraded."""
    responded = False
    for host, port in addresses:
        with Connection(
            host, port, timeout_ms=PATIENCE_MS, negotiates=True, accepts_0_8=True
        ) as connection:
            try:
                connection.open()
            except KafkaError:
                continue
            if connection.versions is OF_0_8:
                return True
            responded = True
    return not responded
