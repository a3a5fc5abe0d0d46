"""Files that commands of one user leave for each other: believed only if that user wrote them.

Whoever else can write in a directory, such as one below /tmp that was removed, could put a file
there that names another process, another cluster, or another file to write to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from kafka08.errors import KafkaError

LOCKS = Path("/proc/locks")


def check_owner(directory: Path) -> None:
    """KafkaError if the directory is another user's. Does nothing if there is none."""
    try:
        owner = directory.stat().st_uid
    except FileNotFoundError:
        return
    if owner != os.geteuid():
        raise KafkaError(
            f"{directory} belongs to user {owner}, not to user {os.geteuid()} who runs this "
            "command: its files are not believed. Use a directory of your own"
        )


def open_own(path: Path, flags: int = os.O_RDONLY) -> IO[str]:
    """Open a regular file of this user, creating it for this user alone if `flags` say so.
    FileNotFoundError; KafkaError if it is a link or another user's."""
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise KafkaError(f"cannot open {path}: {(error.strerror or '').lower()}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise KafkaError(f"{path} is not a file of user {os.geteuid()}: remove it")
    return os.fdopen(descriptor, "a" if writes else "r")


def lock_holders(path: Path) -> set[int] | None:
    """The processes that hold an exclusive flock on the file, as the system sees them. None if it
    does not say."""
    try:
        inode = str(path.stat().st_ino)
        lines = LOCKS.read_text().splitlines()
    except OSError:
        return None
    holders = {
        int(fields[4])
        for fields in map(str.split, lines)
        if fields[1:4:2] == ["FLOCK", "WRITE"] and fields[5].rpartition(":")[2] == inode
    }
    return holders or None
