"""A disk on which the system refuses files, for reasons that are not the disk's."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK

NAMED: frozenset[str] = frozenset(
    {"open", "open_directory", "rename", "remove", "remove_tree", "make_directories"}
)
"""The calls that are refused. Files that are open already can be read and written."""


class RefusingDisk:
    """The system's disk, but calls with a path for which `refuses` holds fail with `number`."""

    def __init__(self, disk: Disk = SYSTEM_DISK) -> None:
        self._disk = disk
        self.number = errno.EMFILE
        self.refuses: Callable[[Path], bool] = lambda _: False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._disk, name)
        if name not in NAMED:
            return found

        def call(path: Path, *others: Any) -> Any:
            if self.refuses(path):
                raise OSError(self.number, os.strerror(self.number), str(path))
            return found(path, *others)

        return call


def below(directory: Path) -> Callable[[Path], bool]:
    """For `refuses`: everything in that directory."""
    return lambda path: directory in path.parents
