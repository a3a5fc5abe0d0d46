"""The place where `scripts/bench growth` measures: one broker, topics of some sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

SMALL: Final = 50
PARTITIONS: Final = (SMALL, 500, 5000)


@dataclass(frozen=True, slots=True)
class Place:
    """A running broker, and its process.

    directory   for what else a row needs
    kept        what rows have started, until all are measured
    """

    bootstrap: str
    zookeeper: str
    pid: int | None
    directory: Path
    kept: ExitStack
    _known: dict[object, Any] = field(default_factory=dict)

    def keep(self, key: object, make: Callable[[], AbstractContextManager[Any]]) -> Any:
        """Enter what `make` returns; the next call with this key returns the same."""
        if key not in self._known:
            self._known[key] = self.kept.enter_context(make())
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Dimension:
    """`cost(place, size)` is in `unit`, see its docstring.

    rounds   fewer, for what takes minutes
    """

    name: str
    unit: str
    sizes: Sequence[int]
    cost: Callable[[Place, int], float]
    rounds: int | None = None


def topic_of(partitions: int) -> str:
    return f"growth-{partitions}"
