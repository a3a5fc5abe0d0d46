"""Makes a failing run smaller: fewer actors, fewer faults, fewer deviations from plain order.

Each pass tries a smaller plan and keeps it if the run still breaks a rule of the same kind. A
smaller plan changes all that follows, so it is tried with several salts.

1. What comes after the rule is broken.
2. Simplifications, one after the other: they take the most away, and make every later try faster.
3. Faults, by halves (ddmin): first half of them at once, in the end one at a time.
4. Deviations: the times in which the next task is drawn at random, by halves likewise.
5. Simplifications again: one that a fault needed may be possible now.

A plan names its faults one by one, so what is left out changes nothing about the others.
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
"""How many parts the time of a run is divided into, to find those in which order matters."""
SALTS: Final = 4
"""How often a smaller plan is tried."""
END_SECONDS: Final = 1.0
"""What a shortened run goes on after its last fault."""


@dataclass(frozen=True)
class Shrunk:
    """plan     the smallest that was found
    outcome  of its run
    runs     how many were tried
    """

    plan: Plan
    outcome: Outcome
    runs: int


def kind_of(verdict: str) -> str:
    """What two verdicts have in common that tell of the same defect: all but names and numbers."""
    text = re.sub(r"b'[^']*'|\[[^]]*\]|\([^)]*\)|\S*\d\S*", "", verdict)
    return " ".join(text.split())[:60]


SIMPLER: Final[Sequence[Callable[[Plan], Plan]]] = (
    lambda plan: replace(plan, members=0),
    lambda plan: replace(plan, old_producers=0),
    lambda plan: replace(plan, async_producers=0),
    lambda plan: replace(plan, new_producers=min(plan.new_producers, 1)),
    lambda plan: replace(plan, members=min(plan.members, 1)),
    lambda plan: replace(plan, partitions=1),
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
        trouble_seconds=min(
            plan.trouble_seconds, max((fault.at for fault in plan.faults), default=0) + END_SECONDS
        ),
    ),
)


class Shrinker:
    """run          simulates a plan, up to a second if that is not None
    is_in_time   asked before each run; False ends the search with what was found
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
        """Leave out as many parts as can be: first all, then halves, then quarters, in the end
        single ones, again and again until each is needed."""
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
        """When a run may end: a rule that was broken at once is broken by then again, or not."""
        found = self.found.outcome
        return found.simulated_seconds * 1.2 + END_SECONDS if found.is_early else None

    def _try(self, plan: Plan) -> bool:
        """Whether the run of this plan fails likewise; it is kept then."""
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
    """The parts of so many seconds, and all that comes after."""
    size = seconds / WINDOWS
    parts = [(number * size, (number + 1) * size) for number in range(WINDOWS)]
    return [*parts, (seconds, float("inf"))]
