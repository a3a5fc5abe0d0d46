"""The captured exchanges of tests/data: what was sent, what came back, what each part means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "data"

FILES = (
    "api-0.8.2.2",
    "clients-0.8.2.2",
    "controller-0.8.2.2",
    "controller-0.9.0.1-pinned",
    "controller-0.10.2.2-pinned",
)
"""0.8.2.2 itself, and newer brokers that were told to speak its protocol to their peers."""


@dataclass(frozen=True)
class Exchange:
    """One request of a recording with its answer. Frames include the four bytes of their size;
    the stated parts are the recording's own decoding, in its own names."""

    name: str
    request: bytes
    response: bytes | None
    stated_request: dict[str, Any] | None
    stated_response: dict[str, Any] | None
    outcome: str

    def __str__(self) -> str:
        return self.name


@cache
def exchanges() -> tuple[Exchange, ...]:
    """Every exchange of every file, named `file:name#number`."""
    return tuple(
        Exchange(
            name=f"{file}:{entry['name']}#{number}",
            request=bytes.fromhex(entry["request_hex"]),
            response=bytes.fromhex(entry["response_hex"]) if "response_hex" in entry else None,
            stated_request=entry.get("request"),
            stated_response=entry.get("response"),
            outcome=entry.get("outcome", "response"),
        )
        for file in FILES
        for number, entry in enumerate(_entries(json.loads((DATA / f"{file}.json").read_text())))
    )


def _entries(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict) and "request_hex" in node:
        yield node
    elif isinstance(node, dict | list):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _entries(child)


REFUSED = {
    "offset-commit-v2-to-0.8.2.2",
    "join-group-090-bytes-to-082",
    "garbage-frame",
    "size-zero",
    "size-negative",
    "size-over-limit",
    "metadata-negative-count",
    *(f"unknown-api-{key}" for key in (13, 14, 15, 16, 18, 19, 99)),
}
"""Names of the requests whose bytes made the broker close the connection."""


def refused(exchange: Exchange) -> bool:
    return exchange.name.split(":")[1].split("#")[0] in REFUSED


def accepted_exchanges() -> list[Exchange]:
    return [exchange for exchange in exchanges() if not refused(exchange)]


def refused_exchanges() -> list[Exchange]:
    return [exchange for exchange in exchanges() if refused(exchange)]
