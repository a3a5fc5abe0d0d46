"""ProducerConfig: every key of the old producer.

Defaults and ranges are those of kafka.producer.ProducerConfig, AsyncProducerConfig and
SyncProducerConfig 0.8.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack

from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.plugins import plugin
from kafka08.config import Config, check_id, key
from kafka08.errors import ConfigError
from kafka08.producer.old.encoders import DefaultEncoder, Encoder, NullEncoder, StringEncoder
from kafka08.producer.partitioners import ByteArrayPartitioner, DefaultPartitioner, Partitioner
from kafka08.protocol import compression

if TYPE_CHECKING:
    from kafka08.producer.config_keywords import ProducerConfigKeywords

LEGAL_CLIENT_ID: Final = re.compile(r"[a-zA-Z0-9._-]*")

QUEUE_KEYS: Final = frozenset(
    {
        "queue.buffering.max.ms",
        "queue.buffering.max.messages",
        "queue.enqueue.timeout.ms",
        "batch.num.messages",
        "callback.handler",
    }
)
"""Keys that only producer.type=async uses."""
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

    The three `….class` keys take the names of Kafka's Java classes or `module:callable`.
    """

    ALIASES: ClassVar[dict[str, str]] = {
        "queue.time": "queue.buffering.max.ms",
        "queue.size": "queue.buffering.max.messages",
        "queue.enqueueTimeout.ms": "queue.enqueue.timeout.ms",
        "batch.size": "batch.num.messages",
    }
    """0.7's names."""

    metadata_broker_list: str = key(doc="host:port,host:port of brokers to learn the others from.")
    request_required_acks: int = key(
        0,
        low=-1,
        high=1,
        doc="0: do not wait, 1: the leader has it, -1: every in-sync replica has it.",
    )
    request_timeout_ms: int = key(
        10_000, low=1, doc="How long the leader may wait for its followers' acknowledgements."
    )
    producer_type: str = key(
        "sync",
        choices=("sync", "async"),
        doc="sync: send returns after the acknowledgement; async: send queues.",
    )
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
    message_send_max_retries: int = key(3, low=0, doc="Retries after the first attempt.")
    retry_backoff_ms: int = key(
        100, low=0, doc="Backoff before a retry, while a leader is elected."
    )
    topic_metadata_refresh_interval_ms: int = key(
        600_000, doc="Age at which metadata is refreshed; 0: at each send, negative: never."
    )
    send_buffer_bytes: int = key(100 * 1024, low=0, doc="SO_SNDBUF; 0 leaves it to the system.")
    client_id: str = key("", doc="Name in requests and broker logs.")
    queue_buffering_max_ms: int = key(
        5000, low=0, doc="With producer.type=async: how long a message may wait for its batch."
    )
    queue_buffering_max_messages: int = key(
        10_000, low=1, doc="With producer.type=async: length of the queue."
    )
    queue_enqueue_timeout_ms: int = key(
        -1, doc="With producer.type=async: wait for a full queue; 0: none, negative: no limit."
    )
    batch_num_messages: int = key(200, low=1, doc="With producer.type=async: messages in a batch.")
    event_handler: str | None = key(
        None, doc="module:callable(config) that replaces the sender; 0.7's key."
    )
    callback_handler: str | None = key(
        None, doc="module:callable that makes a CallbackHandler; 0.7's key, for async."
    )

    def __init__(
        self,
        properties: Mapping[str, Any] | None = None,
        /,
        **keywords: Unpack[ProducerConfigKeywords],
    ) -> None:
        super().__init__(properties, **keywords)

    @classmethod
    def is_exact(cls, given: Mapping[str, Any]) -> bool:
        return True

    def validate(self) -> None:
        parse_bootstrap(self.metadata_broker_list, "metadata.broker.list")
        if not LEGAL_CLIENT_ID.fullmatch(self.client_id):
            raise ConfigError(
                f"client.id: {self.client_id!r} has a character other than ASCII letters, digits, "
                "'.', '_' and '-'"
            )
        check_id("client.id", self.client_id)
        if self.batch_num_messages > self.queue_buffering_max_messages:
            raise ConfigError(
                f"batch.num.messages: {self.batch_num_messages} is larger than "
                f"queue.buffering.max.messages, {self.queue_buffering_max_messages}"
            )
        self.codec_of("")
        self.encoder()
        self.key_encoder()
        self.partitioner()
        self.plugin_of("event.handler", self.event_handler)
        self.plugin_of("callback.handler", self.callback_handler)

    @property
    def without_effect(self) -> list[str]:
        """The queue's keys too if there is no queue."""
        unused = self.given & QUEUE_KEYS if self.producer_type == "sync" else frozenset()
        return sorted({*super().without_effect, *unused})

    def plugin_of(self, name: str, value: str | None) -> Callable[..., Any] | None:
        """The callable named by the value of key `name`; None if the key is not set."""
        return None if value is None else plugin(name, value, {}, self)

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return parse_bootstrap(self.metadata_broker_list, "metadata.broker.list")

    def codec_of(self, topic: str) -> int:
        """The number of the compression codec for `topic`, 0 for none."""
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
