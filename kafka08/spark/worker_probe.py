"""The report of a Spark worker's Python about itself.

Its text is sent to Pythons that might not have kafka08, so only `describe` imports anything of it.
"""

from __future__ import annotations

import os
import platform
import socket
import sys


def describe() -> dict[str, str]:
    """host, python (its version), executable; then either kafka08 (its version) and slow (why its
    kernel is the Python twin, or ""), or problem: why it cannot run tasks of kafka08."""
    found = {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "executable": sys.executable,
    }
    try:
        import kafka08
        import kafka08.arrow.batches
        import kafka08.arrow.range_reader
        from kafka08.kernel.choice import why_not_native
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises
        found["problem"] = str(error) or type(error).__name__
    else:
        found["kafka08"] = kafka08.__version__
        found["slow"] = why_not_native(os.environ.get("KAFKA08_KERNEL", ""))
    return found


def describe_once(_: object) -> list[dict[str, str]]:
    """`describe` as the function of an RDD's partition."""
    return [describe()]
