"""Lines of text as keys and values. Source: kafka.tools.ConsoleProducer 0.8.2.2 (parse.key)."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kafka08.cli.json_lines import BadLine


class KeySplitter:
    """Splits lines at the first `separator`; None: lines have no keys.

    ignore_error   a line without the separator is a value without a key, as with 0.8's
                   ignore.error; otherwise it is a BadLine
    """

    def __init__(self, separator: str | None, *, ignore_error: bool = False) -> None:
        self._text = separator
        self._separator = None if separator is None else os.fsencode(separator)
        self._ignore_error = ignore_error

    def split(self, line: bytes) -> tuple[bytes | None, bytes]:
        """Key and value."""
        if self._separator is None:
            return None, line
        key, found, value = line.partition(self._separator)
        if found:
            return key, value
        if self._ignore_error:
            return None, line
        raise BadLine(
            f"it has no separator {self._text!r}, so it has no key; correct it, or give "
            "--ignore-error to send such lines without a key"
        )

    def split_up_to_error(
        self, lines: Iterable[bytes]
    ) -> tuple[list[tuple[bytes | None, bytes]], BadLine | None]:
        """The pairs of the lines before the first bad one, and the error of that one; None if all
        are good."""
        pairs = []
        for line in lines:
            try:
                pairs.append(self.split(line))
            except BadLine as error:
                return pairs, error
        return pairs, None
