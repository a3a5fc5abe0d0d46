"""Requests of any layout with one array as long as a request may have it, and drawn values."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kafka08.protocol.layout import (
    Array,
    Boolean,
    Bytes,
    Flag,
    Integer,
    Layout,
    Record,
    String,
    layout_of,
)
from kafka08.protocol.types import Request
from tests.strategies import BITS

Path = tuple[str, ...]
"""The names of fields from the outside to the inside."""


def large_requests(form: type, version: int, rng: random.Random) -> Iterator[Request]:
    """One for each array of the layout `form`. The items of arrays within it count too."""
    layout = layout_of(form)
    for path in _arrays(layout, ()):
        inner = len([other for other in _arrays(layout, ()) if other[: len(path)] == path])
        outer = len([other for other in _arrays(layout, ()) if path[: len(other)] == other]) - 1
        assert isinstance(layout, Record)
        assert issubclass(layout.cls, Request)
        count = (layout.cls.ITEMS_MAX - outer) // inner
        request: Request = _Drawn(rng, path, count).value(layout, ())
        request.version = version
        yield request


def _arrays(layout: Layout, path: Path) -> Iterator[Path]:
    if isinstance(layout, Array):
        yield path
        yield from _arrays(layout.item, path)
    elif isinstance(layout, Record):
        for name, field in layout.fields:
            yield from _arrays(field, (*path, name))


class _Drawn:
    """Values; the array at `path` has `count` items, every other one has one."""

    def __init__(self, rng: random.Random, path: Path, count: int) -> None:
        self._rng = rng
        self._path = path
        self._count = count
        self._names = 0

    def value(self, layout: Layout, path: Path) -> Any:
        match layout:
            case Integer():
                highest = (1 << (BITS[layout.code] - 1)) - 1
                return self._rng.choice((0, 1, -1, 5, self._names & highest, highest))
            case Flag():
                return self._rng.randrange(2)
            case Boolean():
                return self._rng.random() < 0.5
            case String():
                self._names += 1
                return self._rng.choice(("t", f"t{self._names}", f"{'x' * 20}{self._names}", "/"))
            case Bytes():
                return b""
            case Array():
                count = self._count if path == self._path else 1
                return [self.value(layout.item, path) for _ in range(count)]
            case Record():
                values = {name: self.value(field, (*path, name)) for name, field in layout.fields}
                return (
                    layout.cls(**values) if layout.make is None else layout.make(*values.values())
                )
