"""Tally: which of the requests that match a rule are hit. Pure.

It depends on the rule and on the order of the matches alone: whoever counts the same matches in the
same order comes to the same answer.
"""

from __future__ import annotations

from random import Random

from kafka08.faults.rule import Rule


class Tally:
    """Counts the matches of one rule.

    matches   requests that matched so far; none after the last hit
    hits      those of them that were hit
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.matches = 0
        self.hits = 0

    def count(self) -> bool:
        """Count the next match; whether it is hit."""
        rule = self.rule
        if self.hits == rule.times:
            return False
        self.matches += 1
        if self.matches <= rule.skip:
            return False
        if rule.probability < 1 and not self._is_drawn():
            return False
        self.hits += 1
        return True

    def _is_drawn(self) -> bool:
        # One source for each match: a draw does not depend on who drew before.
        return Random(f"{self.rule.seed}:{self.matches}").random() < self.rule.probability
