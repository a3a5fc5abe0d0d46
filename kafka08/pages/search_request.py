"""Parses a search for messages from the query of a URL. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka08.pages.messages import MESSAGES_MAX, SearchRequest, Start

OFFSET_MAX: Final = 2**63 - 1
PARTITIONS_MAX: Final = 100_000
LIMIT: Final = 50


def parse_search_request(query: Mapping[str, str]) -> SearchRequest:
    """The request in the parameters of a URL; ValueError for an illegal one."""
    topic = query.get("topic", "")
    if not topic:
        raise ValueError("topic is missing")
    try:
        start = Start(query.get("start", "latest"))
    except ValueError:
        raise ValueError(f"start is one of {', '.join(one.value for one in Start)}") from None
    at = positions_of(query.get("at", "")) if start is Start.AT else None
    partition = query.get("partition") or None
    return SearchRequest(
        topic,
        None if partition is None else number_of("partition", partition, PARTITIONS_MAX),
        start,
        number_of("number", query.get("number") or "0", OFFSET_MAX),
        at,
        max(1, number_of("limit", query.get("limit") or str(LIMIT), MESSAGES_MAX)),
        bytes_of(query, "key"),
        bytes_of(query, "text"),
    )


def positions_of(text: str) -> dict[int, int]:
    """partition → offset, from a text such as `0:120,3:7`."""
    found = {}
    for part in text.split(","):
        partition, _, offset = part.partition(":")
        number = number_of("a partition of at", partition, PARTITIONS_MAX)
        found[number] = number_of("an offset of at", offset, OFFSET_MAX)
    return found


def number_of(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise ValueError(f"{name} is a number from 0 to {most}, not {text!r}")
    return int(text)


def bytes_of(query: Mapping[str, str], name: str) -> bytes | None:
    """The parameter as bytes; None if it is empty or missing."""
    text = query.get(name)
    return text.encode() if text else None
