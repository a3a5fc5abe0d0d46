"""Serializers of the new producer: `serializer(topic, object) -> bytes | None`.

Configured by Java class name, by `module:callable`, or passed to the KafkaProducer as any callable.
Never called for None, which is sent as null. Source:
org.apache.kafka.common.serialization.Serializer 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Serializer = Callable[[str, Any], bytes | None]


def serialize_bytes(topic: str, value: bytes | bytearray | memoryview) -> bytes:
    """Bytes unchanged (ByteArraySerializer); TypeError for anything else."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(
            f"ByteArraySerializer takes bytes, not {type(value).__name__}: set key.serializer or "
            "value.serializer, or give the KafkaProducer a serializer"
        )
    return bytes(value)


def serialize_string(topic: str, value: str) -> bytes:
    """Text in UTF-8 (StringSerializer); TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"StringSerializer takes str, not {type(value).__name__}")
    return value.encode()
