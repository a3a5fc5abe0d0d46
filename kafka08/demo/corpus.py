"""The demo's input: every line of a tree of files, keyed by the name of its file."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from kafka08.errors import ConfigError

SKIPPED_DIRECTORIES: Final = frozenset(
    {"__pycache__", "site-packages", "dist-packages", "node_modules"}
)
LINE_BYTES_MAX: Final = 900_000
"""Somewhat below message.max.bytes, which includes the key and the headers."""


def standard_library() -> Path:
    """The directory of this Python's standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def text_files(root: Path) -> list[Path]:
    """The files below `root` (or `root` itself) that are not empty, sorted; only .py files of the
    standard library.

    Raises ConfigError if there is nothing to read.
    """
    if root.is_dir():
        pattern = "*.py" if root == standard_library() else "*"
        found = sorted(
            path
            for path in root.rglob(pattern)
            if not SKIPPED_DIRECTORIES.intersection(path.relative_to(root).parts)
        )
    else:
        found = [root]
    files = [path for path in found if path.is_file() and path.stat().st_size]
    if not files:
        raise ConfigError(f"--input {root}: no file with text in it")
    return files


def lines(root: Path) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of every line: the file's name below `root`, and the line without its newline.

    Raises ConfigError for a line longer than LINE_BYTES_MAX, OSError for an unreadable file.
    """
    for path in text_files(root):
        key = os.fsencode(path.name if path == root else path.relative_to(root))
        with path.open("rb") as file:
            for number in count(1):
                line = file.readline(LINE_BYTES_MAX + 1)
                if not line:
                    break
                if len(line) > LINE_BYTES_MAX:
                    raise ConfigError(
                        f"--input {root}: line {number} of {path} is longer than {LINE_BYTES_MAX} "
                        "bytes, more than brokers accept by default"
                    )
                yield key, line.rstrip(b"\r\n")
