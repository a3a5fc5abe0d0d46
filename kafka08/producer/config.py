"""ProducerConfig: every key of the old producer.

Defaults and ranges are those of kafka.producer.ProducerConfig, AsyncProducerConfig and
SyncProducerConfig 0.8.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kafka08.client.bootstrap import parse_bootstrap
from kafka08.config import Config, key
from kafka08.errors import ConfigError
from kafka08.producer.encoders import DefaultEncoder, Encoder, NullEncoder, StringEncoder
from kafka08.producer.partitioners import ByteArrayPartitioner, DefaultPartitioner, Partitioner
from kafka08.producer.plugins import plugin
from kafka08.protocol import compression

LEGAL_CLIENT_ID: Final = re.compile(r"[a-zA-Z0-9._-]*")

ENCODERS: Final[dict[str, Callable[[ProducerConfig], Encoder]]] = {
    "kafka.serializer.DefaultEncoder": lambda _: DefaultEncoder(),
    "kafka.serializer.StringEncoder": lambda config: StringEncoder(config.serializer_encoding),
    "kafka.serializer.NullEncoder": lambda _: NullEncoder(),
}
PARTITIONERS: Final[dict[str, Callable[[ProducerConfig], Partitioner]]] = {
    "kafka.producer.DefaultPartitioner": lambda _: DefaultPartitioner(),
    "kafka.producer.ByteArrayPartitioner": lambda _: ByteArrayPartitioner(),
}


class ProducerConfig(Config):
    """Configuration of a Producer. Times are milliseconds, sizes are bytes.

    The three `….class` keys take the Java names that Kafka ships or `module:callable`.
    """

    metadata_broker_list: str = key(doc="host:port,host:port of brokers to learn the others from.")
    request_required_acks: int = key(
        0,
        low=-1,
        high=1,
        doc="0: do not wait, 1: the leader has it, -1: every in-sync replica has it.",
    )
    request_timeout_ms: int = key(
        10_000, low=1, doc="How long the leader may wait for the acknowledgements of others."
    )
    producer_type: str = key("sync", choices=("sync", "async"), doc="sync: send returns when done.")
    serializer_class: str = key("kafka.serializer.DefaultEncoder", doc="Encoder of values.")
    key_serializer_class: str | None = key(
        None, doc="Encoder of keys; serializer.class when absent."
    )
    serializer_encoding: str = key("UTF8", doc="Charset of StringEncoder.")
    partitioner_class: str = key(
        "kafka.producer.DefaultPartitioner", doc="Chooses the partition of a message with a key."
    )
    compression_codec: str = key("none", doc="none, gzip, snappy, lz4, or their numbers 0 to 3.")
    compressed_topics: str | None = key(
        None, doc="Comma list of the topics to compress; all when absent or empty."
    )
    message_send_max_retries: int = key(3, low=0, doc="Further tries after the first one.")
    retry_backoff_ms: int = key(100, low=0, doc="Wait before a further try, for an election.")
    topic_metadata_refresh_interval_ms: int = key(
        600_000, doc="Age at which metadata is asked for anew; 0: at each send, negative: never."
    )
    send_buffer_bytes: int = key(100 * 1024, low=0, doc="SO_SNDBUF; 0 leaves it to the system.")
    client_id: str = key("", doc="Name in requests and broker logs.")
    queue_buffering_max_ms: int = key(
        5000, low=0, effect=False, doc="Of producer.type=async: longest stay in the queue."
    )
    queue_buffering_max_messages: int = key(
        10_000, low=1, effect=False, doc="Of producer.type=async: length of the queue."
    )
    queue_enqueue_timeout_ms: int = key(
        -1, effect=False, doc="Of producer.type=async: longest wait for room in the queue."
    )
    batch_num_messages: int = key(
        200, low=1, effect=False, doc="Of producer.type=async: messages that are sent together."
    )

    def validate(self) -> None:
        parse_bootstrap(self.metadata_broker_list, "metadata.broker.list")
        if not LEGAL_CLIENT_ID.fullmatch(self.client_id):
            raise ConfigError(
                f"client.id: {self.client_id!r} has a character other than ASCII letters, digits, "
                "'.', '_' and '-'"
            )
        if self.producer_type == "async":
            raise ConfigError(
                "producer.type: 'async' (the queue and its thread) is not there yet; use 'sync'"
            )
        if self.batch_num_messages > self.queue_buffering_max_messages:
            raise ConfigError(
                f"batch.num.messages: {self.batch_num_messages} is larger than "
                f"queue.buffering.max.messages, {self.queue_buffering_max_messages}"
            )
        self.codec_of("")
        self.encoder()
        self.key_encoder()
        self.partitioner()

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return parse_bootstrap(self.metadata_broker_list, "metadata.broker.list")

    def codec_of(self, topic: str) -> int:
        """The number of the codec that messages for `topic` are compressed with, 0 for none."""
        try:
            codec = compression.by_name(self.compression_codec)
        except ValueError as error:
            raise ConfigError(f"compression.codec: {error}") from None
        topics = [name.strip() for name in (self.compressed_topics or "").split(",")]
        return codec if topic in topics or not any(topics) else compression.NONE

    def encoder(self) -> Encoder:
        """A new encoder of values."""
        return plugin("serializer.class", self.serializer_class, ENCODERS, self)

    def key_encoder(self) -> Encoder:
        """A new encoder of keys."""
        if self.key_serializer_class is None:
            return self.encoder()
        return plugin("key.serializer.class", self.key_serializer_class, ENCODERS, self)

    def partitioner(self) -> Partitioner:
        """A new partitioner."""
        return plugin("partitioner.class", self.partitioner_class, PARTITIONERS, self)
