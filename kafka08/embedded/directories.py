"""Directories of servers."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

from kafka08.errors import ConfigError
from kafka08.listing import reason_of


def temporary_path(prefix: str) -> Path:
    """An absolute path for temporary files that nobody else has. It is not made: what removes it
    when its owner is killed must be there before."""
    return Path(tempfile.gettempdir()).absolute() / f"{prefix}{secrets.token_hex(8)}"


def make_temporary(path: Path) -> None:
    """Make the directory, for this user alone. OSError."""
    path.mkdir(mode=0o700)


def make_directory(path: Path) -> None:
    """Create it and its parents where they are missing. ConfigError if the system refuses that."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot create the directory {path}: {reason_of(error)}. Use another directory"
        ) from error
