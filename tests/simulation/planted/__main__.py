"""Searches seeds 0 to 999 for each planted defect and prints a table.

scripts/simulate --planted [name …]
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

from kafka08.simulation.run import simulate
from tests.simulation.planted import PLANTED, found_by

SEEDS_MAX: Final = 1000


def main(names: list[str]) -> None:
    """Search for these defects, by default for all, and print a row for each."""
    logging.getLogger().setLevel(logging.CRITICAL + 1)
    for one in PLANTED:
        if names and not any(name in one.name for name in names):
            continue
        started = time.perf_counter()
        for seed in range(SEEDS_MAX):
            verdict = found_by(one, seed)
            if verdict is None or one.verdict not in verdict:
                continue
            without = simulate(seed, profile=one.profile).verdict
            if without is None:
                break
            print(f"seed {seed} breaks a rule without a defect: {without}", flush=True)  # noqa: T201
        else:
            verdict = "NOT FOUND"
        seconds = time.perf_counter() - started
        row = (one.name, one.origin, str(seed), f"{seconds:.0f} s", f"{verdict:.150}")
        print(f"| {' | '.join(row)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
