"""Requests of any layout with drawn values: sound ones, odd ones, and some with one array as long
as a request may have it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from kafka08.protocol import message_set
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
from kafka08.protocol.types import Form, Request
from tests.strategies import BITS

Path = tuple[str, ...]
"""The names of fields from the outside to the inside."""


LED: Final = "led"
FOLLOWED: Final = "followed"
INTERNAL: Final = ("__consumer_offsets", "__transaction_state")
NAMES: Final = (
    *(LED, LED, FOLLOWED, "made", "consumer", "range", "m", "1", *INTERNAL),
    *("", "/", "x" * 249, "é" * 200, "\n\x1b[2J"),
)
"""Topics that a test makes, and names that are good or bad for anything."""
LIKELY: Final[dict[str, tuple[int, ...]]] = {
    "controller_epoch": (5, 5, 4),
    "leader": (1, 2, -1),
    "replica_id": (-1, -1, 2, 7),
    "partition": (0, 0, 1, 5),
    "timeout_ms": (0, 100),
    "max_wait_ms": (0, 100),
}
"""A field → the values that get a request furthest."""


def drawn_request(form: Form, version: int, rng: random.Random) -> Request:
    """Arrays are empty or short, and now and then long. Message sets are sound or damaged."""

    def count(path: Path) -> int:
        return rng.choice((0, 1, 1, 2, 3, 20) if len(path) < 2 else (0, 1, 2))

    draw = _Drawn(rng, count, lambda: rng.choice(NAMES), lambda: drawn_set(rng))
    request: Request = draw.value(layout_of(form), ())
    request.version = version
    return request


def drawn_set(rng: random.Random) -> bytes:
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(rng.randrange(100))
    pairs = [(b"k", bytes(rng.randrange(50)))] * rng.randrange(1, 20)
    data = bytearray(message_set.encode(pairs, rng.choice((0, 1, 2)), magic=rng.choice((0, 1))))
    if kind < 3:
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def large_requests(form: Form, version: int, rng: random.Random) -> Iterator[Request]:
    """One for each array of the layout `form`. The items of arrays within it count too."""
    layout = layout_of(form)
    for path in _arrays(layout, ()):
        inner = len([other for other in _arrays(layout, ()) if other[: len(path)] == path])
        outer = len([other for other in _arrays(layout, ()) if path[: len(other)] == other]) - 1
        assert isinstance(layout, Record)
        assert issubclass(layout.cls, Request)
        count = (layout.cls.ITEMS_MAX - outer) // inner
        request: Request = _long_at(path, count, rng).value(layout, ())
        request.version = version
        yield request


def _long_at(path: Path, count: int, rng: random.Random) -> _Drawn:
    numbers = itertools.count()
    return _Drawn(
        rng,
        lambda at: count if at == path else 1,
        lambda: rng.choice(("t", f"t{next(numbers)}", f"{'x' * 20}{next(numbers)}", "/")),
        lambda: b"",
    )


def _arrays(layout: Layout, path: Path) -> Iterator[Path]:
    if isinstance(layout, Array):
        yield path
        yield from _arrays(layout.item, path)
    elif isinstance(layout, Record):
        for name, field in layout.fields:
            yield from _arrays(field, (*path, name))


class _Drawn:
    """Values: the number of items of an array at a path, texts and bytes as the callables say."""

    def __init__(
        self,
        rng: random.Random,
        count: Callable[[Path], int],
        text: Callable[[], str],
        data: Callable[[], bytes],
    ) -> None:
        self._rng = rng
        self._count = count
        self._text = text
        self._data = data

    def value(self, layout: Layout, path: Path) -> Any:
        match layout:
            case Integer():
                likely = LIKELY.get(path[-1])
                if likely and self._rng.random() < 0.8:
                    return self._rng.choice(likely)
                highest = (1 << (BITS[layout.code] - 1)) - 1
                return self._rng.choice((0, 0, 1, -1, 5, 100, highest, -highest - 1))
            case Flag():
                return self._rng.randrange(2)
            case Boolean():
                return self._rng.random() < 0.5
            case String():
                return self._text()
            case Bytes():
                return self._data()
            case Array():
                return [self.value(layout.item, path) for _ in range(self._count(path))]
            case Record():
                values = {name: self.value(field, (*path, name)) for name, field in layout.fields}
                return (
                    layout.cls(**values) if layout.make is None else layout.make(*values.values())
                )
