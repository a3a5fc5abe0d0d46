"""Points in time as arguments of `kafka08 consume`."""

from __future__ import annotations

from datetime import datetime


def parse_time(text: str) -> int:
    """`@ms` or `@2026-11-22T10:00`, in ms since 1970. ValueError for other texts."""
    time = text.removeprefix("@")
    if time.isdecimal():
        return int(time)
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def is_time(text: str) -> bool:
    """Whether it is `@` and a time."""
    try:
        parse_time(text)
    except ValueError:
        return False
    return text.startswith("@")
