"""error_text: the text about an error in a response."""

from __future__ import annotations

from kafka08.errors import ApiError, KafkaError
from kafka08.kernel.types import STRING_BYTES_MAX


def error_text(error: KafkaError, most_bytes: int = STRING_BYTES_MAX) -> str:
    """The text without name and code. It may contain what was requested: it ends where it is too
    long for a response."""
    text = error.detail if isinstance(error, ApiError) else str(error)
    return text.encode()[:most_bytes].decode(errors="ignore")
