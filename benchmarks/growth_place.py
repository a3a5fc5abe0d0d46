"""The place where `scripts/bench growth` measures: one broker, topics of some sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

SMALL: Final = 50
PARTITIONS: Final = (SMALL, 500, 5000)


class Place(NamedTuple):
    """A running broker, and its process."""

    bootstrap: str
    zookeeper: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class Dimension:
    """`cost(place, size)` is in `unit`, see its docstring."""

    name: str
    unit: str
    sizes: Sequence[int]
    cost: Callable[[Place, int], float]


def topic_of(partitions: int) -> str:
    return f"growth-{partitions}"
