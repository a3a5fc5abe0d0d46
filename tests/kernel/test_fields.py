"""Tuples of fields: both kernels write what the codec writes of the same layout, and read it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka08.kernel import _python_fields
from kafka08.protocol.codec import encode_body
from kafka08.protocol.group_records import StoredGroup, StoredMember
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import (
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
)
from kafka08.protocol.layout import form_of
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest
from tests.kernel.conftest import native_or_skip

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
small = st.integers(-(1 << 15), (1 << 15) - 1)
numbers = st.integers(-(1 << 31), (1 << 31) - 1)
blobs = st.binary(max_size=9)


def lists(*fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(*fields), max_size=4).map(tuple)


STORED = texts, numbers, st.none() | texts, st.none() | texts
STORED_MEMBER = texts, texts, texts, numbers, numbers, blobs, blobs
LAYOUTS: dict[type, tuple[st.SearchStrategy[Any], type | None]] = {
    HeartbeatRequest: (st.tuples(texts, numbers, texts), None),
    SyncGroupRequest: (st.tuples(texts, numbers, texts, lists(texts, blobs)), SyncGroupAssignment),
    JoinGroupRequest: (
        st.tuples(texts, numbers, numbers, texts, texts, lists(texts, blobs)),
        JoinGroupProtocol,
    ),
    JoinGroupResponse: (
        st.tuples(small, numbers, texts, texts, texts, lists(texts, blobs)),
        JoinGroupMember,
    ),
    StoredGroup: (st.tuples(*STORED, lists(*STORED_MEMBER)), StoredMember),
}
"""Message class → its fields, of which the last may be a list of items of the class beside it."""
FORMS = [form_of(cls) for cls in LAYOUTS]


@st.composite
def messages(draw: st.DrawFn) -> tuple[Any, bytes, tuple[Any, ...]]:
    """A message, its form and its fields."""
    cls = draw(st.sampled_from(list(LAYOUTS)))
    fields_of, item = LAYOUTS[cls]
    fields = draw(fields_of)
    whole = fields if item is None else (*fields[:-1], [item(*one) for one in fields[-1]])
    return cls(*whole), form_of(cls), fields


@given(messages(), st.binary(max_size=3), st.binary(max_size=3))
def test_fields_are_those_of_the_codec(
    kernel: ModuleType, drawn: tuple[Any, bytes, tuple[Any, ...]], before: bytes, after: bytes
) -> None:
    """Written in its bytes, framed or not; read wherever they begin, whatever follows."""
    message, form, fields = drawn
    data = encode_body(message)
    assert data == kernel.pack_fields(form, fields)
    assert len(data).to_bytes(4) + data == kernel.pack_fields(form, fields, framed=True)
    assert fields == kernel.unpack_fields(before + data + after, form, len(before))
    assert fields == kernel.unpack_fields(memoryview(bytearray(data)), form)


@given(messages(), st.data())
def test_both_kernels_read_broken_fields_alike(
    drawn: tuple[Any, bytes, tuple[Any, ...]], data: st.DataObject
) -> None:
    """Cut, with a byte changed, by another form, or from a position that is not there."""
    native = native_or_skip()
    broken = bytearray(_python_fields.pack_fields(*drawn[1:]))
    if data.draw(st.booleans()):
        del broken[data.draw(st.integers(0, len(broken))) :]
    elif broken:
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    form = data.draw(st.sampled_from([drawn[1], *FORMS]))
    position = data.draw(st.integers(-1, len(broken) + 1))
    found = _python_fields.unpack_fields(broken, form, position)
    assert found == native.unpack_fields(broken, form, position)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        (b"h", b"\0"),
        (b"i", b"\0\0\0"),
        (b"s", b"\0"),
        (b"s", b"\0\2a"),
        (b"s", b"\xff\xff"),
        (b"S", b"\0\1"),
        (b"y", b"\0\0\0\2a"),
        (b"y", b"\xff\xff\xff\xff"),
        (b"[h]", b"\0\0\0\2\0\0\0"),
        (b"[h]", b"\xff\xff\xff\xff"),
        (b"[h]", b"\x7f\xff\xff\xff\0\0"),
        (b"hi", b"\0\0\0"),
    ],
)
def test_what_is_cut_or_negative_is_nothing(kernel: ModuleType, form: bytes, data: bytes) -> None:
    """None, whatever is cut off or counts below 0; only a string may be null."""
    assert kernel.unpack_fields(data, form) is None


def test_strings_are_read_as_text_or_null(kernel: ModuleType) -> None:
    """Bytes that are no UTF-8 are U+FFFD; any negative length is null."""
    data = b"\0\2a\xff" + b"\xff\xfe" + b"\0\0"
    assert ("a\ufffd", None, "") == kernel.unpack_fields(data, b"sSS")


@pytest.mark.parametrize(
    ("form", "fields", "refusal"),
    [
        (b"h", (1 << 15,), OverflowError),
        (b"i", (-(1 << 31) - 1,), OverflowError),
        (b"i", (1 << 70,), OverflowError),
        (b"i", ("1",), TypeError),
        (b"s", ("x" * (1 << 15),), ValueError),
        (b"s", ("ü" * (1 << 14),), ValueError),
        (b"s", ("\ud800",), ValueError),
        (b"s", (None,), TypeError),
        (b"s", (b"x",), TypeError),
        (b"y", (None,), TypeError),
        (b"y", ("x",), TypeError),
        (b"[h]", (None,), TypeError),
        (b"[h]", ({1},), TypeError),
        (b"[h]", ([1],), TypeError),
        (b"[h]", ([None],), TypeError),
        (b"h", (), ValueError),
        (b"h", (1, 2), ValueError),
        (b"[h]", ([()],), ValueError),
    ],
)
def test_what_does_not_fit_is_refused(
    kernel: ModuleType, form: bytes, fields: tuple[Any, ...], refusal: type[Exception]
) -> None:
    """A value is refused for its range, size or type, and a row for its number of fields."""
    with pytest.raises(refusal):
        kernel.pack_fields(form, fields)


@pytest.mark.parametrize("form", [b"x", b"[h", b"[]", b"[[]]"])
def test_a_form_that_is_none_is_refused(kernel: ModuleType, form: bytes) -> None:
    """By both ways, also if nothing has been read yet."""
    data = bytes(99)
    fields = {b"[[]]": ([([],)],), b"[h": ([(1,)],)}.get(form, ([],))
    with pytest.raises(ValueError, match="form"):
        kernel.unpack_fields(b"\0\0\0\1" + data, form)
    with pytest.raises(ValueError, match="form"):
        kernel.pack_fields(form, fields)


@given(st.binary(max_size=9))
@example(b"")
def test_bytes_of_any_kind_are_written(kernel: ModuleType, data: bytes) -> None:
    """As keys and values of messages are."""
    for value in (data, bytearray(data), memoryview(data)):
        assert len(data).to_bytes(4) + data == kernel.pack_fields(b"y", (value,))
