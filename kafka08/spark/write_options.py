"""The options of a write, checked before the first request. Pure, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka08.arrow.option_text import OptionText
from kafka08.arrow.settings import (
    POLL_TIMEOUT_MS,
    ClusterAddress,
    ClusterKeys,
    ReadSettings,
    address_of,
)
from kafka08.config import INT_MAX, check_id, key
from kafka08.errors import ConfigError
from kafka08.protocol import compression
from kafka08.safety import ALLOW_DOC, OF_PRODUCERS
from kafka08.spark.transaction_options import (
    TRANSACTION_TIMEOUT_MS,
    TransactionOptions,
    journal_directory,
)
from kafka08.topic_name import fault_of

BATCH_BYTES: Final = 256 << 10
MURMUR2: Final = "murmur2"
BYTE_ARRAY_HASH: Final = "hashCode"
PARTITIONERS: Final[Mapping[str, str]] = {
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": MURMUR2,
    "kafka.producer.ByteArrayPartitioner": BYTE_ARRAY_HASH,
    "kafka.producer.DefaultPartitioner": BYTE_ARRAY_HASH,
}
"""Name of `kafka.partitioner.class` → its hash. Scala's old default partitioner hashes the address
of a byte[], which is random; here the name means the intended hash, of the content."""
OWN_ENCODING: Final = "keys and values are strings or bytes here; encode them with Spark"
REFUSED_KEYS: Final = {
    "key.serializer": OWN_ENCODING,
    "value.serializer": OWN_ENCODING,
    "interceptor.classes": "interceptors cannot run between Spark and the log",
    "transactional.id": "each task needs one of its own; set the option transactional.id.prefix",
}


class WriterKeys(ClusterKeys):
    """The `kafka.*` options of a write, with the new producer's names."""

    SAFETY = OF_PRODUCERS

    acks: str = key(
        "-1",
        choices=("-1", "all", "0", "1"),
        doc="Acknowledgements to wait for; -1: all in-sync replicas.",
    )
    compression_type: str = key("none", doc="none, gzip, snappy or lz4.")
    batch_size: int = key(BATCH_BYTES, low=1, doc="Bytes of one message set, uncompressed.")
    request_timeout_ms: int = key(
        10_000, low=1, doc="How long the leader may wait for its followers."
    )
    socket_timeout_ms: int = key(30_000, low=1, doc="How long to wait for a broker's response.")
    delivery_timeout_ms: int = key(
        POLL_TIMEOUT_MS, low=1, doc="A set that is not acknowledged within this time fails."
    )
    retries: int = key(
        INT_MAX, low=0, doc="Retries of an unacknowledged set within delivery.timeout.ms."
    )
    retry_backoff_ms: int = key(200, low=0, doc="Backoff between retries.")
    partitioner_class: str = key(
        "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
        choices=tuple(PARTITIONERS),
        doc="How a key is hashed.",
    )
    transaction_timeout_ms: int = key(
        TRANSACTION_TIMEOUT_MS,
        low=1,
        doc="With transactional.id.prefix: age at which the coordinator aborts a transaction.",
    )

    kafka08_allow_less_safety: str = key("", doc=ALLOW_DOC)

    ALIASES = {
        "request.required.acks": "acks",
        "compression.codec": "compression.type",
        "metadata.broker.list": "bootstrap.servers",
    }

    def validate(self) -> None:
        super().validate()
        if self.request_timeout_ms >= self.socket_timeout_ms:
            raise ConfigError(
                f"request.timeout.ms ({self.request_timeout_ms}) must be below socket.timeout.ms "
                f"({self.socket_timeout_ms})"
            )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of one write.

    topic        for all rows, overrides their column; None: from the column
    acks         -1, 0 or 1
    codec        of kafka08.protocol.compression
    batch_bytes  of one message set, before compression; a larger message is a set of its own
    hash_name    MURMUR2 or BYTE_ARRAY_HASH
    keeps_times  messages get the times of the column timestamp; else the time of sending
    partition_counts   topic → number of its partitions, from the driver
    transactions None: rows are written at least once
    """

    address: ClusterAddress
    settings: ReadSettings
    topic: str | None
    acks: int
    codec: int
    batch_bytes: int
    request_timeout_ms: int
    hash_name: str
    keeps_times: bool = False
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    transactions: TransactionOptions | None = None


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises ConfigError, which names the option and its allowed values."""
    text = OptionText(options)
    text.ignore("queryname")
    topic = text.take("topic")
    if topic is not None and (fault := fault_of(topic)):
        raise ConfigError(f"topic: {fault}")
    text.take_bool("includeHeaders", False)  # a column of headers is written without it too
    keeps_times = text.take_bool("includeTimestamp", False)
    prefix, journal = text.take("transactional.id.prefix"), text.take("journalLocation")
    checkpoint = text.take("checkpointLocation")
    given = text.take_kafka_keys(REFUSED_KEYS)
    text.finish()
    keys = WriterKeys(given)
    keys.log_notes()
    try:
        codec = compression.by_name(keys.compression_type)
    except ValueError as error:
        raise ConfigError(f"kafka.compression.type: {error}") from error
    transactions = None
    if prefix is not None:
        transactions = _transactions(prefix, keys, journal_directory(journal, checkpoint))
    elif journal is not None:
        raise ConfigError("journalLocation: a write without transactional.id.prefix has no journal")
    settings = ReadSettings(
        client_id=keys.client_id,
        socket_timeout_ms=keys.socket_timeout_ms,
        poll_timeout_ms=keys.delivery_timeout_ms,
        retries=None if keys.retries == INT_MAX else keys.retries,
        retry_interval_ms=keys.retry_backoff_ms,
    )
    return WriteOptions(
        address=address_of(keys),
        settings=settings,
        topic=topic,
        acks=-1 if keys.acks == "all" else int(keys.acks),
        codec=codec,
        batch_bytes=keys.batch_size,
        request_timeout_ms=keys.request_timeout_ms,
        hash_name=PARTITIONERS[keys.partitioner_class],
        keeps_times=keeps_times,
        transactions=transactions,
    )


def _transactions(prefix: str, keys: WriterKeys, journal: str) -> TransactionOptions:
    if not prefix:
        raise ConfigError("transactional.id.prefix is empty: give a name of this query")
    check_id("transactional.id.prefix", prefix)
    for name, fits, wanted in (
        ("acks", keys.acks in ("-1", "all"), "-1"),
        ("api.version.request", keys.api_version_request, "true"),
    ):
        if not fits:
            raise ConfigError(f"transactional.id.prefix needs kafka.{name}={wanted}")
    return TransactionOptions(prefix, keys.transaction_timeout_ms, journal)
