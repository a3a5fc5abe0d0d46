"""What the annotations of a message class say, as a tree that the compiler walks.

    Integer            fixed width; `code` is its letter in `struct`
    Flag               one byte, 0 or 1
    Text, Blob         a length of two or four bytes, then that many bytes
    Array              a count of four bytes, then that many items
    Record             the fields of a dataclass, one after another

`size_min` is the fewest bytes a value can take: a count is refused when `count * size_min` is more
than what is left, before anything is made for its items.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args, get_origin, get_type_hints

from kafka08.protocol.types import Primitive


@dataclass(frozen=True, slots=True)
class Integer:
    code: str
    size_min: int


@dataclass(frozen=True, slots=True)
class Flag:
    size_min: int = 1


@dataclass(frozen=True, slots=True)
class Text:
    nullable: bool
    size_min: int = 2


@dataclass(frozen=True, slots=True)
class Blob:
    nullable: bool
    size_min: int = 4


@dataclass(frozen=True, slots=True)
class Array:
    item: Layout
    size_min: int = 4


@dataclass(frozen=True, slots=True)
class Record:
    cls: type
    fields: tuple[tuple[str, Layout], ...]

    @property
    def size_min(self) -> int:
        return sum(layout.size_min for _, layout in self.fields)


Layout: TypeAlias = Integer | Flag | Text | Blob | Array | Record

PRIMITIVES: Final[dict[str, Layout]] = {
    "int8": Integer("b", 1),
    "int16": Integer("h", 2),
    "int32": Integer("i", 4),
    "int64": Integer("q", 8),
    "flag": Flag(),
    "string": Text(nullable=False),
    "nullable_string": Text(nullable=True),
    "bytes": Blob(nullable=False),
    "nullable_bytes": Blob(nullable=True),
}


def layout_of(cls: type) -> Record:
    """The layout of a message class; TypeError if a field is not annotated with a wire type."""
    hints = get_type_hints(cls, include_extras=True)
    return Record(
        cls,
        tuple(
            (field.name, _read(hints[field.name], f"{cls.__name__}.{field.name}"))
            for field in dataclasses.fields(cls)
        ),
    )


def _read(hint: Any, name: str) -> Layout:
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, Primitive):
            return PRIMITIVES[mark.kind]
    if get_origin(hint) is list:
        item = _read(get_args(hint)[0], name)
        assert item.size_min > 0, f"{name}: a count of items without bytes cannot be checked"
        return Array(item)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return layout_of(hint)
    raise TypeError(f"{name}: {hint!r} is not a type of the wire (kafka08.protocol.types)")
