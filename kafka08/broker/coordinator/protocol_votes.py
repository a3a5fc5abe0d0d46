"""ProtocolVotes: which protocols all members of a group support, and which one they choose.

A protocol is a candidate if every member names it. Each member votes for the first candidate of its
list; the protocol with most votes wins. Source: kafka.coordinator.GroupMetadata.selectProtocol
0.10.2.2, which takes any of those that have equally many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kafka08.broker.coordinator.group_events import Protocols


class ProtocolVotes:
    """How many members support each protocol; kept up to date by member, so that one join costs as
    much as its own list is long, however many members there are."""

    def __init__(self) -> None:
        self._members = 0
        self._supporters: Counter[str] = Counter()

    def add(self, protocols: Protocols) -> None:
        self._members += 1
        self._supporters.update(_names(protocols))

    def remove(self, protocols: Protocols) -> None:
        self._members -= 1
        for name in _names(protocols):
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]

    def replace(self, old: Protocols, new: Protocols) -> None:
        """A member joins again; mostly with the same protocols, in whatever order."""
        if _names(old) != _names(new):
            self.remove(old)
            self.add(new)

    def accepts(self, protocols: Protocols) -> bool:
        """Whether a member with these protocols leaves the group a candidate."""
        return any(self._supporters[name] == self._members for name, _ in protocols)

    def choose(self, members: Iterable[Protocols]) -> str:
        """The winner among the lists of all members, of which there is at least one."""
        candidates = {name for name, count in self._supporters.items() if count == self._members}
        if len(candidates) == 1:
            return candidates.pop()
        votes = Counter(
            next(name for name, _ in protocols if name in candidates) for protocols in members
        )
        return votes.most_common(1)[0][0]


def _names(protocols: Protocols) -> set[str]:
    return {name for name, _ in protocols}
