"""Level: the Kafka release whose protocol a broker speaks.

A level decides the versions of the APIs (kafka08.protocol.served), the error codes, and a broker's
registration in ZooKeeper. Levels compare by age.
"""

from __future__ import annotations

import enum
from typing import Final, TypeVar

T = TypeVar("T")


class Level(enum.IntEnum):
    """A fully supported release. `str(level)` is its number, such as 0.8.2."""

    V0_8_2 = 1
    """0.8.2.2: the offsets topic; consumer groups in ZooKeeper."""
    V0_9_0 = 2
    """0.9.0.1: the group coordinator and throttle times."""
    V0_10_2 = 3
    """0.10.2.2: message timestamps, ApiVersions, topics created by request."""
    V0_11_0 = 4
    """0.11.0.3: record batches with headers, idempotent producers, transactions.
    kafka08.protocol.served lists the versions that are not served yet."""

    def __str__(self) -> str:
        return self.name.removeprefix("V").replace("_", ".")

    @classmethod
    def named(cls, number: str) -> Level:
        """The level of a number such as 0.8.2; KeyError if there is none."""
        return cls[f"V{number.replace('.', '_')}"]


class ByLevel(dict[Level, T]):
    """A table whose entries hold from their level on, up to that of the next entry."""

    def __missing__(self, level: Level) -> T:
        self[level] = found = self[max(since for since in self if since < level)]
        return found


NEWEST: Final = Level.V0_11_0
"""The newest level. New local clusters have it by default, so that clients of all ages need no
settings. `api.level` of a single broker is 0.8.2 by default."""

LEVELS: Final = tuple(str(level) for level in Level)
"""The numbers of all levels, ascending."""


def level_fault(level: str, kept: str) -> str | None:
    """Why brokers of this level must not start on data of that one; None if they may."""
    if LEVELS.index(level) >= LEVELS.index(kept):
        return None
    return f"{level}, but the brokers have data of level {kept}, which an earlier one cannot read"
