"""From bytes to objects for the KafkaConsumer: `deserializer(topic, bytes) -> object`.

Configured by Java class name, by `module:callable`, or handed to the KafkaConsumer as any callable.
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
    """Bytes as they are."""
    return data


def deserialize_string(topic: str, data: bytes) -> str:
    """Text in UTF-8. UnicodeDecodeError, where Java puts U+FFFD in place of wrong bytes."""
    return data.decode()


def number(form: str) -> Deserializer:
    """A big-endian number of one size; struct.error for another size."""
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
"""Those that Kafka ships, by the names of their classes."""
