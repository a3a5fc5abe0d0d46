"""The layout of a message class: a tree made from its annotations, for the compiler.

    Integer            fixed width; `code` is its letter in `struct`
    Flag               one byte, 0 or 1; `is_relaxed`: later releases read it as a Boolean
    Boolean            one byte, 0 or anything else
    String, Bytes      a length of two or four bytes, then that many bytes
    Array              a count of four bytes, then that many items
    Record             the fields of a message of class `cls`, one after another, as `form` has
                       them: `cls` itself or a wire form of it, whose `make` and `show` they are
                       (kafka08.protocol.types.WireForm), in a version

In a flexible version (`flexible`) strings, bytes and arrays are `compact`: their length or count
plus one is an unsigned varint, 0 for null; and a record is `tagged`: further fields may follow it,
each with a number, of which none is known here.

`size_min` is the minimum size of a value: a count is rejected if `count * size_min` exceeds the
remaining bytes, before anything is allocated for its items.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from kafka08.protocol.types import NULL_NAME, Form, Primitive, Since, WireForm


@dataclass(frozen=True, slots=True)
class Integer:
    code: str
    size_min: int


@dataclass(frozen=True, slots=True)
class Flag:
    is_relaxed: bool
    size_min: int = 1


@dataclass(frozen=True, slots=True)
class Boolean:
    size_min: int = 1


@dataclass(frozen=True, slots=True)
class String:
    nullable: bool
    null: str | None = None
    """The object that represents null, if null is allowed."""
    size_min: int = 2
    compact: bool = False


@dataclass(frozen=True, slots=True)
class Bytes:
    nullable: bool
    null: bytes | None = None
    """The object that represents null, if null is allowed; it is decoded, but never encoded."""
    size_min: int = 4
    compact: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    item: Layout
    nullable: bool = False
    size_min: int = 4
    compact: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    cls: type
    form: Form
    fields: tuple[tuple[str, Layout], ...]
    make: Callable[..., Any] | None = None
    show: Callable[[Any], Any] | None = None
    tagged: bool = False

    @property
    def positional(self) -> int:
        """Number of leading fields that the message takes as positional arguments; the others are
        keyword arguments."""
        if self.make is not None:
            return len(self.fields)
        matches = [
            name == parameter
            for (name, _), (parameter, _) in zip(self.fields, _parameters(self.cls), strict=False)
        ]
        return (*matches, False).index(False)

    @property
    def size_min(self) -> int:
        return sum(layout.size_min for _, layout in self.fields) + self.tagged


Layout: TypeAlias = Integer | Flag | Boolean | String | Bytes | Array | Record

PRIMITIVES: Final[dict[str, Layout]] = {
    "int8": Integer("b", 1),
    "int16": Integer("h", 2),
    "int32": Integer("i", 4),
    "int64": Integer("q", 8),
    "flag": Flag(is_relaxed=True),
    "zero_or_one": Flag(is_relaxed=False),
    "boolean": Boolean(),
    "string": String(nullable=False),
    "nullable_string": String(nullable=True),
    "name": String(nullable=True, null=NULL_NAME),
    "bytes": Bytes(nullable=False),
    "nullable_bytes": Bytes(nullable=True),
    "fetched_messages": Bytes(nullable=False, null=b""),
}


def layout_of(form: Form) -> Record:
    """The layout of a message class or of a wire form, in a version of its API.

    TypeError if a field is not annotated with a wire type, if its place is that of no other field,
    or if the fields of a wire form do not make its message.
    """
    cls, version = form
    hints = get_type_hints(cls, include_extras=True)
    make = show = None
    if issubclass(cls, WireForm):
        names = [name for name in cls.__annotations__ if get_origin(hints[name]) is not ClassVar]
        make, show = getattr(cls, "make", None), getattr(cls, "show", None)
        if make is None:
            _check_names(cls, names)
    else:
        names = _names(cls, hints, version)
    fields = tuple((name, _read(hints[name], f"{cls.__name__}.{name}", version)) for name in names)
    return Record(message_class(cls), form, fields, make, show)


def _names(cls: type, hints: dict[str, Any], version: int) -> list[str]:
    """The fields of a message class in a version, in the order of the wire."""
    parameters = _parameters(cls)
    names = [name for name, required in parameters if required]
    for name, _ in parameters:
        since = _mark(hints[name], Since)
        if since is not None and since.has(version):
            if since.before not in ("", *names):
                raise TypeError(f"{cls.__name__}.{name}: no {since.before} in version {version}")
            names.insert(names.index(since.before) if since.before else len(names), name)
    return names


def strict(layout: Record) -> Record:
    """The layout as Kafka's Java schemas decode it, which 0.10 uses for every API: a name is never
    null, and any flag other than 0 is true."""
    fields = tuple((name, _strict(field)) for name, field in layout.fields)
    return dataclasses.replace(layout, fields=fields)


def flexible(layout: Record) -> Record:
    """The layout as flexible versions have it, which came with 2.4."""
    fields = tuple((name, _flexible(field)) for name, field in layout.fields)
    return dataclasses.replace(layout, fields=fields, tagged=True)


def _flexible(layout: Layout) -> Layout:
    match layout:
        case String() | Bytes():
            return dataclasses.replace(layout, compact=True, size_min=1)
        case Array():
            item = _flexible(layout.item)
            return dataclasses.replace(layout, item=item, compact=True, size_min=1)
        case Record():
            return flexible(layout)
        case _:
            return layout


def form_of(cls: type) -> bytes:
    """The first layout of a message class or wire form, as kernel.pack_fields and unpack_fields
    take it. TypeError if they do not know one of its fields."""
    return _form(layout_of(Form(cls))).encode()


def _form(layout: Layout) -> str:
    match layout:
        case Integer(code="h" | "i" as code):
            return code
        case String(null=None, nullable=nullable):
            return "S" if nullable else "s"
        case Bytes(null=None, nullable=False):
            return "y"
        case Array(item=Record() as item, nullable=False):
            return f"[{_form(item)}]"
        case Record():
            return "".join(_form(field) for _, field in layout.fields)
        case _:
            raise TypeError(f"the kernel has no form of {layout}")


def _strict(layout: Layout) -> Layout:
    match layout:
        case String(null=null) if null is not None:
            return PRIMITIVES["string"]
        case Flag(is_relaxed=True):
            return PRIMITIVES["boolean"]
        case Array():
            return dataclasses.replace(layout, item=_strict(layout.item))
        case Record():
            return strict(layout)
        case _:
            return layout


def message_class(cls: type) -> type:
    """The message class of `cls`: that of a wire form, else `cls` itself."""
    return cls.OF if issubclass(cls, WireForm) else cls


def _parameters(cls: type) -> list[tuple[str, bool]]:
    """(name, whether it is required) of each positional argument of a message class."""
    return [
        (field.name, field.default is MISSING and field.default_factory is MISSING)
        for field in dataclasses.fields(cls)
        if not field.kw_only
    ]


def _check_names(cls: type[WireForm], names: list[str]) -> None:
    parameters = dict(_parameters(cls.OF))
    unknown = [name for name in names if name not in parameters]
    missing = [name for name, required in parameters.items() if required and name not in names]
    if unknown or missing:
        raise TypeError(
            f"{cls.__name__}: {cls.OF.__name__} has no field {unknown}"
            if unknown
            else f"{cls.__name__} has nothing for the fields {missing} of {cls.OF.__name__}"
        )


T = TypeVar("T")


def _mark(hint: Any, kind: type[T]) -> T | None:
    """The mark of that kind at an annotation."""
    marks = getattr(hint, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def _read(hint: Any, name: str, version: int) -> Layout:
    primitive = _mark(hint, Primitive)
    if primitive is not None:
        return PRIMITIVES[primitive.kind]
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is list:
        item = _read(get_args(hint)[0], name, version)
        assert item.size_min > 0, f"{name}: a count of zero-byte items cannot be checked"
        return Array(item)
    if isinstance(hint, UnionType) and get_args(hint)[1:] == (NoneType,):
        array = _read(get_args(hint)[0], name, version)
        if isinstance(array, Array):
            return Array(array.item, nullable=True)
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, WireForm)):
        return layout_of(Form(hint, version))
    raise TypeError(f"{name}: {hint!r} is not a wire type (kafka08.protocol.types)")
