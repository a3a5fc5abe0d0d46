"""Encoders for bytes, text and null."""

from __future__ import annotations

import pytest

from kafka08.producer.old.encoders import DefaultEncoder, NullEncoder, StringEncoder


def test_bytes_pass() -> None:
    """DefaultEncoder accepts any buffer of bytes."""
    for data in (b"ab", bytearray(b"ab"), memoryview(b"ab")):
        assert DefaultEncoder()(data) == b"ab"


def test_other_types_are_refused_with_advice() -> None:
    """The error for a str in DefaultEncoder, the usual first mistake, says what to use."""
    with pytest.raises(TypeError, match=r"not str: set serializer.class"):
        DefaultEncoder()("ab")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not bytes"):
        StringEncoder()(b"ab")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "data"), [("UTF8", b"\xc3\xa9"), ("ISO-8859-1", b"\xe9")])
def test_text_in_a_charset(name: str, data: bytes) -> None:
    """A charset may have Java's name."""
    assert StringEncoder(name)("é") == data


def test_null() -> None:
    """NullEncoder is for keys that are not stored."""
    assert NullEncoder()("anything") is None
