"""The names in source text, counted by module: what the demo asks of Spark, and of the files.

A module is what can be imported by one name: the first part of a file's path, `asyncio` for
`asyncio/base_events.py`. The tests that modules carry are all of the module `test`.
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
"""(module, identifier) → how often."""

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
"""Its one group is a name; the rest passes over blanks and signs, comments, strings and numbers. It
finds what `tokenize` finds, in a tenth of the time."""
WORDS: Final = re.compile(r"([^\W\d]\w*)|\w+")


def module_of(name: str) -> str:
    """The module of the file called `name`, which is relative to the root of the text."""
    parts = name.split("/")
    if TESTS.intersection(parts[:-1]):
        return "test"
    return parts[0].removesuffix(".py")


def identifiers(name: str, text: str) -> Iterator[str]:
    """Names in the text of the file called `name`, in order, without Python's keywords. Of a file
    that is not Python: its words."""
    pattern = PYTHON_NAMES if name.endswith(".py") else WORDS
    return (word for word in pattern.findall(text) if word and not keyword.iskeyword(word))


def count_in_file(key: bytes, lines: Iterable[bytes | None]) -> tuple[str, Counter[str]]:
    """The module of a file, and how often each name is in it; `key` and `lines` as corpus.lines."""
    name = key.decode(errors="replace")
    text = b"\n".join(line or b"" for line in lines).decode(errors="replace")
    return module_of(name), Counter(identifiers(name, text))


def count_in_corpus(root: Path) -> Counts:
    """All names of the files below `root`, counted here and now."""
    totals: Counter[tuple[str, str]] = Counter()
    for key, group in groupby(corpus.lines(root), itemgetter(0)):
        module, names = count_in_file(key, (line for _, line in group))
        for name, occurrences in names.items():
            totals[module, name] += occurrences
    return dict(totals)


def count_in_table(messages: pa.Table) -> pa.Table:
    """The same of one file's messages (columns key, value, offset), as rows of COUNT_SCHEMA; for
    `applyInArrow`, in a worker."""
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
