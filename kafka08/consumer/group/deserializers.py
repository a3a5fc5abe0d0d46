"""Deserializers of the KafkaConsumer: `deserializer(topic, bytes) -> object`.

Configured by Java class name or by `module:callable`, or passed to the KafkaConsumer as a callable.
Never called for null, which stays None. Source:
org.apache.kafka.common.serialization.Deserializer 0.10.2.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

Deserializer = Callable[[str, bytes], Any]

_SERIALIZATION: Final = "org.apache.kafka.common.serialization."
BYTES: Final = _SERIALIZATION + "ByteArrayDeserializer"


def deserialize_bytes(topic: str, data: bytes) -> bytes:
    """The bytes unchanged."""
    return data


def deserialize_string(topic: str, data: bytes) -> str:
    """Text in UTF-8. Raises UnicodeDecodeError where Java would insert U+FFFD."""
    return data.decode()


def number(form: str) -> Deserializer:
    """A deserializer of big-endian numbers of one size; struct.error for another size."""
    unpack = struct.Struct(form).unpack

    def deserialize(topic: str, data: bytes) -> Any:
        return unpack(data)[0]

    return deserialize


DESERIALIZERS: Final[dict[str, Deserializer]] = {
    BYTES: deserialize_bytes,
    _SERIALIZATION + "BytesDeserializer": deserialize_bytes,
    _SERIALIZATION + "ByteBufferDeserializer": deserialize_bytes,
    _SERIALIZATION + "StringDeserializer": deserialize_string,
    _SERIALIZATION + "IntegerDeserializer": number(">i"),
    _SERIALIZATION + "LongDeserializer": number(">q"),
    _SERIALIZATION + "DoubleDeserializer": number(">d"),
}
"""The deserializers that Kafka ships, by class name."""
