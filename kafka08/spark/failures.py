"""The cause of a failure of Spark. Spark's own errors are pages of Java's and Python's traces;
the cause is a line or two in the middle. Pure."""

from __future__ import annotations

import re
from typing import Final

OURS: Final = re.compile(
    r"^kafka08(?:\.\w+)+: (.*?)(?=\n SQLSTATE:|\n\s*\n|\n\tat |\n===|\n\w+ stacktrace:|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""The last lines of a traceback that ends with an error of ours: its text and its notes."""
DEAD_WORKER: Final = re.compile(
    r"Python worker exited unexpectedly|reading the port number from pyspark\.daemon's stdout"
)
LOST_TASK: Final = re.compile(r"Lost task (\d+)\.\d+ in stage \S+ \(TID \d+\) \((\S+) executor")
FRAME: Final = re.compile(
    r"^(\s+at \S+\(.*\)|\s+\.\.\. \d+ (more|common frames.*)|\w+ stacktrace:)$"
)
CALL: Final = re.compile(r"\AAn error occurred while calling \S+\n: ")


def known_cause(text: str) -> str | None:
    """The cause in the text of one of Spark's errors, without any trace: an error of ours, or the
    end of a Python worker. None if it is something else."""
    if ours := OURS.search(text):
        return ours[1]
    if DEAD_WORKER.search(text) is None:
        return None
    lost = LOST_TASK.search(text)
    place = f", in task {lost[1]} on {lost[2]}" if lost else ""
    return (
        f"A Python worker of Spark died{place}: something killed it, such as the system when "
        "memory ran out. Start it again; if it dies again, give Spark fewer cores or more memory"
    )


def without_frames(text: str) -> str:
    """`text` without the lines of Java's stack traces, and each other line once."""
    lines = CALL.sub("", text).splitlines()
    return "\n".join(dict.fromkeys(line for line in lines if line and not FRAME.match(line)))
