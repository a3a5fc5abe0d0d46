"""The directory of a run's logs: in memory, so that the figures leave out the disk, or on a file
system of one's choice."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--directory",
        type=Path,
        default=MEMORY if MEMORY.is_dir() else None,
        help="where the logs go (default: memory)",
    )


@contextmanager
def scratch(options: argparse.Namespace) -> Iterator[Path]:
    """A new directory there, which is removed afterwards."""
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="kafka08-bench-", dir=options.directory))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
