"""ProbeLedger: the outcome of each message of a probe. Pure.

Names, labels and meanings are those of kminion's end-to-end test: a message is lost if it was
acknowledged but not read within the timeout. kminion never takes that back; here a message that is
read later also counts as late. Source of the names: redpanda-data/kminion, e2e/service.go.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kafka08.metrics import Family, Histogram, Sample

PREFIX: Final = "kminion_end_to_end"
LATE_MAX: Final = 10_000
"""Number of lost messages that are still recognised when they arrive."""
OUTSTANDING_MAX: Final = 10_000
"""Limit of messages with an unknown outcome; beyond it none are sent."""


@dataclass(slots=True)
class Sent:
    """A message with an unknown outcome. Times are monotonic seconds."""

    partition: int
    at: float
    acknowledged: bool = False
    read: bool = False
    late: bool = False
    """Read after the timeout, and not acknowledged yet."""


class ProbeLedger:
    """timeout_s   from sending to reading; longer is lost"""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._next = 0
        self._sent: dict[int, Sent] = {}
        self._lost: deque[tuple[int, int]] = deque(maxlen=LATE_MAX)
        """(number, partition), oldest first."""
        self._partitions: set[int] = set()
        self._counts: dict[str, Counter[int]] = {
            what: Counter() for what in ("produced", "failed", "received", "lost", "late")
        }
        self._produce: dict[int, Histogram] = {}
        self._roundtrip: dict[int, Histogram] = {}

    @property
    def outstanding(self) -> int:
        """Number of messages with an unknown outcome."""
        return len(self._sent)

    def send(self, partition: int, now: float) -> int | None:
        """The number of a message that will be sent now; None if too many are outstanding."""
        self._partitions.add(partition)
        if len(self._sent) >= OUTSTANDING_MAX:
            return None
        number = self._next
        self._next += 1
        self._sent[number] = Sent(partition, now)
        return number

    def acknowledge(self, number: int, now: float) -> None:
        """A broker has stored it."""
        sent = self._sent.get(number)
        if sent is None:
            return
        sent.acknowledged = True
        self._counts["produced"][sent.partition] += 1
        self._produce.setdefault(sent.partition, Histogram()).add(now - sent.at)
        if sent.late:
            self._lose(number)
            self._read_late(number)
        elif sent.read:
            del self._sent[number]

    def fail(self, number: int) -> None:
        """Count a message that was not acknowledged and will not be retried. It may be stored
        nevertheless."""
        sent = self._sent.pop(number, None)
        if sent is not None:
            self._counts["produced"][sent.partition] += 1
            self._counts["failed"][sent.partition] += 1

    def receive(self, number: int, now: float) -> None:
        """Count a message that was read, perhaps before its acknowledgement, perhaps again."""
        sent = self._sent.get(number)
        if sent is None or self._is_lost(sent, now):
            self._lose(number)
            self._read_late(number)
        elif not sent.read:
            sent.read = True
            sent.late = self._is_overdue(sent, now)
            if sent.late:
                return
            self._counts["received"][sent.partition] += 1
            self._roundtrip.setdefault(sent.partition, Histogram()).add(now - sent.at)
            if sent.acknowledged:
                del self._sent[number]

    def _read_late(self, number: int) -> None:
        for entry in self._lost:
            if entry[0] == number:
                self._lost.remove(entry)
                self._counts["late"][entry[1]] += 1
                return

    def expire(self, now: float) -> None:
        """Count messages as lost that were acknowledged but not read within the timeout."""
        for number in [n for n, sent in self._sent.items() if self._is_lost(sent, now)]:
            self._lose(number)

    def _is_lost(self, sent: Sent, now: float) -> bool:
        return sent.acknowledged and self._is_overdue(sent, now)

    def _is_overdue(self, sent: Sent, now: float) -> bool:
        return now - sent.at > self._timeout_s

    def _lose(self, number: int) -> None:
        """Nothing if its outcome is known."""
        sent = self._sent.pop(number, None)
        if sent is not None:
            self._counts["lost"][sent.partition] += 1
            self._lost.append((number, sent.partition))

    def families(self) -> Iterator[Family]:
        """The families of every partition; the samples are made at once."""
        waiting = Counter(s.partition for s in self._sent.values() if not s.acknowledged)
        for name, kind, suffix, says, values in (
            ("messages_produced_in_flight", "gauge", "", "Sent, without a response.", waiting),
            ("messages_produced", "counter", "_total", "Acknowledged or refused.",
             self._counts["produced"]),
            ("messages_produced_failed", "counter", "_total", "Refused, or without a response.",
             self._counts["failed"]),
            ("messages_received", "counter", "_total", "Read in time.", self._counts["received"]),
            ("messages_lost", "counter", "_total", "Acknowledged and not read in time.",
             self._counts["lost"]),
            ("messages_late", "counter", "_total", "Counted as lost, and read later.",
             self._counts["late"]),
        ):  # fmt: skip
            samples = [Sample(suffix, _labels(p), values[p]) for p in sorted(self._partitions)]
            yield Family(f"{PREFIX}_{name}", says, samples, kind)
        for name, says, histograms in (
            ("produce_latency_seconds", "From sending to the acknowledgement.", self._produce),
            ("roundtrip_latency_seconds", "From sending to reading.", self._roundtrip),
        ):
            found = [s for p, h in sorted(histograms.items()) for s in h.samples(_labels(p))]
            yield Family(f"{PREFIX}_{name}", says, found, "histogram")


def _labels(partition: int) -> dict[str, str]:
    return {"partition_id": str(partition)}
