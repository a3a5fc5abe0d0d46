"""The level of a cluster, in a file that its brokers share: each has only its own data, and none
can read the requests of a higher level. The first broker that starts writes the file; later ones
keep its level, or raise it for all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kafka08.errors import ConfigError
from kafka08.levels import LEVELS, NEWEST, Level, level_fault
from kafka08.listing import reason_of
from kafka08.log.names import HIGH_WATERMARK_CHECKPOINT

FORMER: Final = str(Level.V0_10_2)
"""The level of docker-compose.yml before there was such a file."""
TRACES: Final = ("meta.properties", HIGH_WATERMARK_CHECKPOINT)
"""Files of a log directory that a broker has used; 0.8.2 has no meta.properties."""


def settle_level(file: Path, asked: str | None, log_directories: Iterable[Path]) -> tuple[str, str]:
    """The level of a broker with these log directories, and a sentence that says why. Writes `file`
    if there is none yet, or if the level that is `asked` for is higher. ConfigError for a lower
    one, and for a file that has no level or cannot be used."""
    try:
        kept = read_level(file)
        if kept is None:
            level, why = first_level(asked, has_data=any(map(has_traces, log_directories)))
            if create(file, level):
                return level, f"{why} {file} keeps it for all brokers."
            kept = read_level(file) or level  # that of another broker, which was first
        if asked is None or asked == kept:
            return kept, f"This cluster has level {kept}, by {file}.{_raised_by(kept)}"
        if fault := level_fault(asked, kept):
            raise ConfigError(f"--level: {fault}. Leave the option out, or delete all data")
        replace(file, asked)
    except OSError as error:
        raise ConfigError(f"--level-file: cannot use {file}: {reason_of(error)}") from error
    return asked, f"The level of this cluster is raised from {kept} to {asked} in {file}."


def first_level(asked: str | None, *, has_data: bool) -> tuple[str, str]:
    """The level of a cluster without such a file, and a sentence that says why."""
    if asked is not None:
        return asked, f"This cluster has level {asked}, as --level says."
    if has_data:
        return (
            FORMER,
            f"This cluster stays at level {FORMER}, that of its data.{_raised_by(FORMER)}",
        )
    return str(NEWEST), f"This cluster is new and has level {NEWEST}."


def has_traces(directory: Path) -> bool:
    """Whether a broker has used this log directory."""
    return any((directory / name).exists() for name in TRACES)


def read_level(file: Path) -> str | None:
    """The level in the file; None if there is none. ConfigError for anything else. OSError."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
    if text not in LEVELS:
        raise ConfigError(
            f"--level-file: {file} has {text[:20]!r}, which is not one of {', '.join(LEVELS)}. If "
            "a later release wrote it, start that one"
        )
    return text


def create(file: Path, level: str) -> bool:
    """Write the file at once and whole; False if another broker was first. OSError."""
    draft = _write_draft(file, level)
    try:
        os.link(draft, file)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def replace(file: Path, level: str) -> None:
    """Write another level into the file. OSError."""
    os.replace(_write_draft(file, level), file)


def _write_draft(file: Path, level: str) -> Path:
    # By host as well: in containers all brokers may have one process id.
    draft = file.with_name(f"{file.name}.{os.uname().nodename}.{os.getpid()}")
    with draft.open("w", encoding="utf-8") as draft_file:
        draft_file.write(f"{level}\n")
        draft_file.flush()
        os.fsync(draft_file.fileno())
    return draft


def _raised_by(level: str) -> str:
    """A remark on a level that can be raised."""
    return "" if level == str(NEWEST) else " --level raises it; nothing lowers it again."
