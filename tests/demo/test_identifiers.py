"""Names in source text: what `tokenize` finds, by module, from files and from messages alike."""

from __future__ import annotations

import io
import json.decoder
import keyword
import random
import re._parser  # type: ignore[import-not-found]
import textwrap
import tokenize
import typing
from pathlib import Path
from types import ModuleType

import pytest

from kafka08.demo.identifiers import (
    COUNT_SCHEMA,
    count_in_corpus,
    count_in_table,
    identifiers,
    module_of,
)


@pytest.mark.parametrize("module", [json.decoder, random, re._parser, textwrap, tokenize, typing])
def test_names_are_those_of_tokenize(module: ModuleType) -> None:
    """In real modules, in order: prefixes, escapes, docstrings and numbers are passed over as
    Python's own tokenizer does."""
    assert module.__file__ is not None
    text = Path(module.__file__).read_text()
    expected = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string)
    ]
    assert len(expected) > 100
    assert list(identifiers("m.py", text)) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = y # z", ["x", "y"]),
        ("for a in'b', rb'\\'c' + d: 0x1f + 1e5j + _9", ["a", "d", "_9"]),
        ('"""a "b" \\""" c"""; d', ["d"]),
        ("'''a\n'b' ''' + naïve", ["naïve"]),
        ("'open\nnext_line", ["open", "next_line"]),
    ],
)
def test_names_at_the_edges(text: str, names: list[str]) -> None:
    """Strings of every kind end where they end; a quote that is left open ends with nothing."""
    assert list(identifiers("m.py", text)) == names


def test_text_has_words() -> None:
    """A file that is not Python has no strings and no comments, but Python's keywords all the same
    are not names."""
    assert list(identifiers("a.txt", 'He said "yes" # and 1st')) == ["He", "said", "yes"]


def test_module_of() -> None:
    """The first part of the path; tests are one module, wherever they are."""
    assert [
        module_of(name)
        for name in ("abc.py", "asyncio/base_events.py", "email/test/x.py", "test.py", "a.txt")
    ] == ["abc", "asyncio", "test", "test", "a.txt"]


def test_files_and_messages_agree(tmp_path: Path) -> None:
    """The lines of a file as messages in any order give the counts of the file."""
    pa = pytest.importorskip("pyarrow")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.py").write_text('x = """\nnot this\n"""\n\ny = x\n')
    expected = {("m", "x"): 2, ("m", "y"): 1}
    assert count_in_corpus(tmp_path) == expected
    lines = [b'x = """', b"not this", b'"""', None, b"y = x"]
    rows = [{"key": b"m/a.py", "value": line, "offset": at} for at, line in enumerate(lines)]
    table = count_in_table(pa.Table.from_pylist(rows[::-1]))
    assert {(r["module"], r["identifier"]): r["occurrences"] for r in table.to_pylist()} == expected
    assert table.column_names == [field.split()[0] for field in COUNT_SCHEMA.split(", ")]
