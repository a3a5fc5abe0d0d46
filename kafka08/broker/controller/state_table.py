"""A table of states with legal transitions, and a bounded history of them.

Both state machines of the controller are a `StateTable` each, with their own enum and
`VALID_PREVIOUS` table. Source: assertValidPreviousStates of kafka.controller 0.8.2.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, Generic, TypeVar

from kafka08.errors import KafkaError
from kafka08.listing import some_of

K = TypeVar("K")
S = TypeVar("S", bound=Enum)

HISTORY_LENGTH: Final = 200
STORY_LENGTH: Final = 20


class IllegalTransition(KafkaError):
    """An illegal transition. Nothing was changed; the text ends with the recent history."""


class History:
    """The last HISTORY_LENGTH actions of the controller, as sentences, oldest first."""

    def __init__(self) -> None:
        self._events: deque[str] = deque(maxlen=HISTORY_LENGTH)

    def add(self, sentence: str) -> None:
        self._events.append(sentence)

    def __iter__(self) -> Iterator[str]:
        return iter(self._events)

    def story(self) -> str:
        """The newest STORY_LENGTH sentences, one per line, for the text of an exception."""
        recent = list(self._events)[-STORY_LENGTH:]
        return "\n".join(f"  {sentence}" for sentence in recent) or "  (nothing happened before)"


class StateTable(Generic[K, S]):
    """The state of each key. An unknown key is in `initial`.

    valid_previous   target → the states from which it may be reached
    initial          the state of unknown keys; a transition to it forgets the key
    """

    def __init__(
        self, valid_previous: Mapping[S, frozenset[S]], initial: S, history: History
    ) -> None:
        self._valid_previous = valid_previous
        self._initial = initial
        self._history = history
        self._states: dict[K, S] = {}

    def __getitem__(self, key: K) -> S:
        return self._states.get(key, self._initial)

    def __contains__(self, key: K) -> bool:
        return key in self._states

    def __len__(self) -> int:
        return len(self._states)

    def put(self, key: K, state: S) -> None:
        """Set a state that was read from ZooKeeper: at the start of a term only."""
        self._states[key] = state

    def forget(self, key: K) -> None:
        """Drop a key, whatever its state."""
        self._states.pop(key, None)

    def check(self, key: K, target: S) -> None:
        """Raise IllegalTransition unless the transition of `key` to `target` is legal."""
        current = self[key]
        if current not in self._valid_previous[target]:
            legal = ", ".join(sorted(s.name for s in self._valid_previous[target]))
            raise IllegalTransition(
                f"{key} should be in one of the states {legal} before moving to {target.name}; "
                f"it is in {current.name}. Earlier transitions:\n{self._history.story()}"
            )

    def move(self, keys: Iterable[K], target: S) -> None:
        """Make the transition for every key: for all, or with IllegalTransition for none."""
        keys = list(keys)
        for key in keys:
            self.check(key, target)
        if not keys:
            return
        self._history.add(f"{some_of(keys)} → {target.name}")
        for key in keys:
            if target is self._initial:
                self._states.pop(key, None)
            else:
                self._states[key] = target

    def in_state(self, *states: S, where: Callable[[K], bool] = lambda _: True) -> list[K]:
        """The keys in one of `states` for which `where` holds, in the order they were added."""
        return [key for key, state in self._states.items() if state in states and where(key)]
