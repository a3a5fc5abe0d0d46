"""Describes the bytes of a connection, as far as their beginning tells."""

from __future__ import annotations

from typing import Final

from kafka08.protocol.apis import APIS

NAMES: Final = {api.key: api.name for api in APIS}
PART: Final = "part of a request"
LARGEST_REQUEST: Final = 1 << 24
"""More than clients and brokers of a run send: what claims more bytes is no start of a request."""


def api_key_of(data: bytes) -> int | None:
    """The API key of the request whose first bytes these are; None if no request begins here. The
    first bytes of a response look like those of an API with key 0."""
    size = int.from_bytes(data[:4], "big")
    return int.from_bytes(data[4:6], "big") if len(data) - 4 <= size < LARGEST_REQUEST else None


def name_of_request(item: object) -> str:
    """The API of a client's request, if a frame begins here."""
    if not isinstance(item, bytes):
        return "end of connection"
    if not item:
        return ""
    api_key = api_key_of(item)
    return PART if api_key is None else NAMES.get(api_key, PART)


def name_of_response(item: object) -> str:
    """The name of a broker's bytes."""
    if not isinstance(item, bytes):
        return "end of connection"
    return f"response, {len(item)} bytes" if item else "connected"
