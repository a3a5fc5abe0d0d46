"""What a check is, and what it finds."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafka08.doctor.snapshot import Snapshot
from kafka08.listing import some_of

CONNECT: Final = "{zookeeper}"
"""Where a command has the connect string of the cluster."""
Z: Final = f"--zookeeper {CONNECT}"


class Severity(enum.Enum):
    PROBLEM = "problem"
    """Messages are lost or late, or will be: exit 1."""
    NOTE = "note"
    """Worth knowing; a cluster may be healthy with it."""


class Found(NamedTuple):
    """One place where a check applies: the broker, partition, znode, group or file, and what is
    the case there."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Check:
    """A named question about a snapshot.

    why      why it matters, in a sentence
    command  one command that shows more or cures it
    find     every place where it applies
    """

    name: str
    severity: Severity
    why: str
    command: str
    find: Callable[[Snapshot], Iterable[Found]]

    def findings(self, snapshot: Snapshot) -> list[Finding]:
        """One finding for each text, with all the places that it is said of."""
        places: dict[str, list[str]] = {}
        for where, what in self.find(snapshot):
            places.setdefault(what, []).append(where)
        command = self.command.replace(CONNECT, snapshot.connect)
        return [
            Finding(self.name, self.severity, some_of(where), what, self.why, command)
            for what, where in places.items()
        ]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, where, why it matters, and what to run."""

    check: str
    severity: Severity
    where: str
    what: str
    why: str
    command: str

    @property
    def is_problem(self) -> bool:
        return self.severity is Severity.PROBLEM

    def __str__(self) -> str:
        return (
            f"{self.severity.value.capitalize()} {self.check}: {self.where}: {self.what}\n"
            f"  Why: {self.why}\n  Run: {self.command}"
        )


def problem(
    name: str, why: str, command: str, find: Callable[[Snapshot], Iterable[Found]]
) -> Check:
    return Check(name, Severity.PROBLEM, why, command, find)


def note(name: str, why: str, command: str, find: Callable[[Snapshot], Iterable[Found]]) -> Check:
    return Check(name, Severity.NOTE, why, command, find)
