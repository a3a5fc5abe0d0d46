"""Compiles a layout to Python: a decode and an encode function per message class or wire form.

The functions are straight-line code, generated once: adjacent fixed-width fields (and the length or
count after them) are one `struct` call, nested classes are inlined, and nothing inspects types at
run time. For ProducePartition the decoder is

    def decode(view, position):
        limit = len(view)
        v1, v2 = unpack_ii(view, position)
        position += 8
        end = position + v2
        if not position <= end <= limit: raise wrong_length(v2, limit - position)
        v3 = view[position:end]
        position = end
        return ProducePartition(v1, v3), position

and the encoder appends `pack_ii(message.partition, len(set))` and then the set itself to a list.
Arrays of integers join the `pack` of their neighbours.

Every failure is a `struct.error`, raised by struct or by a generated check. The line that raised it
identifies the field: `field_at` finds it from the traceback, so field names cost nothing until an
error. The source is in `linecache`, for tracebacks and debuggers.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from kafka08.kernel.types import STRING_BYTES_MAX
from kafka08.protocol.layout import (
    Array,
    Boolean,
    Bytes,
    Flag,
    Integer,
    Layout,
    Record,
    String,
    flexible,
    layout_of,
    strict,
)
from kafka08.protocol.types import Buffer, Form, Response

Decode = Callable[[Any, int], tuple[Any, int]]
Encode = Callable[[Any, list[Buffer]], None]


_fields: Final[dict[str, list[str]]] = {}
"""File name of generated source → the field of each of its lines."""


class Decoders(dict[Form, Decode]):
    """Form → its decoder `(view, position) → (message, end)`, made at first
    use.

    note   tells these decoders from others of the same classes
    read   changes a layout before it is compiled, as kafka08.protocol.layout.strict does
    """

    def __init__(self, note: str = "", read: Callable[[Record], Record] | None = None) -> None:
        super().__init__()
        self._note = note
        self._read = read

    def __missing__(self, form: Form) -> Decode:
        layout = layout_of(form)
        if self._read is not None:
            layout = self._read(layout)
        function: Decode = _DecoderSource(layout).compile("decode", self._note)
        self[form] = function
        return function


DECODERS: Final = Decoders()
STRICT_DECODERS: Final = Decoders("strict", strict)


FLEXIBLE_DECODERS: Final = Decoders("flexible", flexible)


class Encoders(dict[Form, Encode]):
    """Form → its encoder `(message, pieces)`, made at first use: it appends
    the pieces of a message to a list. `note` and `read` as for Decoders."""

    def __init__(self, note: str = "", read: Callable[[Record], Record] = lambda one: one) -> None:
        super().__init__()
        self._note = note
        self._read = read

    def __missing__(self, form: Form) -> Encode:
        layout = self._read(layout_of(form))
        function: Encode = _EncoderSource(layout).compile("encode", self._note)
        self[form] = function
        return function


ENCODERS: Final = Encoders()
FLEXIBLE_ENCODERS: Final = Encoders("flexible", flexible)
VARINT_BYTES_MAX: Final = 5


def field_at(error: BaseException) -> str:
    """The field, such as `FetchRequest.topics.partitions.offset`, at which generated code raised
    `error`; empty if it came from elsewhere."""
    field, traceback = "", error.__traceback__
    while traceback is not None:
        lines = _fields.get(traceback.tb_frame.f_code.co_filename)
        if lines is not None:
            field = lines[traceback.tb_lineno - 1]
        traceback = traceback.tb_next
    return field


def wrong_length(length: int, left: int) -> struct.error:
    return struct.error(f"a length of {length}, but only {left} bytes left")


def wrong_count(items: int, left: int) -> struct.error:
    return struct.error(f"a count of {items}, but only {left} bytes left")


def too_many(items_max: int) -> struct.error:
    return struct.error(f"more than {items_max} items")


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """An unsigned number, and the position behind it."""
    value = 0
    for place, byte in enumerate(view[position : position + VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, position + place + 1
    raise struct.error(f"no number at byte {position} of {len(view)}")


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def skip_tags(view: memoryview, position: int) -> int:
    """The position behind the tagged fields of a record."""
    count, position = read_varint(view, position)
    if 2 * count > len(view) - position:
        raise wrong_count(count, len(view) - position)
    for _ in range(count):
        _, position = read_varint(view, position)
        size, position = read_varint(view, position)
        if size > len(view) - position:
            raise wrong_length(size, len(view) - position)
        position += size
    return position


def wrong_flag(value: object) -> struct.error:
    return struct.error(f"{value!r} is not 0 or 1")


def too_long(length: int) -> struct.error:
    return struct.error(f"{length} bytes of UTF-8, the limit is {STRING_BYTES_MAX}")


def as_bytes(value: Buffer) -> Buffer:
    """`value` in a form whose len() is its size in bytes."""
    return memoryview(value).cast("B") if isinstance(value, memoryview) else value


class _Source:
    """The lines of a function, each with the field that it handles.

    `pending` holds the fixed-width values since the last `struct` call; `flush` makes one call for
    them.
    """

    def __init__(self, layout: Record) -> None:
        self.layout = layout
        self.namespace: dict[str, Any] = {
            name: globals()[name]
            for name in (
                "wrong_length",
                "wrong_count",
                "too_many",
                "wrong_flag",
                "too_long",
                "as_bytes",
                "read_varint",
                "skip_tags",
                "varint",
            )
        }
        self.lines: list[str] = []
        self.fields: list[str] = []
        self.path: list[str] = [layout.cls.__name__]
        self.indent = 1
        self.numbers = count(1)

    def new(self, role: str = "") -> str:
        """A unique variable, named after the current field and its role."""
        return f"{self.path[-1]}{role}_{next(self.numbers)}"

    def emit(self, line: str, field: str = "") -> None:
        self.lines.append("    " * self.indent + line)
        self.fields.append(field or ".".join(self.path))

    def constant(self, name: str, value: object) -> str:
        self.namespace[name] = value
        return name

    def null(self, value: str | bytes | None) -> str:
        """The expression for null."""
        return self.constant("null", value) if isinstance(value, str) else repr(value)

    def compile(self, name: str, note: str = "") -> Any:
        """Run the source; the function called `name` that it defines. `note` tells it from another
        function of the same class."""
        cls, version = self.layout.form
        said = f"{cls.__module__}.{cls.__qualname__} {version}{note and f' {note}'}"
        filename = f"<kafka08 {name} {said}>"
        source = "\n".join(self.lines) + "\n"
        _fields[filename] = self.fields
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), self.namespace)
        return self.namespace[name]


class _DecoderSource(_Source):
    """Writes `decode`. A value's expression is valid after the next `flush`."""

    def __init__(self, layout: Record) -> None:
        super().__init__(layout)
        self.pending: list[tuple[str, str, str]] = []
        """(variable, struct code, field) of each."""
        self.indent = 0
        self.emit("def decode(view, position):")
        self.indent = 1
        self.emit("limit = len(view)")
        self.items_max: int | None = getattr(layout.cls, "ITEMS_MAX", None)
        self.counts_integers = not issubclass(layout.cls, Response)
        if self.items_max is not None:
            self.emit(f"room = {self.items_max}")
        result = self.value(layout)
        self.flush()
        self.emit(f"return {result}, position")

    def read(self, code: str, role: str = "") -> str:
        variable = self.new(role)
        self.pending.append((variable, code, ".".join(self.path)))
        return variable

    def flush(self) -> None:
        if not self.pending:
            return
        variables, codes, fields = zip(*self.pending, strict=True)
        self.pending.clear()
        code = "".join(codes)
        unpack = self.constant(f"unpack_{code}", struct.Struct(f">{code}").unpack_from)
        field = ", ".join(dict.fromkeys(fields))
        self.emit(f"{', '.join(variables)}, = {unpack}(view, position)", field)
        self.emit(f"position += {struct.calcsize('>' + code)}")

    def value(self, layout: Layout) -> str:
        """Emit the code that reads one value; returns the expression for it."""
        match layout:
            case Integer():
                return self.read(layout.code)
            case Flag():
                return self.flag()
            case Boolean():
                return f"({self.read('b')} != 0)"
            case String():
                text = 'str(view[position:end], "utf-8", "replace")'
                code = "" if layout.compact else "h"
                return self.sized(code, text, layout.nullable, layout.null)
            case Bytes():
                nullable = layout.nullable or layout.null is not None
                code = "" if layout.compact else "i"
                return self.sized(code, "view[position:end]", nullable, layout.null)
            case Array():
                return self.array(layout)
            case Record():
                return self.record(layout)

    def flag(self) -> str:
        value = self.read("b")
        self.flush()
        self.emit(f"if not 0 <= {value} <= 1: raise wrong_flag({value})")
        return value

    def sized(self, code: str, taken: str, nullable: bool, null: str | bytes | None = None) -> str:
        length, value = self.count(code, "_size"), self.new()
        if nullable:
            self.emit(f"if {length} < 0: {value} = {self.null(null)}")
            self.emit("else:")
            self.indent += 1
        self.emit(f"end = position + {length}")
        self.emit(
            f"if not position <= end <= limit: raise wrong_length({length}, limit - position)"
        )
        self.emit(f"{value} = {taken}")
        self.emit("position = end")
        if nullable:
            self.indent -= 1
        return value

    def count(self, code: str, role: str) -> str:
        """Read a length or a count now; without `code` a compact one."""
        if code:
            variable = self.read(code, role)
            self.flush()
            return variable
        self.flush()
        variable = self.new(role)
        self.emit(f"{variable}, position = read_varint(view, position)")
        self.emit(f"{variable} -= 1")
        return variable

    def array(self, layout: Array) -> str:
        item = layout.item
        items, values = self.count("" if layout.compact else "i", "_count"), self.new()
        if layout.nullable:
            self.emit(f"if {items} < 0: {values} = None")
            self.emit("else:")
            self.indent += 1
        self.emit(
            f"if not 0 <= {items} * {item.size_min} <= limit - position: "
            f"raise wrong_count({items}, limit - position)"
        )
        if self.items_max is not None and (self.counts_integers or not isinstance(item, Integer)):
            self.emit(f"room -= {items}")
            self.emit(f"if room < 0: raise too_many({self.items_max})")
        if isinstance(item, Integer):
            unpack = self.constant("unpack_from", struct.unpack_from)
            self.emit(f'{values} = list({unpack}(f">{{{items}}}{item.code}", view, position))')
            self.emit(f"position += {items} * {item.size_min}")
        else:
            self.emit(f"{values} = []")
            self.emit(f"for _ in range({items}):")
            self.indent += 1
            value = self.value(item)
            self.flush()
            self.emit(f"{values}.append({value})")
            self.indent -= 1
        if layout.nullable:
            self.indent -= 1
        return values

    def record(self, layout: Record) -> str:
        arguments = []
        for place, (name, field) in enumerate(layout.fields):
            self.path.append(name)
            value = self.value(field)
            arguments.append(value if place < layout.positional else f"{name}={value}")
            self.path.pop()
        if layout.tagged:
            self.flush()
            self.emit("position = skip_tags(view, position)")
        if layout.make is None:
            maker = self.constant(layout.cls.__name__, layout.cls)
        else:
            maker = self.constant(f"make_{layout.cls.__name__}", layout.make)
        return f"{maker}({', '.join(arguments)})"


class _EncoderSource(_Source):
    """Writes `encode`, which appends the pieces of a message to a list, in wire order."""

    def __init__(self, layout: Record) -> None:
        super().__init__(layout)
        self.pending: list[tuple[str, str, str]] = []
        """(struct format, which may contain {count}; arguments; field) of each."""
        self.pieces: list[tuple[str, str]] = []
        """(expression, field) of each piece since the last `append`."""
        self.indent = 0
        self.emit("def encode(message, pieces):")
        self.indent = 1
        self.value(layout, "message")
        self.append()
        self.emit("return None")

    def write(self, code: str, arguments: str) -> None:
        self.pending.append((code, arguments, ".".join(self.path)))

    def flush(self) -> None:
        if not self.pending:
            return
        codes, arguments, fields = zip(*self.pending, strict=True)
        self.pending.clear()
        code = "".join(codes)
        if "{" in code:
            call = f'{self.constant("pack", struct.pack)}(f">{code}", '
        else:
            call = f"{self.constant(f'pack_{code}', struct.Struct(f'>{code}').pack)}("
        field = ", ".join(dict.fromkeys(fields))
        self.pieces.append((f"{call}{', '.join(arguments)})", field))

    def append(self) -> None:
        """Emit the code that appends all pieces so far, each on its own line for `field_at`."""
        self.flush()
        if self.pieces:
            self.emit("pieces += (")
            for piece, field in self.pieces:
                self.emit(f"    {piece},", field)
            self.emit(")")
            self.pieces.clear()

    def value(self, layout: Layout, value: str) -> None:
        """Emit the code that appends the value of the expression `value`."""
        match layout:
            case Integer():
                self.write(layout.code, value)
            case Flag():
                self.emit(f"if not 0 <= {value} <= 1: raise wrong_flag({value})")
                self.write("b", value)
            case Boolean():
                self.write("b", f"1 if {value} else 0")
            case String():
                code = "" if layout.compact else "h"
                self.sized(code, value, "{}.encode()", layout.nullable, layout.null)
            case Bytes():
                taken = "{0} if type({0}) is bytes else as_bytes({0})"
                self.sized("" if layout.compact else "i", value, taken, layout.nullable)
            case Array():
                self.array(layout, value)
            case Record():
                self.record(layout, value)

    def record(self, layout: Record, value: str) -> None:
        if layout.show is not None:
            shown = self.new("_shown")
            show = self.constant(f"show_{layout.cls.__name__}", layout.show)
            self.emit(f"{shown} = {show}({value})")
            value = shown
        for name, field in layout.fields:
            self.path.append(name)
            self.value(field, f"{value}.{name}")
            self.path.pop()
        if layout.tagged:
            self.flush()
            self.pieces.append((r'b"\0"', ".".join(self.path)))

    def put_count(self, code: str, count: str) -> None:
        """Write a length or a count; without `code` a compact one."""
        if code:
            self.write(code, count)
        else:
            self.flush()
            self.pieces.append((f"varint({count} + 1)", ".".join(self.path)))

    def sized(
        self, code: str, value: str, taken: str, nullable: bool, null: str | None = None
    ) -> None:
        data, length = self.new(), self.new("_size")
        present = f" if {value} is not {self.null(null)} else "
        self.emit(f"{data} = ({taken.format(value)})" + f'{present}b""' * nullable)
        self.emit(f"{length} = len({data})" + f"{present}-1" * nullable)
        if code != "i":
            self.emit(f"if {length} > {STRING_BYTES_MAX}: raise too_long({length})")
        self.put_count(code, length)
        self.flush()
        self.pieces.append((data, ".".join(self.path)))

    def array(self, layout: Array, value: str) -> None:
        item = layout.item
        values, items = self.new(), self.new("_count")
        self.emit(f"{values} = {value}")
        if layout.nullable:
            self.emit(f"{items} = -1 if {values} is None else len({values})")
            self.emit(f"if {values} is None: {values} = ()")
        else:
            self.emit(f"{items} = len({values})")
        self.put_count("" if layout.compact else "i", items)
        if isinstance(item, Integer) and not layout.nullable:
            self.write(f"{{{items}}}{item.code}", f"*{values}")
            return
        self.append()
        variable = self.new("_item")
        self.emit(f"for {variable} in {values}:")
        self.indent += 1
        self.value(item, variable)
        self.append()
        self.indent -= 1
