"""The local log directories that `kafka08 top` shows."""

from __future__ import annotations

from collections.abc import Sequence

from kafka08.cli.top_screen import LogRow
from kafka08.doctor.files import read_log_directory


def read_logs(directories: Sequence[str]) -> list[LogRow]:
    """A row for each partition in them. Raises OSError if one cannot be read."""
    rows = []
    for directory in directories:
        facts = read_log_directory(directory)
        if facts.fault:
            raise OSError(f"{directory} {facts.fault}")
        free = 100 * facts.free / facts.total
        rows += [
            LogRow(
                f"{tp.topic}-{tp.partition}", directory, log.size, log.dirty, log.sealed + 1, free
            )
            for tp, log in facts.logs.items()
        ]
    return rows
