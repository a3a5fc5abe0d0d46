"""ProtocolVotes: the protocols that all members of a group support, and the one that they choose.

A protocol is a candidate if every member has it. Each member votes for the first candidate of its
list; the protocol with most votes wins. Source: kafka.coordinator.GroupMetadata.selectProtocol
0.10.2.2, which breaks ties arbitrarily.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from kafka08.broker.groups.group_events import Protocols

NAME: Final = itemgetter(0)


class ProtocolVotes:
    """The number of members that support each protocol, updated per member, so that the cost of a
    join depends only on the length of its own list."""

    def __init__(self) -> None:
        self._members = 0
        self._supporters: dict[str, int] = {}
        self._candidates: frozenset[str] | None = None
        """As last chosen from; None if members have changed since."""

    def add(self, protocols: Protocols) -> None:
        self._members += 1
        self._candidates = None
        for name in dict(protocols):
            self._supporters[name] = self._supporters.get(name, 0) + 1

    def remove(self, protocols: Protocols) -> None:
        self._members -= 1
        self._candidates = None
        for name in dict(protocols):
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]

    def replace(self, old: Protocols, new: Protocols) -> None:
        """A member joins again; usually with the same protocols."""
        if list(map(NAME, old)) != list(map(NAME, new)):
            self.remove(old)
            self.add(new)

    def accepts(self, protocols: Protocols) -> bool:
        """Whether the group still has a candidate with a member of these protocols."""
        members, supporters = self._members, self._supporters
        for name, _ in protocols:  # noqa: SIM110 - `any` of a generator takes three times as long
            if supporters.get(name, 0) == members:
                return True
        return False

    def choose(self, members: Iterable[Protocols]) -> str:
        """The winner among the lists of all members (at least one)."""
        candidates = self._candidates
        if candidates is None:
            supporters = self._supporters.items()
            candidates = frozenset([name for name, count in supporters if count == self._members])
            self._candidates = candidates
        if len(candidates) == 1:
            return next(iter(candidates))
        votes = Counter(
            next(name for name, _ in protocols if name in candidates) for protocols in members
        )
        return votes.most_common(1)[0][0]
