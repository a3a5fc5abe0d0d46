"""A member of a group by 0.8.2.2's own consumer, to be killed. See JvmMember.java."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.interop.jvm import command, compiled

SOURCE: Final = Path(__file__).parent / "JvmMember.java"


def jvm_member(topic: str, *properties: str) -> list[str]:
    """Its command line; a property is `key=value`."""
    return command(SOURCE.stem, topic, *properties, classes=compiled(SOURCE))
