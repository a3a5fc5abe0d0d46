"""The sends and reads of a workload, and a check that a log without losses allows them.

    history = History()
    history.acknowledged(tp, offset, value)     the response to a send has this offset
    history.unknown(tp, value)                  sent, outcome unknown: it may be there or not
    history.record_read(reader, tp, offset, value)     a reader received this message
    problems = history.problems(final)          `final`: partition → offset → value, read at the end

Every value is sent at most once, so all messages differ. The rules (after jepsen's kafka workload):

1. Lost: in the end each acknowledged value is at its offset.
2. Changed: an offset never has two values, for any readers at any times.
3. Vanished: a message that was read is there in the end.
4. Repeated: no value is at more offsets than its sender may have sent it (`copies`).
5. Out of order: a sender's acknowledged offsets rise in the order of its sends (checked if
   `ordered`), and a reader's offsets rise.
6. Skipped: a reader's offsets are all of them, from 0 on.
7. Invented: no value is in the log that was not sent.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafka08.structs import TopicPartition

Final = Mapping[TopicPartition, Mapping[int, bytes]]


class HistoryEntry(NamedTuple):
    """One message of the sender or reader `who`."""

    who: str
    tp: TopicPartition
    offset: int
    value: bytes

    def __str__(self) -> str:
        return f"{self.tp} offset {self.offset} {self.value!r} ({self.who})"


class History:
    """Events in the order in which they were recorded, by any thread.

    copies   how often a value may have been stored: senders that retry store some again
    """

    def __init__(
        self, *, ordered: bool = True, copies: Callable[[bytes], int] = lambda _value: 1
    ) -> None:
        self._ordered = ordered
        self._copies = copies
        self._lock = threading.Lock()
        self.acknowledgements: list[HistoryEntry] = []
        self.reads: list[HistoryEntry] = []
        self._unknown: dict[TopicPartition, dict[bytes, int]] = {}
        """Each value sent, with its number in the order of the calls."""

    def acknowledged(self, who: str, tp: TopicPartition, offset: int, value: bytes) -> None:
        with self._lock:
            self.acknowledgements.append(HistoryEntry(who, tp, offset, value))

    def unknown(self, tp: TopicPartition, value: bytes) -> None:
        with self._lock:
            sent = self._unknown.setdefault(tp, {})
            sent.setdefault(value, len(sent))

    def unknown_count(self) -> int:
        return sum(map(len, self._unknown.values()))

    def last_offset(self, tp: TopicPartition) -> int:
        """The largest that was acknowledged or read, -1 if there is none. The last read of a log
        waits for it: the HW of a new leader stands still until its followers have fetched."""
        with self._lock:
            events = (*self.acknowledgements, *self.reads)
        return max((event.offset for event in events if event.tp == tp), default=-1)

    def record_read(self, who: str, tp: TopicPartition, offset: int, value: bytes) -> None:
        with self._lock:
            self.reads.append(HistoryEntry(who, tp, offset, value))

    def problems(self, final: Final) -> list[str]:
        """A sentence for each violation; [] for a sound history."""
        return [
            *self._lost(final),
            *self._changed_or_vanished(final),
            *self._repeated(final),
            *(_out_of_order(self._in_order_of_sends(), "acknowledged") if self._ordered else []),
            *_out_of_order(self.reads, "read"),
            *_skipped(self.reads),
            *self._invented(final),
        ]

    def _in_order_of_sends(self) -> list[HistoryEntry]:
        """The acknowledgements, by the calls of `unknown` for their values. A value without such a
        call keeps its place."""
        last: dict[TopicPartition, int] = {}
        order: list[tuple[int, int, HistoryEntry]] = []
        for number, event in enumerate(self.acknowledgements):
            sent = self._unknown.get(event.tp, {}).get(event.value)
            if sent is None:
                sent = last.get(event.tp, -1)
            last[event.tp] = sent
            order.append((sent, number, event))
        return [event for *_, event in sorted(order, key=lambda item: item[:2])]

    def _lost(self, final: Final) -> list[str]:
        return [
            f"lost: {event}, there is {final.get(event.tp, {}).get(event.offset)!r}"
            for event in self.acknowledgements
            if final.get(event.tp, {}).get(event.offset) != event.value
        ]

    def _changed_or_vanished(self, final: Final) -> list[str]:
        problems = []
        seen: dict[tuple[TopicPartition, int], bytes] = {}
        for event in self.reads:
            earlier = seen.setdefault((event.tp, event.offset), event.value)
            if earlier != event.value:
                problems.append(f"changed: {event}, was {earlier!r}")
            last = final.get(event.tp, {}).get(event.offset)
            if last is None:
                problems.append(f"vanished: {event}")
            elif last != event.value:
                problems.append(f"changed: {event}, is {last!r}")
        return problems

    def _repeated(self, final: Final) -> list[str]:
        problems = []
        for tp, messages in final.items():
            for value, count in Counter(messages.values()).items():
                if count > 1 and count > self._copies(value):
                    offsets = sorted(offset for offset, of in messages.items() if of == value)
                    problems.append(
                        f"repeated: {tp} {value!r} is at {count} offsets, {offsets[:3]} first, "
                        f"but was sent {self._copies(value)} times at most"
                    )
        return problems

    def _invented(self, final: Final) -> list[str]:
        sent = {tp: set(values) for tp, values in self._unknown.items()}
        for event in self.acknowledgements:
            sent.setdefault(event.tp, set()).add(event.value)
        return [
            f"invented: {tp} offset {offset} {value!r}"
            for tp, messages in final.items()
            for offset, value in messages.items()
            if value not in sent.get(tp, ())
        ]


def _out_of_order(events: list[HistoryEntry], verb: str) -> list[str]:
    problems = []
    last: dict[tuple[str, TopicPartition], int] = {}
    for event in events:
        key = (event.who, event.tp)
        if event.offset <= last.get(key, -1):
            problems.append(f"out of order: {event} {verb} after {last[key]}")
        last[key] = event.offset
    return problems


def _skipped(reads: list[HistoryEntry]) -> list[str]:
    problems = []
    due: dict[tuple[str, TopicPartition], int] = {}
    for event in reads:
        key = (event.who, event.tp)
        if event.offset > due.get(key, 0):
            problems.append(f"skipped: {event} read, though {due.get(key, 0)} was next")
        due[key] = event.offset + 1
    return problems
