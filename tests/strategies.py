"""Hypothesis strategies that several rooms share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kafka08.protocol.layout import Array, Blob, Flag, Integer, Layout, Record, Text, layout_of

BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def messages(cls: type) -> st.SearchStrategy[Any]:
    """Any message of a declared class, with values from the whole range of each field."""
    return _values(layout_of(cls))


def _values(layout: Layout) -> st.SearchStrategy[Any]:
    match layout:
        case Integer():
            half = 1 << (BITS[layout.code] - 1)
            return st.integers(-half, half - 1)
        case Flag():
            return st.integers(0, 1)
        case Text():
            text = st.text(max_size=40)
            return st.none() | text if layout.nullable else text
        case Blob():
            data = st.binary(max_size=100)
            return st.none() | data if layout.nullable else data
        case Array():
            return st.lists(_values(layout.item), max_size=4)
        case Record():
            return st.builds(layout.cls, *(_values(field) for _, field in layout.fields))


fields = st.none() | st.binary(max_size=40)
"""A key or a value; None is null."""
pairs = st.lists(st.tuples(fields, fields), max_size=8)
"""(key, value) of the messages of one set."""
