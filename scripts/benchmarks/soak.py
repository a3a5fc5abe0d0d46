"""What the soaks share: rounds from one seed until the time is over, and what each of them says."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round says in one line, what must not have happened, and what is known to happen."""

    summary: str
    problems: Sequence[str]
    known: Sequence[str] = ()


def soak_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """--minutes and --seed; the caller may add its own."""
    parser = argparse.ArgumentParser(prog=f"scripts/{name}", description=description)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    return parser


def soak(options: argparse.Namespace, run_round: Callable[[int, random.Random], Outcome]) -> int:
    """`run_round(number, rng)` again and again for --minutes, once at least. The process's exit
    code: 1 if there was a problem."""
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    stop_at = time.monotonic() + options.minutes * 60
    number = problems = 0
    while not number or time.monotonic() < stop_at:
        number += 1
        began = time.monotonic()
        outcome = run_round(number, rng)
        problems += len(outcome.problems)
        seconds = time.monotonic() - began
        print(f"round {number}: {seconds:.0f} s, {outcome.summary}", flush=True)
        for known in outcome.known:
            print(f"  known of 0.8.2.2: {known}", flush=True)
        for problem in outcome.problems:
            print(f"  PROBLEM: {problem}", flush=True)
    return 1 if problems else 0
