"""FaultRules: the rules of a running cluster, which break requests to its brokers.

    with cluster.faults.add("Produce", topic="t", error="NOT_ENOUGH_REPLICAS", times=2) as rule:
        ...
        rule.wait(2)

They apply in the order in which they were added: of several that match a request the first that
hits it does. A rule holds for every broker of the cluster, also after a restart. Its matches are
counted over all of them together. The faults of disks are kept here, too.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.broker_process import CHANGED
from kafka08.embedded.match_log import Line, MatchLog
from kafka08.embedded.story import Event, time_of
from kafka08.errors import ConfigError, KafkaError
from kafka08.faults.disk import DiskFault
from kafka08.faults.rule import Rule
from kafka08.faults.tally import Tally
from kafka08.levels import Level
from kafka08.lifecycle import Closeable

RULES: Final = "rules.json"
MATCHES: Final = "matches"
STORY_LINES_MAX: Final = 1000
RULES_MAX: Final = 1000
TAKEN_S: Final = 10.0
"""For all brokers to have the rules."""
TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.002


class FaultRule(Closeable):
    """A rule that was added. As a context manager it is removed at the end.

    number   identifies it in its cluster
    rule     its values
    tally    its matches as far as they were read
    """

    def __init__(self, rules: FaultRules, number: int, rule: Rule) -> None:
        self.number = number
        self.rule = rule
        self._rules = rules
        self.tally = Tally(rule)

    @property
    def matches(self) -> int:
        """How many requests matched it, until its last hit or its removal."""
        self._rules.refresh()
        return self.tally.matches

    @property
    def hits(self) -> int:
        """How many of them it has hit."""
        self._rules.refresh()
        return self.tally.hits

    def wait(self, hits: int = 1, timeout: float = TIMEOUT_S) -> None:
        """Wait until it has hit so many requests. KafkaError after `timeout` seconds."""
        give_up_at = time.monotonic() + timeout
        while (seen := self.hits) < hits:
            if time.monotonic() > give_up_at:
                raise KafkaError(
                    f"not within {timeout:g} s: {hits} hits of rule {self}. It has {seen}, of "
                    f"{self.matches} requests that matched"
                )
            time.sleep(_POLL_S)

    def remove(self) -> None:
        """Let it hit no more requests; its counts stay. Harmless twice."""
        self._rules.remove(self.number)

    close = remove

    def __str__(self) -> str:
        return f"{self.number} ({self.rule})"


class FaultRules:
    """The rules of one cluster.

    directory   of its files
    brokers     ids of all brokers
    note        is told what is done, for the story of a test
    running     the brokers themselves; the cluster sets them when it starts
    """

    def __init__(
        self,
        directory: Path,
        level: Level,
        brokers: Sequence[int],
        note: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._directory = directory
        self._level = level
        self._ids = brokers
        self._note = note
        self._log = MatchLog(directory / MATCHES)
        self._active: dict[int, FaultRule] = {}
        self._disks: dict[int, DiskFault] = {}
        self._added: list[FaultRule] = []
        """All since the last `clear`."""
        self._hits: deque[Line] = deque(maxlen=STORY_LINES_MAX)
        self._begins = 0
        """The position in the log before the first match of an active rule."""
        self._number = 0
        self._version = 0
        self.running: Sequence[EmbeddedBroker] = ()

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(list(self._active.values()))

    def __len__(self) -> int:
        return len(self._active)

    def add(self, api: str | int | None = None, **values: Any) -> FaultRule:
        """Add a rule; returns once every broker that runs has it (a paused one takes it when it
        resumes). The keys of `values` are those of `kafka08.faults.rule.Rule`. ConfigError for
        values that are not legal, and for a rule that can never hit a request."""
        if len(self._active) == RULES_MAX:
            raise ConfigError(f"there are {RULES_MAX} rules already: remove some")
        rule = Rule.of({"api": api, **values}, self._level, self._ids)
        self.refresh()
        if not self._active:
            self._begins = self._log.position
        self._number += 1
        added = self._active[self._number] = FaultRule(self, self._number, rule)
        self._added.append(added)
        self._log.tallies[added.number] = added.tally
        self._note(f"adds rule {added}")
        try:
            self._publish()
        except KafkaError:
            # Nobody has its handle. Brokers that come back do not get it either.
            del self._active[added.number]
            self._write()
            raise
        return added

    def find(self, number: int) -> FaultRule:
        """The rule of that number. KafkaError if there is none, or none any more."""
        if number not in self._active:
            there = ", ".join(map(str, self._active)) or "none"
            raise KafkaError(f"there is no rule {number}; the cluster has: {there}")
        return self._active[number]

    def remove(self, number: int) -> None:
        """Remove the rule of that number, if there is one."""
        if self._active.pop(number, None) is not None:
            self._note(f"removes rule {number}")
            self._publish()

    def break_disk(self, broker: int, **values: Any) -> DiskFault:
        """Let every write of the broker fail so; the keys are those of
        `kafka08.faults.disk.DiskFault`. It replaces the fault before. Returns once the broker has
        it, if it runs. ConfigError for illegal values."""
        fault = self._disks[broker] = DiskFault.from_json(values)
        self._note(f"breaks the disk of broker {broker}: {fault}")
        self._publish()
        return fault

    def repair_disk(self, broker: int) -> None:
        """End the fault of the broker's disk, if it has one."""
        if self._disks.pop(broker, None) is not None:
            self._note(f"repairs the disk of broker {broker}")
            self._publish()

    def clear(self) -> None:
        """Remove all rules, repair all disks, and begin another story."""
        if self._active or self._disks:
            self._active.clear()
            self._disks.clear()
            self._publish()
        self._log.tallies.clear()
        self._added.clear()
        self._hits.clear()

    def unused(self) -> list[FaultRule]:
        """The rules, removed ones too, that have hit no request since the last `clear`."""
        return [rule for rule in self._added if rule.hits == 0]

    def story(self) -> list[Event]:
        """The last hits since the last `clear`."""
        self.refresh()
        return list(map(as_event, self._hits))

    def refresh(self) -> None:
        """Read what the brokers have noted."""
        self._hits.extend(line for line, is_hit in self._log.read() if is_hit)

    def close(self) -> None:
        """The brokers have stopped: what they have noted stays countable."""
        self.refresh()
        self._log.close()

    def _publish(self) -> None:
        """Write the rules, and wait until the brokers have them. Nothing once they have stopped."""
        if self._log.is_closed:
            return
        self._write()
        told: set[int] = set()
        give_up_at = time.monotonic() + TAKEN_S
        while lacking := list(filter(self._lacks_rules, self.running)):
            for broker in lacking:
                pid = broker.process.pid
                # One that has announced nothing yet reads the new rules at its start.
                if pid is not None and pid not in told and self._announced(broker) >= 0:
                    told.add(pid)
                    broker.process.send(CHANGED)
            if all(broker.is_paused for broker in lacking):
                return
            if time.monotonic() > give_up_at:
                names = ", ".join(str(broker.id) for broker in lacking)
                raise KafkaError(f"broker {names} has not taken the rules in {TAKEN_S:g} s")
            time.sleep(_POLL_S)
            self.refresh()

    def _write(self) -> None:
        self._version += 1
        rules = {number: added.rule for number, added in self._active.items()}
        write_rules(self._directory, RuleFile(rules, self._version, self._begins, self._disks))

    def _lacks_rules(self, broker: EmbeddedBroker) -> bool:
        return broker.running and self._announced(broker) < self._version

    def _announced(self, broker: EmbeddedBroker) -> int:
        """The version that the broker's process has announced; -1: none."""
        version, at_ms = self._log.versions.get(broker.process.pid or 0, (-1, 0))
        # An earlier process may have had the same id.
        return version if at_ms >= broker.started_ms else -1


class RuleFile(NamedTuple):
    """The content of the file: rules by number, its version, where in the log of matches the first
    one of these rules may be, and the faults of disks by broker id."""

    rules: Mapping[int, Rule] = {}
    version: int = 0
    begins: int = 0
    disks: Mapping[int, DiskFault] = {}


def write_rules(directory: Path, content: RuleFile) -> None:
    """Write the file; a reader sees the old one or the new one."""
    texts = {number: rule.to_json() for number, rule in content.rules.items()}
    disks = {broker: fault.to_json() for broker, fault in content.disks.items()}
    part = directory / f"{RULES}.part"
    part.write_text(json.dumps([texts, content.version, content.begins, disks]))
    os.replace(part, directory / RULES)


def read_rules(directory: Path) -> RuleFile:
    """The content of the file; an empty one if it is not there."""
    try:
        texts, version, begins, disks = json.loads((directory / RULES).read_text())
    except FileNotFoundError:
        return RuleFile()
    rules = {int(number): Rule.from_json(values) for number, values in texts.items()}
    faults = {int(broker): DiskFault.from_json(values) for broker, values in disks.items()}
    return RuleFile(rules, version, begins, faults)


def as_event(line: Line) -> Event:
    """A hit, for people."""
    named = " ".join(line["partitions"])
    text = (
        f"rule {line['rule']} hits {line['api']} {line['version']} of client {line['client_id']} "
        f"{named}"
    )
    return Event(time_of(line["at"] / 1000), f"broker {line['broker']}", text.rstrip())
