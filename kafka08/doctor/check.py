"""Check and Finding: the form of all checks and their results."""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from kafka08.doctor.snapshot import Snapshot
from kafka08.listing import some_of

Z: Final = "{cluster}"
"""Placeholder in a command, for the option that names the cluster."""
ZOOKEEPER: Final = "{zookeeper}"
"""The same in a command that takes ZooKeeper's address alone."""
NAMES: Final = {
    "GROUP": re.compile(r"group ([^,]+)(?:,|$)"),
    "TOPIC": re.compile(r"(?:topic |/config/topics/)(.+)|\[(.+),\d+\]"),
}
"""Placeholder in a command → what is named in a place."""


class Severity(enum.Enum):
    PROBLEM = "problem"
    """Messages are or will be lost or late: exit 1."""
    NOTE = "note"
    """Worth knowing; a healthy cluster may have it."""


class Found(NamedTuple):
    """One result of a check: the broker, partition, znode, group or file, and its problem."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Check:
    """A named check of a snapshot.

    why      why it matters, in a sentence
    command  what to do: a command, or words that may end with one
    find     returns every place with the problem
    """

    name: str
    severity: Severity
    why: str
    command: str
    find: Callable[[Snapshot], Iterable[Found]]

    def findings(self, snapshot: Snapshot) -> list[Finding]:
        """One finding for each text, with all its places."""
        places: dict[str, list[str]] = {}
        for where, what in self.find(snapshot):
            places.setdefault(what, []).append(where)
        place = snapshot.place
        command = self.command.replace(Z, place.option).replace(ZOOKEEPER, place.zookeeper_option)
        return [
            Finding(self.name, self.severity, some_of(where), what, self.why, named(command, where))
            for what, where in places.items()
        ]


def named(command: str, places: list[str]) -> str:
    """The command with the name of its group or topic, where the finding is of a single one."""
    for word, pattern in NAMES.items():
        found = [of for place in places if (of := pattern.match(place))]
        names = {of[of.lastindex or 0] for of in found}
        if len(names) == 1:
            command = command.replace(f" {word} ", f" {shlex.quote(*names)} ")
    return command


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem: what, where, why it matters, and what to do."""

    check: str
    severity: Severity
    where: str
    what: str
    why: str
    command: str

    @property
    def is_problem(self) -> bool:
        return self.severity is Severity.PROBLEM

    def as_dict(self) -> dict[str, str]:
        """The finding for JSON."""
        return asdict(self) | {"severity": self.severity.value}

    def __str__(self) -> str:
        return (
            f"{self.severity.value.capitalize()} {self.check}: {self.where}: {self.what}\n"
            f"  Why: {self.why}\n  Do: {self.command}"
        )


def problem(
    name: str, why: str, command: str, find: Callable[[Snapshot], Iterable[Found]]
) -> Check:
    return Check(name, Severity.PROBLEM, why, command, find)


def note(name: str, why: str, command: str, find: Callable[[Snapshot], Iterable[Found]]) -> Check:
    return Check(name, Severity.NOTE, why, command, find)
