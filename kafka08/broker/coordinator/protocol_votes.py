"""ProtocolVotes: the protocols that all members of a group support, and the one that they choose.

A protocol is a candidate if every member has it. Each member votes for the first candidate of its
list; the protocol with most votes wins. Source: kafka.coordinator.GroupMetadata.selectProtocol
0.10.2.2, which breaks ties arbitrarily.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kafka08.broker.coordinator.group_events import Protocols


class ProtocolVotes:
    """The number of members that support each protocol, updated per member, so that the cost of a
    join depends only on the length of its own list."""

    def __init__(self) -> None:
        self._members = 0
        self._supporters: dict[str, int] = {}

    def add(self, protocols: Protocols) -> None:
        self._members += 1
        for name in dict(protocols):
            self._supporters[name] = self._supporters.get(name, 0) + 1

    def remove(self, protocols: Protocols) -> None:
        self._members -= 1
        for name in dict(protocols):
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]

    def replace(self, old: Protocols, new: Protocols) -> None:
        """A member joins again; usually with the same protocols, in any order."""
        if dict(old).keys() != dict(new).keys():
            self.remove(old)
            self.add(new)

    def accepts(self, protocols: Protocols) -> bool:
        """Whether the group still has a candidate with a member of these protocols."""
        members, supporters = self._members, self._supporters
        return any(supporters.get(name, 0) == members for name, _ in protocols)

    def choose(self, members: Iterable[Protocols]) -> str:
        """The winner among the lists of all members (at least one)."""
        candidates = {name for name, count in self._supporters.items() if count == self._members}
        if len(candidates) == 1:
            return candidates.pop()
        votes = Counter(
            next(name for name, _ in protocols if name in candidates) for protocols in members
        )
        return votes.most_common(1)[0][0]
