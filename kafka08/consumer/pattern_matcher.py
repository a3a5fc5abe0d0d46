"""Matches whole names against a pattern in linear time, whoever wrote the pattern.

Every member of a group, and every tool that looks at it, expands the patterns of all its members.
`re` tries alternatives one after the other, which for `(a|a)*b` takes 2^n steps, and holds the
interpreter's lock meanwhile. An automaton takes one step for each character. (RE2 does, too, but
has no look-ahead, with which a pattern excludes topics: `(?!secret).*`.)

The pattern becomes a non-deterministic automaton: states with edges, each to one next state. A name
is read from its end to its beginning. At each position a set has all states from which the rest of
the name leads to the end of the pattern. So, when a state with a look-ahead is asked, what follows
is known. A set depends only on the set one character further right, on that character, and on what
is left of it, which anchors ask: steps are kept and used again, as in a deterministic automaton.
Source: R. Cox, Regular Expression Matching Can Be Simple And Fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from kafka08.errors import ConfigError

STATES_MAX: Final = 20_000
"""The largest automaton: a white list of some hundred names has 10,000 states."""
KEPT_MAX: Final = 50_000
"""The most states in all sets that are kept."""
WORK_MAX: Final = 1_000_000
WORK_FOR_NAME: Final = 10_000
"""Steps of states that a matcher may take: WORK_MAX at once, and as many more for each name. A
second of CPU, and a hundredth for each name: steps that are kept count for nothing, so that an
honest pattern needs far less. `.{0,9000}x` would take four seconds for each name."""
WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

Anchor: TypeAlias = Literal["^", "$", "A", "z", "b", "B"]
"""As in Java without flags; `$` is also before a last newline."""


@dataclass(frozen=True, slots=True)
class Char:
    """One character."""

    matches: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class At:
    """A position."""

    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several sequences, each of which may be empty."""

    sequences: Sequence[Sequence[Node]]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` times or more, at most `most` times if that is not None."""

    node: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class LookAhead:
    """A position where `choice` follows, or, if negated, does not."""

    choice: Choice
    negated: bool


Node: TypeAlias = Char | At | Choice | Repeat | LookAhead


class _Edge(NamedTuple):
    """Leads from `state` to another at the same position, if the condition holds.

    look   the first state of a look-ahead, and whether it is negated
    """

    state: int
    anchor: Anchor | None = None
    look: tuple[int, bool] | None = None


class _Position(NamedTuple):
    """Between two characters.

    left      "^" at the beginning, else "w" or "-" after a word's or another character
    right     the character, or "" at the end
    is_last   before the last character
    """

    left: str
    right: str
    is_last: bool

    def holds(self, anchor: Anchor) -> bool:
        match anchor:
            case "^" | "A":
                return self.left == "^"
            case "z":
                return not self.right
            case "$":
                return not self.right or (self.is_last and self.right == "\n")
            case "b":
                return (self.left == "w") != (self.right in WORD)
            case "B":
                return (self.left == "w") == (self.right in WORD)


class _Set:
    """The states at a position, and those one character further left, by what decides them."""

    __slots__ = ("states", "steps")

    def __init__(self, states: frozenset[int]) -> None:
        self.states = states
        self.steps: dict[str, _Set] = {}


class Matcher:
    """The automaton of a pattern; `text` is for errors. ConfigError for one that is too large."""

    def __init__(self, pattern: Choice, text: str) -> None:
        self._text = text
        self._level: list[int] = []
        """By state: that of the look-ahead it belongs to. Inner ones have lower levels."""
        self._levels = 0
        self._reads: dict[int, list[tuple[Callable[[str], object], int]]] = {}
        """Next state → states that read a character before it."""
        self._edges: dict[int, list[_Edge]] = {}
        """Next state → edges to it."""
        self._ends: list[int] = []
        """The last state of each look-ahead, by level."""
        self._asks_left = False
        self._start, self._end = self._compile_level(pattern)
        self._after_end = _Set(frozenset({self._end}))
        self._sets: dict[frozenset[int], _Set] = {}
        self._kept = 0
        self._work_left = WORK_MAX

    def fullmatch(self, text: str) -> bool:
        """Whether the pattern matches the whole text. ConfigError if that takes too long."""
        self._work_left = min(self._work_left + WORK_FOR_NAME, WORK_MAX)
        here = self._after_end
        asks_left, last = self._asks_left, len(text) - 1
        for place in range(len(text), -1, -1):
            key = right = text[place : place + 1]
            left = ""
            if asks_left:
                left = "^" if not place else "w" if text[place - 1] in WORD else "-"
                key = left + right
            if right == "\n" and place == last:
                key += "$"
            there = here.steps.get(key)
            if there is None:
                position = _Position(left, right, place == last)
                there = here.steps[key] = self._set_of(self._step(here.states, position))
            here = there
        return self._start in here.states

    def _set_of(self, states: frozenset[int]) -> _Set:
        """The set of these states, which is kept."""
        found = self._sets.get(states)
        if found is None:
            self._kept += 1 + len(states)
            if self._kept > KEPT_MAX:
                self._forget()
            found = self._sets[states] = _Set(states)
        return found

    def _forget(self) -> None:
        # `list` at once: matchers are shared, and another thread may add a set.
        for one in (self._after_end, *list(self._sets.values())):
            one.steps.clear()
        self._sets.clear()
        self._kept = 0

    def _step(self, after: frozenset[int], position: _Position) -> frozenset[int]:
        """The states at a position, from those at the next one; at the end from the last state."""
        found: set[int] = set()
        work: list[list[int]] = [[end] for end in self._ends] + [[]]
        if position.right:
            for state in after:
                readers = self._reads.get(state, ())
                self._spend(1 + len(readers))
                for matches, reader in readers:
                    if matches(position.right):
                        work[self._level[reader]].append(reader)
        else:
            work[-1].append(self._end)
        for of_level in work:  # inner look-aheads first, which the outer ask
            while of_level:
                state = of_level.pop()
                if state in found:
                    continue
                found.add(state)
                edges = self._edges.get(state, ())
                self._spend(1 + len(edges))
                for edge in edges:
                    if edge.anchor is not None and not position.holds(edge.anchor):
                        continue
                    if edge.look is not None and (edge.look[0] in found) == edge.look[1]:
                        continue
                    of_level.append(edge.state)
        return frozenset(found)

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError(f"topic pattern {self._text!r} {why}; write a simpler one")

    def _spend(self, steps: int) -> None:
        self._work_left -= steps
        if self._work_left < 0:
            raise self._refusal("takes too long: it has too many ways to match a name")

    def _compile_level(self, choice: Choice) -> tuple[int, int]:
        """First and last state of the pattern or of a look-ahead, whose level is the next one when
        all within it have theirs."""
        first_new = len(self._level)
        end = self._new()
        start = self._compile(choice, end)
        for state in range(first_new, len(self._level)):
            if self._level[state] < 0:
                self._level[state] = self._levels
        self._levels += 1
        return start, end

    def _new(self) -> int:
        if len(self._level) >= STATES_MAX:
            raise self._refusal(f"is too large: it has more than {STATES_MAX} states")
        self._level.append(-1)
        return len(self._level) - 1

    def _connect(
        self, to: int, *, anchor: Anchor | None = None, look: tuple[int, bool] | None = None
    ) -> int:
        """A new state with an edge to another."""
        state = self._new()
        self._edges.setdefault(to, []).append(_Edge(state, anchor, look))
        return state

    def _compile(self, node: Node, after: int) -> int:
        """The first state of a node that continues at `after`."""
        match node:
            case Char(matches):
                state = self._new()
                self._reads.setdefault(after, []).append((matches, state))
                return state
            case At(anchor):
                self._asks_left = self._asks_left or anchor not in {"$", "z"}
                return self._connect(after, anchor=anchor)
            case LookAhead(choice, negated):
                start, end = self._compile_level(choice)
                self._ends.append(end)
                return self._connect(after, look=(start, negated))
            case Choice(sequences):
                state = self._new()
                for sequence in sequences:
                    start = after
                    for one in reversed(sequence):
                        start = self._compile(one, start)
                    self._edges.setdefault(start, []).append(_Edge(state))
                return state
            case Repeat():
                return self._compile_repeat(node, after)

    def _compile_repeat(self, repeat: Repeat, after: int) -> int:
        if repeat.most is None:
            state = self._connect(after)
            again = self._compile(repeat.node, state)
            self._edges.setdefault(again, []).append(_Edge(state))
        else:
            state = after
            for _ in range(repeat.most - repeat.least):
                start = self._compile(repeat.node, state)
                state = self._connect(start)
                self._edges.setdefault(after, []).append(_Edge(state))
        for _ in range(repeat.least):
            state = self._compile(repeat.node, state)
        return state
