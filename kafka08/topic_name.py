"""The rules for topic names. Source: kafka.common.Topic 0.8.2.2."""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 255

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def fault_of(name: str) -> str | None:
    """Why `name` is illegal, in 0.8.2.2's words; None if it is legal."""
    if not name:
        return "topic name is illegal, can't be empty"
    if name in {".", ".."}:
        return 'topic name cannot be "." or ".."'
    if len(name) > MAX_LENGTH:
        return f"topic name is illegal, can't be longer than {MAX_LENGTH} characters"
    if not _LEGAL.fullmatch(name):
        return (
            f"topic name {name} is illegal, contains a character other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None
