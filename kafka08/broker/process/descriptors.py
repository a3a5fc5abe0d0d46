"""The process's limit of open files.

A partition takes one descriptor, that of its active segment, and each older segment one more; a
connection takes one. Systems start processes with a low soft limit (1024) below the hard one.
"""

from __future__ import annotations

import resource


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, as the JVM does when it starts, for the
    life of this process; the limit then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft  # the system has a lower bound of its own, as macOS has
    return hard
