"""Tuples of fields as bytes and back: small requests and responses without message objects (twin).

A form names the fields in their order, one letter each:

    h i      an integer of 2 or 4 bytes
    s        a string: a length of 2 bytes, then UTF-8. Other bytes are read as U+FFFD
    S        the same, or null (any negative length, written as -1), which is None
    y        bytes: a length of 4 bytes, never null
    [...]    an array: a count of 4 bytes, then the fields in brackets for each item, a tuple

kafka08.protocol.layout.form_of makes the form of a message class. ValueError for any other form.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Any, Final

from kafka08.kernel.types import LENGTH, MAX_SET_BYTES, STRING_BYTES_MAX, Buffer

INTEGERS: Final = {"h": Struct(">h"), "i": LENGTH}
SHORT: Final = INTEGERS["h"]
ITEM_BYTES_MIN: Final = SHORT.size


class _InvalidData(Exception):
    """The data do not have the fields of the form."""


def unpack_fields(data: Buffer, form: bytes, position: int = 0) -> tuple[Any, ...] | None:
    """The fields that begin at `position`; bytes are copied, arrays become tuples of tuples. What
    follows is ignored. None if a length or count is negative, or exceeds the rest of the data.
    """
    view = memoryview(data)
    if not 0 <= position <= len(view):
        return None
    try:
        return _take_fields(view, form.decode("latin-1"), position)[0]
    except (_InvalidData, struct_error):
        return None


def pack_fields(form: bytes, fields: tuple[Any, ...], framed: bool = False) -> bytes:
    """The bytes of these fields, behind their size (4 bytes) if they are `framed`. Arrays are lists
    or tuples of tuples.

    ValueError for a string that is too long or no Unicode, and for another number of fields;
    OverflowError for an integer that does not fit, or more than 2 GiB; TypeError for another type.
    """
    packed = b"".join(_packed_fields(form.decode("latin-1"), fields))
    if len(packed) > MAX_SET_BYTES - LENGTH.size:
        raise OverflowError(f"{len(packed)} bytes of fields do not fit a frame")
    return LENGTH.pack(len(packed)) + packed if framed else packed


def _letters(form: str) -> list[tuple[str, str]]:
    """Each field's letter, and for an array the form of its items."""
    letters: list[tuple[str, str]] = []
    at = 0
    while at < len(form):
        letter, items = form[at], ""
        at += 1
        if letter == "[":
            begin, depth = at, 1
            while depth:
                if at == len(form):
                    raise ValueError("an array of the form has no end")
                depth += (form[at] == "[") - (form[at] == "]")
                at += 1
            items = form[begin : at - 1]
            if not items:
                raise ValueError("an array of the form has no fields")
        elif letter not in "hisSy":
            raise ValueError(f"the form has no field {letter!r}")
        letters.append((letter, items))
    return letters


def _take_fields(view: memoryview, form: str, position: int) -> tuple[tuple[Any, ...], int]:
    """The fields, and the position after them."""
    found: list[Any] = []
    for letter, items in _letters(form):
        number = INTEGERS.get(letter, LENGTH if letter in "y[" else SHORT)
        (value,) = number.unpack_from(view, position)
        position += number.size
        if letter in "sSy":
            if letter == "S" and value < 0:
                found.append(None)
                continue
            if not 0 <= value <= len(view) - position:
                raise _InvalidData
            taken = bytes(view[position : position + value])
            position += value
            value = taken if letter == "y" else str(taken, "utf-8", "replace")
        elif letter == "[":
            if not 0 <= value <= (len(view) - position) // ITEM_BYTES_MIN:
                raise _InvalidData
            array = []
            for _ in range(value):
                item, position = _take_fields(view, items, position)
                array.append(item)
            value = tuple(array)
        found.append(value)
    return tuple(found), position


def _packed_fields(form: str, fields: tuple[Any, ...]) -> list[Buffer]:
    letters = _letters(form)
    if len(fields) != len(letters):
        raise ValueError(f"{len(fields)} fields for a form of {len(letters)}")
    packed: list[Buffer] = []
    for (letter, items), field in zip(letters, fields, strict=True):
        if letter in INTEGERS:
            if not isinstance(field, int):
                raise TypeError(f"{field!r} is not an integer")
            try:
                packed.append(INTEGERS[letter].pack(field))
            except struct_error as error:
                raise OverflowError(f"{field} does not fit its field") from error
        elif letter == "S" and field is None:
            packed.append(SHORT.pack(-1))
        elif letter in "sS":
            if not isinstance(field, str):
                raise TypeError(f"{field!r} is no string")
            text = field.encode()
            if len(text) > STRING_BYTES_MAX:
                raise ValueError(f"{len(text)} bytes of UTF-8, the limit is {STRING_BYTES_MAX}")
            packed += SHORT.pack(len(text)), text
        elif letter == "y":
            size = memoryview(field).nbytes
            packed += LENGTH.pack(size), field
        else:
            if not isinstance(field, list | tuple):
                raise TypeError(f"{field!r} is no list")
            packed.append(LENGTH.pack(len(field)))
            for item in field:
                if not isinstance(item, tuple):
                    raise TypeError(f"{item!r} is no tuple")
                packed += _packed_fields(items, item)
    return packed
