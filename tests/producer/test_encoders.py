"""Encoders: bytes, text, null."""

from __future__ import annotations

import pytest

from kafka08.producer.encoders import DefaultEncoder, NullEncoder, StringEncoder


def test_bytes_pass() -> None:
    """Whatever holds them."""
    for data in (b"ab", bytearray(b"ab"), memoryview(b"ab")):
        assert DefaultEncoder()(data) == b"ab"


def test_other_types_are_refused_with_advice() -> None:
    """A str for DefaultEncoder is the usual first mistake."""
    with pytest.raises(TypeError, match=r"not str: set serializer.class"):
        DefaultEncoder()("ab")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not bytes"):
        StringEncoder()(b"ab")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "data"), [("UTF8", b"\xc3\xa9"), ("ISO-8859-1", b"\xe9")])
def test_text_in_a_charset(name: str, data: bytes) -> None:
    """Java's spelling of the names is understood."""
    assert StringEncoder(name)("é") == data


def test_null() -> None:
    """For keys that are not to be stored."""
    assert NullEncoder()("anything") is None
