"""KafkaProducerConfig: every key of the new producer.

Defaults and ranges are those of org.apache.kafka.clients.producer.ProducerConfig 0.8.2.2; keys that
0.9 added have its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final, Unpack

from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.plugins import plugin
from kafka08.client.security import SecureClientConfig
from kafka08.config import INT_MAX, LONG_MAX, check_id, key
from kafka08.errors import ConfigError
from kafka08.producer.idempotence import UNACKNOWLEDGED_MAX, Idempotence, Terms
from kafka08.producer.partitioners import RecordPartitioner
from kafka08.producer.serializers import Serializer, serialize_bytes, serialize_string
from kafka08.protocol import compression
from kafka08.safety import ALLOW_DOC

if TYPE_CHECKING:
    from kafka08.producer.config_keywords import KafkaProducerConfigKeywords

ALL_ACKS: Final = ("all", "-1")
_SERIALIZATION: Final = "org.apache.kafka.common.serialization."
_SERIALIZERS: Final[dict[str, Callable[[KafkaProducerConfig], Serializer]]] = {
    _SERIALIZATION + "ByteArraySerializer": lambda _: serialize_bytes,
    _SERIALIZATION + "StringSerializer": lambda _: serialize_string,
}
SERIALIZERS_OF_BYTES: Final[Mapping[str, str]] = dict.fromkeys(
    ("key.serializer", "value.serializer"), _SERIALIZATION + "ByteArraySerializer"
)
"""The keys of a tool that sends bytes whatever its configuration says, as MirrorMaker and
ProducerPerformance do."""
_DEFAULT_PARTITIONERS: Final = (
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
    "org.apache.kafka.clients.producer.internals.Partitioner",
)

STICKY: Final = "sticky"
"""The value of partitioner.class for turns of a batch each."""


class KafkaProducerConfig(SecureClientConfig):
    """Configuration of a KafkaProducer. Times are milliseconds, sizes are bytes.

    Serializers, partitioner and interceptors take names of Java classes or `module:callable`.
    """

    bootstrap_servers: str = key(doc="host:port,host:port of brokers to learn the others from.")
    acks: str = key(
        "1",
        choices=(*ALL_ACKS, "0", "1"),
        doc="0: do not wait, 1: the leader has it, -1 or all: every in-sync replica has it. Unset: "
        "all with idempotence.",
    )
    retries: int = key(
        0, low=0, doc="Retries after the first attempt. Unset: without limit with idempotence."
    )
    batch_size: int = key(
        16384,
        low=0,
        doc="Size of a batch; a larger record gets its own batch. With idempotence, and not below "
        "the default, a batch grows to 131072 while an earlier one of its partition waits.",
    )
    linger_ms: int = key(0, low=0, high=LONG_MAX, doc="How long a batch may wait to become full.")
    buffer_memory: int = key(32 << 20, low=0, high=LONG_MAX, doc="Memory of all batches together.")
    compression_type: str = key(
        "none", choices=tuple(compression.CLIENT_CODECS.values()), doc="Codec of all batches."
    )
    max_request_size: int = key(
        1 << 20, low=0, doc="Largest record, and about the largest request."
    )
    max_block_ms: int = key(
        60_000, low=0, high=LONG_MAX, doc="How long send may block for metadata or memory."
    )
    block_on_buffer_full: bool | None = key(
        None, doc="0.8's key: whether send blocks without limit for memory, or not at all."
    )
    metadata_fetch_timeout_ms: int | None = key(
        None, low=0, high=LONG_MAX, doc="0.8's key: max.block.ms for metadata alone."
    )
    metadata_max_age_ms: int = key(
        300_000, low=0, high=LONG_MAX, doc="Age at which metadata is refreshed."
    )
    request_timeout_ms: int = key(
        30_000, low=1, doc="How long to wait for a response, and a batch for its leader."
    )
    timeout_ms: int = key(
        30_000,
        low=0,
        doc="How long the leader may wait for its followers; at most request.timeout.ms.",
    )
    retry_backoff_ms: int = key(
        100, low=0, high=LONG_MAX, doc="Backoff before a retry, and between metadata requests."
    )
    reconnect_backoff_ms: int = key(
        10,
        low=0,
        high=LONG_MAX,
        doc="Backoff before a reconnect to a failed broker; it doubles, up to 200 ms.",
    )
    max_in_flight_requests_per_connection: int = key(
        5, low=1, doc="Requests in flight per connection; 1 keeps the order under retries."
    )
    connections_max_idle_ms: int = key(
        540_000, low=-1, high=LONG_MAX, doc="Age of an unused connection that is closed; -1: never."
    )
    api_version_request: bool = key(
        True,
        doc="Ask brokers for the versions that they serve. With false messages have no timestamps.",
    )
    send_buffer_bytes: int = key(128 << 10, low=0, doc="SO_SNDBUF; 0 leaves it to the system.")
    receive_buffer_bytes: int = key(32 << 10, low=0, doc="SO_RCVBUF; 0 leaves it to the system.")
    client_id: str = key("", doc="Name in requests and broker logs.")
    key_serializer: str = key(_SERIALIZATION + "ByteArraySerializer", doc="Serializer of keys.")
    value_serializer: str = key(_SERIALIZATION + "ByteArraySerializer", doc="Serializer of values.")
    partitioner_class: str = key(
        _DEFAULT_PARTITIONERS[0],
        doc="Chooses the partition of a record that names none. sticky: as the default, but "
        "records without a key go to one partition until its batch is full or sent.",
    )
    enable_idempotence: bool | None = key(
        None,
        doc="Brokers store each record once. true: all brokers are of 0.11 or later; unset: where "
        "they are, unless acks, retries or max.in.flight.requests.per.connection forbid it.",
    )
    transactional_id: str = key(
        "", doc="Name of the producer whose transactions these are, for brokers from 0.11 on."
    )
    transaction_timeout_ms: int = key(
        60_000, low=1, doc="Age at which the coordinator aborts a transaction."
    )
    delivery_timeout_ms: int = key(
        120_000, low=0, doc="How long a batch is tried, if this is set, or with idempotence."
    )
    interceptor_classes: str = key("", doc="Comma list of module:callable that make interceptors.")
    kafka08_allow_less_safety: str = key("", doc=ALLOW_DOC)
    metric_reporters: str = key("", effect=False, doc="Java classes that report metrics.")
    metrics_num_samples: int = key(2, low=1, effect=False, doc="Samples of Java's metrics.")
    metrics_sample_window_ms: int = key(
        30_000, low=0, high=LONG_MAX, effect=False, doc="Length of a sample."
    )

    def __init__(
        self,
        properties: Mapping[str, Any] | None = None,
        /,
        **keywords: Unpack[KafkaProducerConfigKeywords],
    ) -> None:
        super().__init__(properties, **keywords)

    def validate(self) -> None:
        super().validate()
        parse_bootstrap(self.bootstrap_servers, "bootstrap.servers")
        check_id("client.id", self.client_id)
        if self.transactional_id:
            check_id("transactional.id", self.transactional_id)
            if self.enable_idempotence is False:
                raise ConfigError("transactional.id needs enable.idempotence=true, or unset")
        if self.idempotence is Idempotence.REQUIRED:
            for wanted in self._missing_for_idempotence():
                asks = "transactional.id" if self.transactional_id else "enable.idempotence=true"
                raise ConfigError(f"{asks} needs {wanted}")
        self.serializers()
        self.partitioner()

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return parse_bootstrap(self.bootstrap_servers, "bootstrap.servers")

    @property
    def idempotence(self) -> Idempotence:
        """Whether brokers are to store each record once."""
        if self.enable_idempotence or self.transactional_id:
            return Idempotence.REQUIRED
        is_off = self.enable_idempotence is False or any(self._missing_for_idempotence())
        return Idempotence.OFF if is_off else Idempotence.WANTED

    def _missing_for_idempotence(self) -> Iterator[str]:
        """Yields what keys that are set would have to be."""
        if "acks" in self.given and self.acks not in ALL_ACKS:
            yield "acks all"
        if "retries" in self.given and self.retries == 0:
            yield "retries above 0"
        if self.max_in_flight_requests_per_connection > UNACKNOWLEDGED_MAX:
            yield f"max.in.flight.requests.per.connection {UNACKNOWLEDGED_MAX} at most"

    def terms(self, *, once: bool) -> Terms:
        """Those for brokers that store each record `once`, or for others."""
        acks = -1 if self.acks in ALL_ACKS else int(self.acks)
        retries, is_timed = self.retries, "delivery.timeout.ms" in self.given
        if once:
            acks = -1
            if "retries" not in self.given:
                retries, is_timed = INT_MAX, True
            is_timed = is_timed or self.idempotence is Idempotence.REQUIRED
        return Terms(acks, retries, self.delivery_timeout_ms / 1000 if is_timed else inf)

    @property
    def codec(self) -> int:
        codecs = {name: codec for codec, name in compression.CLIENT_CODECS.items()}
        return codecs[self.compression_type]

    @property
    def memory_block_s(self) -> float:
        """How long send may wait for memory, in seconds."""
        if self.block_on_buffer_full is None:
            return self.max_block_ms / 1000
        return float("inf") if self.block_on_buffer_full else 0.0

    @property
    def metadata_block_s(self) -> float:
        """How long send may wait for metadata, in seconds."""
        limit = self.metadata_fetch_timeout_ms
        return (self.max_block_ms if limit is None else limit) / 1000

    def serializers(self) -> tuple[Serializer | None, Serializer | None]:
        """The serializers of keys and of values; None for plain bytes."""
        made = [
            plugin(name, value, _SERIALIZERS, self)
            for name, value in (
                ("key.serializer", self.key_serializer),
                ("value.serializer", self.value_serializer),
            )
        ]
        key_, value_ = (None if one is serialize_bytes else one for one in made)
        return key_, value_

    def partitioner(self) -> RecordPartitioner | None:
        """The configured partitioner; None for the default, and for sticky."""
        if self.partitioner_class in _DEFAULT_PARTITIONERS or self.is_sticky:
            return None
        return plugin("partitioner.class", self.partitioner_class, {}, self)

    @property
    def is_sticky(self) -> bool:
        """Whether records without a key go to one partition until its batch is full or sent."""
        return self.partitioner_class == STICKY

    def interceptors(self) -> list[object]:
        """New interceptors, in the configured order."""
        names = filter(None, map(str.strip, self.interceptor_classes.split(",")))
        return [plugin("interceptor.classes", name, {}, self)() for name in names]
