"""Points in time, as arguments of commands and in what they print."""

from __future__ import annotations

from datetime import UTC, datetime

from kafka08.config import LONG_MAX
from kafka08.structs import TopicPartition


def parse_ms(text: str) -> int:
    """`1795341600000` or `2026-11-22T10:00[+01:00]`, in ms since 1970. ValueError for other texts,
    and for times before 1970: brokers take some of their numbers for other questions."""
    try:
        time_ms = int(text) if text.isdecimal() else _of_iso(text)
    except OverflowError as error:  # the year 1, in some time zones
        raise ValueError(f"{text!r} is not a time since 1970") from error
    if not 0 <= time_ms <= LONG_MAX:
        raise ValueError(f"{text!r} is not a time since 1970")
    return time_ms


def _of_iso(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def is_time(text: str) -> bool:
    """Whether it is `@` and a time for `parse_ms`."""
    try:
        parse_ms(text.removeprefix("@"))
    except ValueError:
        return False
    return text.startswith("@")


def no_times(tp: TopicPartition) -> str:
    """Why a time finds nothing in a partition that has messages."""
    return (
        f"{tp}: none of its messages has a timestamp, so a time finds none. Clients before 0.10 "
        "wrote them, or the old Producer (kafka08 produce --old-producer), or the topic's "
        "message.format.version is below 0.10"
    )


def moment(time_ms: int) -> str:
    """The time in UTC; the number itself if no calendar has it, as when a client wrote
    nanoseconds."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    except (ValueError, OverflowError, OSError):  # beyond the year 9999, or the system's limit
        return f"{time_ms} ms since 1970"
