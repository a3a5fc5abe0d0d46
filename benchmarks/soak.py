"""Code that the soaks share: rounds from one seed until the time is over, and a line for each.

Each line has its time (UTC). The first one names the process and the seed, the last one says why it
ended, also after a signal. A log without that last line is one of a process that was killed with
SIGKILL, or of a machine that stopped.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kafka08.stop_signals import handle_stop_signals

RoundOf = Callable[[int, random.Random], "Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a round: its line, its defects, and the defects of 0.8.2.2 that it met."""

    summary: str
    problems: Sequence[str]
    known: Sequence[str] = ()


def soak_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """--minutes and --seed; the caller may add its own."""
    parser = argparse.ArgumentParser(prog=f"scripts/{name}", description=description)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    return parser


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S", time.gmtime()), text, flush=True)


@contextmanager
def announced(options: argparse.Namespace) -> Iterator[None]:
    """Print what begins, and why it ends. A signal that asks it to stop raises SystemExit."""
    what = " ".join(f"{name}={value}" for name, value in vars(options).items())
    say(f"begins: pid {os.getpid()}, {what}")
    faulthandler.enable()
    handle_stop_signals(_exit_by)
    began = time.monotonic()
    reason = "all rounds are done"
    try:
        yield
    except BaseException as error:
        reason = repr(error)
        raise
    finally:
        say(f"ends after {(time.monotonic() - began) / 60:.1f} min: {reason}")


def _exit_by(number: int, _: object) -> None:
    raise SystemExit(f"stopped by {signal.Signals(number).name}")


def soak(options: argparse.Namespace, run_round: RoundOf) -> int:
    """`run_round(number, rng)` again and again for --minutes, once at least. The process's exit
    code: 1 if there was a problem."""
    rng = random.Random(options.seed)
    stop_at = time.monotonic() + options.minutes * 60
    number = problems = 0
    while not number or time.monotonic() < stop_at:
        number += 1
        began = time.monotonic()
        outcome = run_round(number, rng)
        problems += len(outcome.problems)
        seconds = time.monotonic() - began
        say(f"round {number}: {seconds:.0f} s, {outcome.summary}")
        for known in outcome.known:
            print(f"  known of 0.8.2.2: {known}", flush=True)
        for problem in outcome.problems:
            print(f"  PROBLEM: {problem}", flush=True)
    say(f"{number} rounds, {problems} problems")
    return 1 if problems else 0
