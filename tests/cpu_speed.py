"""How fast the processor is at this moment.

CPU time is no constant of the code either: another program on the same physical core, which may be
another machine's, doubles it. A test with a limit in CPU time divides by `slowdown()`.
"""

from __future__ import annotations

import time

YARDSTICK_S = 0.006
"""`_work` on a quiet core of the machine on which the limits of the tests were set."""


def slowdown() -> float:
    """How many times as long as there the same work takes now; never less than 1. Takes 6 ms."""
    began = time.thread_time()
    _work()
    return max(1.0, (time.thread_time() - began) / YARDSTICK_S)


def _work() -> int:
    """Objects, numbers and names in about the mix of a request for many partitions."""
    rows = {f"topic-{number}": [number, (number, number + 1)] for number in range(20_000)}
    return len(b"".join(name.encode() for name in rows))
