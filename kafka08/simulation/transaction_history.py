"""Transactions of several producers, what readers saw of them, and the rules for that. Pure.

    history = TransactionHistory()
    history.initialized(session, asked_at, at)      init_transactions was called, and returned
    transaction = history.begin(session)
    transaction.send(tp, value)                     noted before the call, as `commit_asked_at`
    transaction.ended(Outcome.COMMITTED)            its producer was told so
    history.read(reader, tp, offset, value, at)     by a reader of committed messages
    history.problems(...)                           with all that can be read in the end

A session is one producer object, with the transactional id that it shares with its predecessors and
successors. Every value is sent once, so all differ; every transaction with offsets has a value. The
rules:

1. Lost: every value of a transaction that was committed is read in the end, by each reader.
2. Aborted: no value of a transaction that was aborted, or that was never to be committed, is read
   by a reader of committed messages.
3. Dirty: none is read before its producer asked to commit.
4. Repeated: no value is at two offsets, aborted ones included.
5. Torn: of a transaction whose commit was not answered, all values are read in the end or none.
6. Out of order: in a partition, the values of a session are in the order of its sends.
7. Fenced: once a later session of the same id has begun, a former one commits nothing.
8. Apart: a group's committed offset is that of the last transaction that is read. Each message
   below it was processed by one such transaction, and none above it. No offset is seen before its
   commit was asked for.
9. Differs: what a reader saw is the beginning of what is there in the end, for every other one.
10. Invented: every value was sent.

A transaction that was asked to commit and has no outcome may be read or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from kafka08.structs import TopicPartition

Entry: TypeAlias = tuple[int, bytes]
"""Offset and value."""
Log: TypeAlias = Mapping[TopicPartition, Sequence[Entry]]
Logs: TypeAlias = Mapping[str, Log]
"""What each reader saw, in its order."""
GroupOffsets: TypeAlias = Mapping[tuple[str, TopicPartition], int]
"""The offset of the next message of a group in a partition."""


class Session(NamedTuple):
    """The `number`-th producer with a transactional id."""

    transactional_id: str
    number: int

    def __str__(self) -> str:
        return f"{self.transactional_id}/{self.number}"


class Outcome(Enum):
    """The end of its transaction, as the producer knows it."""

    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False)
class Transaction:
    """One transaction, as its producer sees it.

    commit_asked_at   when commit_transaction was called; None: it never was
    processed         the messages of `group` whose result is in it
    offsets           the offsets of `group` that it commits
    """

    session: Session
    number: int
    sent: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    group: str = ""
    processed: list[tuple[TopicPartition, int]] = field(default_factory=list)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    commit_asked_at: float | None = None
    outcome: Outcome | None = None

    def send(self, tp: TopicPartition, value: bytes) -> None:
        self.sent.append((tp, value))

    def ended(self, outcome: Outcome) -> None:
        self.outcome = outcome

    @property
    def is_aborted(self) -> bool:
        return self.outcome is Outcome.ABORTED or self.commit_asked_at is None

    def __str__(self) -> str:
        if self.outcome is not None:
            told = self.outcome.value
        else:
            told = "no outcome" if self.commit_asked_at is not None else "never asked to commit"
        return f"{self.session} #{self.number} ({told})"


class Read(NamedTuple):
    reader: str
    tp: TopicPartition
    offset: int
    value: bytes
    at: float

    def __str__(self) -> str:
        return f"{self.value!r} at {self.tp} offset {self.offset} by {self.reader}"


class TransactionHistory:
    """See the module. Times are of one clock."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self._begun: dict[Session, tuple[float, float]] = {}
        self._count: dict[Session, int] = defaultdict(int)
        self._reads: list[Read] = []
        self._looks: list[tuple[str, TopicPartition, int, float]] = []

    def initialized(self, session: Session, asked_at: float, at: float) -> None:
        self._begun[session] = (asked_at, at)

    def begin(self, session: Session) -> Transaction:
        self._count[session] += 1
        transaction = Transaction(session, self._count[session])
        self.transactions.append(transaction)
        return transaction

    def read(self, reader: str, tp: TopicPartition, offset: int, value: bytes, at: float) -> None:
        """A reader of committed messages has received this one by the time `at`."""
        self._reads.append(Read(reader, tp, offset, value, at))

    def saw_offset(self, group: str, tp: TopicPartition, offset: int, at: float) -> None:
        """The committed offset of a group, known by the time `at`."""
        self._looks.append((group, tp, offset, at))

    @property
    def sessions(self) -> int:
        return len(self._begun)

    def problems(
        self, committed: Logs, uncommitted: Logs | None = None, offsets: GroupOffsets | None = None
    ) -> list[str]:
        """A sentence for each violation; [] for a sound history.

        committed     all that each reader of committed messages reads in the end
        uncommitted   the same of readers of all messages
        offsets       the committed offsets in the end
        """
        return list(_Judgement(self, committed, uncommitted or {}, offsets or {}).problems())

    def is_fenced(self, transaction: Transaction) -> bool:
        """Whether its commit was asked for when a later session of its id had begun for sure."""
        session, asked_at = transaction.session, transaction.commit_asked_at
        began = self._begun.get(session)
        return (
            began is not None
            and asked_at is not None
            and any(
                other.transactional_id == session.transactional_id
                and other != session
                and began[1] < times[0]
                and times[1] < asked_at
                for other, times in self._begun.items()
            )
        )

    @property
    def reads(self) -> Sequence[Read]:
        return self._reads

    @property
    def looks(self) -> Sequence[tuple[str, TopicPartition, int, float]]:
        return self._looks


class _Judgement:
    """One check of a history with one end."""

    def __init__(
        self,
        history: TransactionHistory,
        committed: Logs,
        uncommitted: Logs,
        offsets: GroupOffsets,
    ) -> None:
        self._history = history
        self._committed = committed
        self._uncommitted = uncommitted
        self._offsets = offsets
        self._of: dict[tuple[TopicPartition, bytes], tuple[Transaction, int]] = {}
        for number, transaction in enumerate(history.transactions):
            for place, (tp, value) in enumerate(transaction.sent):
                self._of[tp, value] = (transaction, number << 32 | place)
        self._final = {
            reader: {(tp, value) for tp, entries in log.items() for _, value in entries}
            for reader, log in committed.items()
        }
        self._visible = set().union(*self._final.values()) if self._final else set()

    def problems(self) -> Iterator[str]:
        yield from self._invented()
        yield from self._wrongly_seen()
        yield from self._dirty()
        yield from self._lost_or_torn()
        for logs in (self._committed, self._uncommitted):
            for reader, log in logs.items():
                for tp, entries in log.items():
                    yield from self._repeated(reader, tp, entries)
                    yield from self._out_of_order(reader, tp, entries)
        yield from self._differs()
        yield from self._apart()
        yield from self._early_offsets()

    def _must_be_invisible(self, transaction: Transaction) -> bool:
        return transaction.is_aborted or self._history.is_fenced(transaction)

    def _all_reads(self) -> Iterator[Read]:
        """Those of readers of committed messages, during the history and in the end."""
        yield from self._history.reads
        for reader, log in self._committed.items():
            for tp, entries in log.items():
                for offset, value in entries:
                    yield Read(reader, tp, offset, value, float("inf"))

    def _invented(self) -> Iterator[str]:
        everything = {
            (tp, value)
            for log in self._uncommitted.values()
            for tp, entries in log.items()
            for _, value in entries
        }
        everything |= {(one.tp, one.value) for one in self._all_reads()}
        for tp, value in sorted(everything - self._of.keys()):
            yield f"invented: {value!r} in {tp}"

    def _wrongly_seen(self) -> Iterator[str]:
        """Rules 2 and 7, one sentence for a transaction."""
        named: set[Transaction] = set()
        for one in self._all_reads():
            transaction, _ = self._of.get((one.tp, one.value), (None, 0))
            if (
                transaction is not None
                and transaction not in named
                and self._must_be_invisible(transaction)
            ):
                named.add(transaction)
                kind = "aborted" if transaction.is_aborted else "fenced"
                yield f"{kind}: {transaction}, but {one} was read"
        for transaction in self._history.transactions:
            if (
                transaction.outcome is Outcome.COMMITTED
                and transaction not in named
                and self._history.is_fenced(transaction)
            ):
                yield f"fenced: {transaction}, after a later session had begun"

    def _dirty(self) -> Iterator[str]:
        named: set[Transaction] = set()
        for one in self._history.reads:
            transaction, _ = self._of.get((one.tp, one.value), (None, 0))
            if transaction is None or transaction in named:
                continue
            asked_at = transaction.commit_asked_at
            if asked_at is not None and one.at < asked_at:
                named.add(transaction)
                yield f"dirty: {one} was read {asked_at - one.at:.3f} s before {transaction} asked"

    def _lost_or_torn(self) -> Iterator[str]:
        for transaction in self._history.transactions:
            if not transaction.sent or self._must_be_invisible(transaction):
                continue
            for reader, found in self._final.items():
                missing = [one for one in transaction.sent if one not in found]
                if not missing:
                    continue
                tp, value = missing[0]
                count = f"{len(missing)} of {len(transaction.sent)} values"
                if transaction.outcome is Outcome.COMMITTED:
                    kind = "lost"
                elif any(one in self._visible for one in transaction.sent):
                    kind = "torn"
                else:
                    continue
                yield f"{kind}: {transaction}: {reader} lacks {count}, {value!r} of {tp} first"

    def _repeated(self, reader: str, tp: TopicPartition, entries: Sequence[Entry]) -> Iterator[str]:
        first: dict[bytes, int] = {}
        for offset, value in entries:
            earlier = first.setdefault(value, offset)
            if earlier != offset:
                transaction = self._of.get((tp, value))
                yield (
                    f"repeated: {value!r} is in {tp} at offsets {earlier} and {offset}, says "
                    f"{reader}, of {transaction[0] if transaction else 'nobody'}"
                )

    def _out_of_order(
        self, reader: str, tp: TopicPartition, entries: Sequence[Entry]
    ) -> Iterator[str]:
        last: dict[Session, tuple[int, bytes]] = {}
        seen: set[bytes] = set()
        for offset, value in entries:
            found = self._of.get((tp, value))
            if found is None or value in seen:
                continue
            seen.add(value)
            transaction, place = found
            earlier = last.get(transaction.session)
            if earlier is not None and place < earlier[0]:
                yield (
                    f"out of order: {value!r} of {transaction} is in {tp} at offset {offset}, "
                    f"after {earlier[1]!r}, says {reader}"
                )
            last[transaction.session] = (place, value)

    def _differs(self) -> Iterator[str]:
        """Values that other rules name are left out."""
        if not self._committed:
            return
        (reference, log), *others = self._committed.items()
        ends = {tp: self._sound(tp, entries) for tp, entries in log.items()}
        for reader, other in others:
            for tp in sorted({*ends, *other}):
                found = self._sound(tp, other.get(tp, ()))
                yield from _difference(reader, tp, found, reference, ends.get(tp, []))
        reads: dict[tuple[str, TopicPartition], list[Entry]] = defaultdict(list)
        for one in self._history.reads:
            reads[one.reader, one.tp].append((one.offset, one.value))
        for (reader, tp), entries in sorted(reads.items()):
            found = self._sound(tp, entries)
            last = max((offset for offset, _ in found), default=-1)
            end = [entry for entry in ends.get(tp, []) if entry[0] <= last]
            yield from _difference(reader, tp, found, reference, end)

    def _sound(self, tp: TopicPartition, entries: Iterable[Entry]) -> list[Entry]:
        return [
            (offset, value)
            for offset, value in entries
            if (found := self._of.get((tp, value))) and not self._must_be_invisible(found[0])
        ]

    def _visible_transactions(self) -> list[Transaction]:
        return [
            transaction
            for transaction in self._history.transactions
            if any(one in self._visible for one in transaction.sent)
        ]

    def _apart(self) -> Iterator[str]:
        reached: dict[tuple[str, TopicPartition], tuple[int, Transaction]] = {}
        processed: dict[tuple[str, TopicPartition, int], Transaction] = {}
        for transaction in self._visible_transactions():
            for tp, offset in transaction.processed:
                earlier = processed.setdefault((transaction.group, tp, offset), transaction)
                if earlier is not transaction:
                    yield (
                        f"apart: {tp} offset {offset} was processed by {earlier}, and again by "
                        f"{transaction}"
                    )
            for tp, offset in transaction.offsets.items():
                key = transaction.group, tp
                if key not in reached or offset > reached[key][0]:
                    reached[key] = (offset, transaction)
        for key in sorted({*self._offsets, *reached}):
            group, tp = key
            end, by = self._offsets.get(key), reached.get(key)
            if end != (by[0] if by else None):
                reason = f"{by[1]} reached {by[0]}" if by else "no transaction that is read has any"
                yield f"apart: group {group} is at {end} in {tp}, but {reason}"
                continue
            values = next(iter(self._committed.values()), {}).get(tp, ())
            for offset, _ in values:
                result = processed.get((group, tp, offset))
                is_below = end is not None and offset < end
                if is_below and result is None:
                    yield f"apart: {group} is at {end} in {tp}, but {offset} has no result"
                elif not is_below and result is not None:
                    yield f"apart: {group} is at {end} in {tp}, but {result} has {offset}"

    def _early_offsets(self) -> Iterator[str]:
        commits: dict[tuple[str, TopicPartition, int], float] = {}
        for transaction in self._history.transactions:
            if self._must_be_invisible(transaction):
                continue
            assert transaction.commit_asked_at is not None
            for tp, offset in transaction.offsets.items():
                key = transaction.group, tp, offset
                commits[key] = min(commits.get(key, float("inf")), transaction.commit_asked_at)
        for group, tp, offset, at in self._history.looks:
            if at < commits.get((group, tp, offset), float("inf")):
                yield f"apart: {group} was at {offset} in {tp}, which no commit had asked for"


def _difference(
    reader: str,
    tp: TopicPartition,
    found: Sequence[Entry],
    reference: str,
    wanted: Sequence[Entry],
) -> Iterator[str]:
    if found == wanted:
        return
    at = next(
        (n for n, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other),
        min(len(found), len(wanted)),
    )
    yield (
        f"differs: {tp}: {reader} has {list(found[at : at + 1])} where {reference} has "
        f"{list(wanted[at : at + 1])} in the end"
    )
