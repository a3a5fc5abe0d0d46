"""The captured exchanges of tests/data: what was sent, what came back, what each part means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kafka08.levels import Level

DATA = Path(__file__).parent.parent / "data"

FILES = {
    "api-0.8.2.2": Level.V0_8_2,
    "clients-0.8.2.2": Level.V0_8_2,
    "controller-0.8.2.2": Level.V0_8_2,
    "controller-0.9.0.1-pinned": Level.V0_8_2,
    "controller-0.10.2.2-pinned": Level.V0_8_2,
    "api-0.9.0.1": Level.V0_9_0,
    "controller-0.9.0.1": Level.V0_9_0,
    "0.10-api-admin": Level.V0_10_2,
    "0.10-api-data": Level.V0_10_2,
    "0.10-api-groups": Level.V0_10_2,
    "0.10-client-consumer": Level.V0_10_2,
    "controller-0.10.2.2": Level.V0_10_2,
    "schemas-0.10.2.2": Level.V0_10_2,
    "0.11-api-admin": Level.V0_11_0,
    "0.11-api-data": Level.V0_11_0,
    "0.11-transactions": Level.V0_11_0,
    "0.11-txn-coordinator": Level.V0_11_0,
    "0.11-idempotence": Level.V0_11_0,
}
"""File → the level whose protocol was spoken. "Pinned" brokers were told to speak 0.8.2 to their
peers."""
NO_RESPONSE = "no response within 3s"
CLOSED = "connection closed by broker"


@dataclass(frozen=True)
class Exchange:
    """One request of a recording with its response. Frames include the four bytes of their size;
    the stated parts are the recording's own decoding, in its own names."""

    name: str
    request: bytes
    response: bytes | None
    stated_request: dict[str, Any] | None
    stated_response: dict[str, Any] | None
    outcome: str
    level: Level

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
            level=level,
        )
        for file, level in FILES.items()
        for number, entry in enumerate(_entries(json.loads((DATA / f"{file}.json").read_text())))
        if "broker" not in entry  # of a later release, for comparison
    )


def _entries(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict) and "request_hex" in node:
        yield node
    elif isinstance(node, dict | list):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _entries(child)


REFUSED_BY_0_8_2 = {
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


REFUSED_FOR_ITS_SET = {
    f"produce-v3-{name}"
    for name in ("two-batches", "empty", "cut", "length-short", "magic1", "magic3")
}
"""Names of the requests to 0.11.0.3 that can be read, but have another set than one batch."""


def refused(exchange: Exchange) -> bool:
    """Whether the broker could not read the request."""
    if exchange.name.split(":")[1].split("#")[0] in REFUSED_FOR_ITS_SET:
        return False
    if exchange.level > Level.V0_8_2:
        return exchange.outcome in {CLOSED, NO_RESPONSE}
    return exchange.name.split(":")[1].split("#")[0] in REFUSED_BY_0_8_2


def accepted_exchanges(level: Level | None = None) -> list[Exchange]:
    """Those that were read, of all levels or of one."""
    return [
        exchange
        for exchange in exchanges()
        if not refused(exchange) and level in {None, exchange.level}
    ]


def refused_exchanges() -> list[Exchange]:
    return [exchange for exchange in exchanges() if refused(exchange)]
