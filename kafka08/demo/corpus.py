"""The text that the demo loads: every line of a tree of files, keyed by its file's name."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from kafka08.errors import ConfigError

SKIPPED_DIRECTORIES = frozenset({"__pycache__", "site-packages", "dist-packages", "node_modules"})


def standard_library() -> Path:
    """Where this Python's standard library lies."""
    return Path(sysconfig.get_paths()["stdlib"])


def text_files(root: Path) -> list[Path]:
    """The files below `root` (or `root` itself), sorted; of the standard library the .py files.

    Raises ConfigError if there is nothing to read.
    """
    if root.is_file():
        return [root]
    pattern = "*.py" if root == standard_library() else "*"
    files = sorted(
        path
        for path in root.rglob(pattern)
        if path.is_file() and not SKIPPED_DIRECTORIES.intersection(path.relative_to(root).parts)
    )
    if not files:
        raise ConfigError(f"--input {root}: there is no file to read")
    return files


def lines(root: Path) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of every line: the file's name below `root`, and the line without its end."""
    for path in text_files(root):
        key = os.fsencode(path.name if path == root else path.relative_to(root))
        with path.open("rb") as file:
            for line in file:
                yield key, line.rstrip(b"\r\n")
