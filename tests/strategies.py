"""Hypothesis strategies that several packages share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

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
    strict,
)
from kafka08.protocol.types import Form

BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def messages(form: Form, *, null_names: bool = True) -> st.SearchStrategy[Any]:
    """Any message of a form, with values from the whole range of each field. `null_names`: whether
    a name may be null."""
    layout = layout_of(form)
    return _values(layout if null_names else strict(layout))


def _values(layout: Layout) -> st.SearchStrategy[Any]:
    match layout:
        case Integer():
            half = 1 << (BITS[layout.code] - 1)
            return st.integers(-half, half - 1)
        case Flag():
            return st.integers(0, 1)
        case Boolean():
            return st.booleans()
        case String():
            text = st.text(max_size=40)
            return st.just(layout.null) | text if layout.nullable else text
        case Bytes():
            data = st.binary(max_size=100)
            return st.none() | data if layout.nullable else data
        case Array():
            items = st.lists(_values(layout.item), max_size=4)
            return st.none() | items if layout.nullable else items
        case Record():
            values = {name: _values(field) for name, field in layout.fields}
            if layout.make is not None:
                return st.builds(layout.make, *values.values())
            return st.builds(layout.cls, **values)


fields = st.none() | st.binary(max_size=40)
"""A key or a value; None is null."""
pairs = st.lists(st.tuples(fields, fields), max_size=8)
"""(key, value) of the messages of one set."""
