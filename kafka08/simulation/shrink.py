"""Shrinks a failing run: fewer processes, fewer faults, less disorder.

Each pass tries smaller plans and keeps one whose run still breaks the same kind of rule. A smaller
plan changes all later random choices, so each is tried with several salts.

1. Remove the faults after the violation.
2. Simplify the plan, one setting at a time: that removes the most, and speeds up every later try.
3. Remove faults by halves (ddmin): first half of them at once, in the end one at a time.
4. Remove disorder: the times in which tasks run in random order, by halves likewise.
5. Simplify again: a setting that a removed fault needed may be simpler now.

Each fault has its own random numbers, so a fault that is removed does not change the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kafka08.simulation.network import NetworkSettings
from kafka08.simulation.plan import Plan
from kafka08.simulation.run import Outcome

T = TypeVar("T")

WINDOWS: Final = 16
"""The number of parts of a run, for the search of those in which disorder matters."""
SALTS: Final = 2
"""The number of tries of a smaller plan, each with other random numbers."""
END_S: Final = 1.0
"""The duration of a shortened run after its last fault."""


@dataclass(frozen=True)
class Shrunk:
    """plan     the smallest plan that was found
    outcome  the outcome of its run
    runs     the number of runs
    """

    plan: Plan
    outcome: Outcome
    runs: int


def kind_of(verdict: str) -> str:
    """The text of a verdict without names and numbers: the same for verdicts on one defect."""
    text = re.sub(r"b'[^']*'|\[[^]]*\]|\([^)]*\)|\S*\d\S*", "", verdict)
    return " ".join(text.split())[:60]


SIMPLER: Final[Sequence[Callable[[Plan], Plan]]] = (
    lambda plan: replace(plan, members=0),
    lambda plan: replace(plan, old_producers=0),
    lambda plan: replace(plan, async_producers=0),
    lambda plan: replace(plan, new_producers=min(plan.new_producers, 1)),
    lambda plan: replace(plan, members=min(plan.members, 1)),
    lambda plan: replace(plan, partitions=1),
    lambda plan: replace(plan, away=""),
    lambda plan: replace(plan, cleanup=""),
    lambda plan: replace(plan, transactions=0),
    lambda plan: replace(plan, late=False),
    lambda plan: replace(plan, refuses=False),
    lambda plan: replace(plan, disorder=0.0),
    lambda plan: replace(plan, network=NetworkSettings()),
    lambda plan: replace(plan, skew_ms=0),
    lambda plan: replace(plan, native_seconds=min(plan.native_seconds, 0.001)),
    lambda plan: replace(plan, loses_writes=False),
    lambda plan: (
        replace(plan, brokers=2, replication_factor=min(plan.replication_factor, 2))
        if plan.brokers > 2
        else plan
    ),
    lambda plan: replace(plan, pause_seconds=max(plan.pause_seconds, 0.2)),
    lambda plan: replace(
        plan,
        faults_seconds=min(
            plan.faults_seconds, max((fault.at for fault in plan.faults), default=0) + END_S
        ),
    ),
)


class Shrinker:
    """run          simulates a plan, until a given second if that is not None
    is_in_time   called before each run; False ends the search
    """

    def __init__(
        self,
        plan: Plan,
        outcome: Outcome,
        run: Callable[[Plan, float | None], Outcome],
        is_in_time: Callable[[], bool],
    ) -> None:
        assert outcome.verdict is not None
        self._kind = kind_of(outcome.verdict)
        self._run = run
        self._is_in_time = is_in_time
        self.found = Shrunk(plan, outcome, 0)

    def shrink(self) -> Shrunk:
        """The smallest plan that was found in time."""
        end = self.found.outcome.simulated_seconds
        plan = self.found.plan
        before = tuple(fault for fault in plan.faults if fault.at < end)
        self._try(replace(plan, faults=before))
        self._simplify()
        self._less(
            self.found.plan.faults, lambda kept: replace(self.found.plan, faults=tuple(kept))
        )
        if self.found.plan.disorder:
            parts = windows(self.found.outcome.simulated_seconds)
            self._less(parts, lambda kept: replace(self.found.plan, windows=tuple(kept)))
        self._simplify()
        return self.found

    def _simplify(self) -> None:
        for simpler in SIMPLER:
            self._try(simpler(self.found.plan))

    def _less(self, parts: Sequence[T], with_parts: Callable[[Sequence[T]], Plan]) -> None:
        """Remove as many parts as possible: first all, then halves, then quarters, in the end
        single ones, until each is needed."""
        if self._try(with_parts([])):
            return
        kept = list(parts)
        size = max(1, len(kept) // 2)
        while True:
            before = len(kept)
            start = 0
            while start < len(kept):
                alone, rest = kept[start : start + size], kept[:start] + kept[start + size :]
                if rest and size > 1 and self._try(with_parts(alone)):
                    kept = alone
                    break
                if rest and self._try(with_parts(rest)):
                    kept = rest
                else:
                    start += size
            if size == 1 and len(kept) == before:
                return
            size = max(1, min(size, len(kept)) // 2)

    def _until(self) -> float | None:
        """The time at which a run may end: if a violation ended the original run, it would happen
        before then."""
        found = self.found.outcome
        return found.simulated_seconds * 1.2 + END_S if found.is_early else None

    def _try(self, plan: Plan) -> bool:
        """Keep the plan if its run fails likewise. Returns whether it does."""
        if plan == self.found.plan:
            return False
        for salt in range(plan.salt, plan.salt + SALTS):
            if not self._is_in_time():
                return False
            salted = replace(plan, salt=salt)
            outcome = self._run(salted, self._until())
            self.found = replace(self.found, runs=self.found.runs + 1)
            if outcome.verdict is not None and kind_of(outcome.verdict) == self._kind:
                self.found = replace(self.found, plan=salted, outcome=outcome)
                return True
        return False


def windows(seconds: float) -> list[tuple[float, float]]:
    """Equal parts of so many seconds, and the time after them."""
    size = seconds / WINDOWS
    parts = [(number * size, (number + 1) * size) for number in range(WINDOWS)]
    return [*parts, (seconds, float("inf"))]
