"""Searches seeds 0 to 999 for each planted defect and prints a row of a table for each.

scripts/simulate --planted [--short] [NAME ...]     --short: searches the short runs of the tests
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

from kafka08.simulation.run import simulate
from tests.simulation.planted import PLANTED, Planted

SEEDS_MAX: Final = 1000


def main(arguments: list[str]) -> None:
    """Search for the defects whose names contain one of these; by default for all."""
    logging.getLogger().setLevel(logging.CRITICAL + 1)
    short = "--short" in arguments
    names = [argument for argument in arguments if argument != "--short"]
    for one in PLANTED:
        if not names or any(name in one.name for name in names):
            search(one, short=short)


def search(one: Planted, *, short: bool) -> None:
    """Print the row: name, origin, the first seed that finds it, the number of runs, their CPU
    seconds, and the verdict."""
    started, runs = time.process_time(), 0
    seed, found = 0, "NOT FOUND"
    for seed in range(SEEDS_MAX):
        plan = one.short_plan(seed) if short else one.drawn_plan(seed)
        if plan is None:
            continue
        runs += 1
        verdict = one.found_by(seed, plan)
        if verdict is None:
            continue
        without = simulate(seed, plan=plan).verdict
        if without is None:
            found = verdict
            break
        print(f"seed {seed} breaks a rule without a defect: {without}", flush=True)  # noqa: T201
    seconds = time.process_time() - started
    row = (one.name, one.origin, str(seed), str(runs), f"{seconds:.0f} s", f"{found:.150}")
    print(f"| {' | '.join(row)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
