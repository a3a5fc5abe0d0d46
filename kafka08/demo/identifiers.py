"""Counts identifiers in source text by module: in Spark, and in the files to compare.

A module is the first part of a file's path, as imported: `asyncio` for `asyncio/base_events.py`.
Tests inside modules count for the module `test`.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka08.demo import corpus

if TYPE_CHECKING:
    import pyarrow as pa

Counts = dict[tuple[str, str], int]
"""(module, identifier) → number of occurrences."""

COUNT_SCHEMA: Final = "module string, identifier string, occurrences long"
TESTS: Final = frozenset({"test", "tests", "idle_test"})
PYTHON_NAMES: Final = re.compile(
    r"""
      ([^\W\d]\w*+)(?!["'])
    | [^\w\#"']+
    | \#[^\n]*
    | [A-Za-z]{0,2}(?:\"{3}(?:[^\\"]++|\\.|")*?\"{3} | '{3}(?:[^\\']++|\\.|')*?'{3})
    | [A-Za-z]{0,2}(?:"(?:[^"\\\n]++|\\.)*" | '(?:[^'\\\n]++|\\.)*')
    | [0-9][\w.]*
    """,
    re.VERBOSE | re.DOTALL,
)
"""Its one group is a name; the rest skips blanks, operators, comments, strings and numbers. It
finds the same names as `tokenize`, in a tenth of the time."""
WORDS: Final = re.compile(r"([^\W\d]\w*)|\w+")


def module_of(name: str) -> str:
    """The module of the file `name`, a path relative to the root of the input."""
    parts = name.split("/")
    if TESTS.intersection(parts[:-1]):
        return "test"
    return parts[0].removesuffix(".py")


def identifiers(name: str, text: str) -> Iterator[str]:
    """Names in the text of the file `name`, in order, without Python's keywords. For a file that is
    not Python, all its words."""
    pattern = PYTHON_NAMES if name.endswith(".py") else WORDS
    return (word for word in pattern.findall(text) if word and not keyword.iskeyword(word))


def count_in_file(key: bytes, lines: Iterable[bytes | None]) -> tuple[str, Counter[str]]:
    """The module of a file, and the count of each name; `key` and `lines` as in corpus.lines."""
    name = key.decode(errors="replace")
    text = b"\n".join(line or b"" for line in lines).decode(errors="replace")
    return module_of(name), Counter(identifiers(name, text))


def count_in_corpus(root: Path) -> Counts:
    """Counts all names of the files below `root`, in this process."""
    totals: Counter[tuple[str, str]] = Counter()
    for key, group in groupby(corpus.lines(root), itemgetter(0)):
        module, names = count_in_file(key, (line for _, line in group))
        for name, occurrences in names.items():
            totals[module, name] += occurrences
    return dict(totals)


def count_in_table(messages: pa.Table) -> pa.Table:
    """Counts the names of one file's messages (columns key, value, offset), as rows of
    COUNT_SCHEMA; for `applyInArrow`, in a worker."""
    import pyarrow as pa

    in_order = messages.sort_by("offset")
    key = in_order.column("key")[0].as_py()
    module, names = count_in_file(key, in_order.column("value").to_pylist())
    return pa.table(
        {
            "module": pa.array([module] * len(names), pa.string()),
            "identifier": pa.array(names.keys(), pa.string()),
            "occurrences": pa.array(names.values(), pa.int64()),
        }
    )
