"""Directories of servers."""

from __future__ import annotations

from pathlib import Path

from kafka08.errors import ConfigError


def make_directory(path: Path) -> None:
    """Create it and its parents where they are missing. ConfigError if the system refuses that."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(
            f"cannot create the directory {path}: {reason}. Use another directory"
        ) from error
