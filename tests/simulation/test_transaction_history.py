"""The checker of transactions, on small histories made by hand: silent on sound ones, and one
sentence for each fault."""

from __future__ import annotations

from kafka08.simulation.transaction_history import (
    Entry,
    Outcome,
    Session,
    Transaction,
    TransactionHistory,
)
from kafka08.structs import TopicPartition

P0, P1, IN = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("in", 0)
FIRST, SECOND = Session("id", 1), Session("id", 2)
COMMITTED, ABORTED = Outcome.COMMITTED, Outcome.ABORTED


def history_of(*sessions: Session) -> TransactionHistory:
    """The n-th session begins between 10 n and 10 n + 1; the first at 0."""
    history = TransactionHistory()
    for number, session in enumerate(sessions or [FIRST]):
        history.initialized(session, 10 * number, 10 * number + 1)
    return history


def transaction(
    history: TransactionHistory,
    *sent: tuple[TopicPartition, bytes],
    asked_at: float | None = 5,
    outcome: Outcome | None = COMMITTED,
    session: Session = FIRST,
) -> Transaction:
    made = history.begin(session)
    for tp, value in sent:
        made.send(tp, value)
    made.commit_asked_at = asked_at
    if outcome is not None:
        made.ended(outcome)
    return made


def copying(history: TransactionHistory, offsets: range, end: int) -> Transaction:
    """A transaction that processes these messages of IN, and commits `end`."""
    made = transaction(history, *((P0, b"of %d" % offset) for offset in offsets))
    made.group = "g"
    made.processed = [(IN, offset) for offset in offsets]
    made.offsets = {IN: end}
    return made


def problems(
    history: TransactionHistory, p0: list[Entry], p1: list[Entry], all_p0: list[Entry] | None = None
) -> list[str]:
    """With these values in the end; `all_p0`, with those that were aborted."""
    uncommitted = {"all": {P0: all_p0}} if all_p0 else {}
    return history.problems({"reader": {P0: p0, P1: p1}}, uncommitted)


def the_problem(
    history: TransactionHistory, p0: list[Entry], p1: list[Entry], all_p0: list[Entry] | None = None
) -> str:
    [found] = problems(history, p0, p1, all_p0)
    return found


def test_a_sound_history_has_no_problem() -> None:
    """One committed, one aborted, one without an outcome that is read, one that is not, and one
    that is open."""
    history = history_of()
    transaction(history, (P0, b"a"), (P1, b"b"))
    transaction(history, (P0, b"c"), asked_at=None, outcome=ABORTED)
    transaction(history, (P0, b"d"), (P1, b"e"), outcome=None)
    transaction(history, (P0, b"f"), (P1, b"g"), outcome=None)
    transaction(history, (P0, b"h"), asked_at=None, outcome=None)
    history.read("live", P0, 0, b"a", 6)
    history.read("live", P0, 4, b"d", 6)
    every = [(0, b"a"), (2, b"c"), (4, b"d"), (5, b"f"), (7, b"h")]
    assert problems(history, [(0, b"a"), (4, b"d")], [(0, b"b"), (2, b"e")], every) == []


def test_a_lost_value() -> None:
    """Committed, and not read in the end."""
    history = history_of()
    transaction(history, (P0, b"a"), (P1, b"b"))
    assert the_problem(history, [(0, b"a")], []).startswith("lost: id/1 #1 (committed): reader")


def test_an_aborted_value_that_is_read() -> None:
    """Whether it is there in the end, or was seen for a moment."""
    for outcome, asked_at in ((ABORTED, None), (None, None), (ABORTED, 5)):
        history = history_of()
        transaction(history, (P0, b"a"), asked_at=asked_at, outcome=outcome)
        assert the_problem(history, [(0, b"a")], []).startswith("aborted: id/1 #1")
        history.read("live", P0, 0, b"a", 6)
        assert the_problem(history, [], []).startswith("aborted: id/1 #1")


def test_a_value_that_is_read_before_its_commit() -> None:
    """Although the transaction is committed later."""
    history = history_of()
    transaction(history, (P0, b"a"))
    history.read("live", P0, 0, b"a", 4)
    assert the_problem(history, [(0, b"a")], []).startswith("dirty: b'a'")


def test_a_value_at_two_offsets() -> None:
    """For readers of committed messages; for the others also in an aborted transaction."""
    history = history_of()
    transaction(history, (P0, b"a"))
    assert the_problem(history, [(0, b"a"), (1, b"a")], []).startswith("repeated: b'a'")
    transaction(history, (P0, b"b"), outcome=ABORTED)
    every = [(0, b"a"), (2, b"b"), (3, b"b")]
    assert the_problem(history, [(0, b"a")], [], every).startswith("repeated: b'b'")


def test_half_of_a_transaction() -> None:
    """Its commit was not answered: the other partition must have it, too."""
    history = history_of()
    transaction(history, (P0, b"a"), (P1, b"b"), outcome=None)
    assert the_problem(history, [(0, b"a")], []).startswith("torn: id/1 #1 (no outcome)")


def test_the_order_of_sends() -> None:
    """Within a transaction, and from one to the next."""
    history = history_of()
    transaction(history, (P0, b"a"), (P0, b"b"))
    transaction(history, (P0, b"c"))
    right, within, between = b"abc", b"bac", b"cab"
    for order, begins in ((right, None), (within, "out of order: b'a'"), (between, "out of order")):
        found = problems(history, [(n, bytes([value])) for n, value in enumerate(order)], [])
        assert [one[: len(begins or "")] for one in found] == ([begins] if begins else [])


def test_two_sessions_have_no_order() -> None:
    """Values of one transactional id by two producers, which overlap."""
    history = history_of(FIRST, SECOND)
    transaction(history, (P0, b"a"), session=SECOND, asked_at=15)
    transaction(history, (P0, b"b"), session=FIRST, asked_at=9)
    assert problems(history, [(0, b"b"), (1, b"a")], []) == []


def test_a_fenced_producer_that_commits() -> None:
    """It is told so, or its values are read, after its successor has begun."""
    for outcome, read in ((COMMITTED, False), (None, True), (COMMITTED, True)):
        history = history_of(FIRST, SECOND)
        transaction(history, (P0, b"a"), outcome=outcome, asked_at=12)
        assert the_problem(history, [(0, b"a")] if read else [], []).startswith("fenced: id/1 #1")


def test_a_commit_while_its_successor_begins() -> None:
    """Nobody knows which was first."""
    history = history_of(FIRST, SECOND)
    transaction(history, (P0, b"a"), asked_at=10.5)
    assert problems(history, [(0, b"a")], []) == []


def test_a_successor_that_began_before() -> None:
    """Sessions may begin in another order than they were started."""
    history = history_of(SECOND, FIRST)
    transaction(history, (P0, b"a"), asked_at=12)
    assert problems(history, [(0, b"a")], []) == []


def test_readers_that_differ() -> None:
    """A reader missed one, saw one twice, or saw it elsewhere."""
    for offsets in ((1,), (0, 0, 1), (0, 2)):
        history = history_of()
        transaction(history, (P0, b"a"), (P0, b"b"))
        for offset in offsets:
            history.read("live", P0, offset, b"ab"[min(offset, 1) :][:1], 6)
        found = the_problem(history, [(0, b"a"), (1, b"b")], [])
        assert found.startswith("differs: [t,0]: live has")


def test_ends_that_differ() -> None:
    """Two readers see one value at different offsets in the end."""
    history = history_of()
    transaction(history, (P0, b"a"), outcome=None)
    [found] = history.problems({"one": {P0: [(0, b"a")]}, "two": {P0: [(1, b"a")]}})
    assert found.startswith("differs: [t,0]: two has")


def test_a_value_that_nobody_sent() -> None:
    """To that partition, at least."""
    history = history_of()
    transaction(history, (P0, b"a"))
    found = problems(history, [(0, b"a")], [(0, b"a")])
    assert found == ["invented: b'a' in [t,1]"]


def offset_problems(history: TransactionHistory, offset: int | None, results: int) -> list[str]:
    """With two values in IN, so many results, and this offset in the end."""
    source = history.begin(Session("source", 1))
    for n in range(2):
        source.send(IN, b"%d" % n)
    source.commit_asked_at = 0
    source.ended(COMMITTED)
    final = {IN: [(0, b"0"), (1, b"1")], P0: [(n, b"of %d" % n) for n in range(results)]}
    return history.problems({"r": final}, {}, {} if offset is None else {("g", IN): offset})


def test_offsets_of_a_sound_loop() -> None:
    """Two transactions; the second has no outcome, and is read with its offset, or without."""
    for results, offset in ((2, 2), (1, 1)):
        history = history_of()
        copying(history, range(1), 1)
        copying(history, range(1, 2), 2).outcome = None
        history.saw_offset("g", IN, 1, 5)
        assert offset_problems(history, offset, results) == []


def test_offsets_apart_from_their_output() -> None:
    """Too small, too large or none; a message without a result, or with two."""
    for offset in (0, 2, None):
        history = history_of()
        copying(history, range(1), 1)
        [found] = offset_problems(history, offset, 1)
        assert found.startswith(f"apart: group g is at {offset} in [in,0], but id/1 #1")
    history = history_of()
    transaction(history, (P0, b"of 0"))
    copying(history, range(1, 2), 2)
    assert offset_problems(history, 2, 2) == ["apart: g is at 2 in [in,0], but 0 has no result"]
    history = history_of()
    copying(history, range(1), 1)
    again = transaction(history, (P0, b"of 1"))
    again.group, again.processed = "g", [(IN, 0)]
    [found] = offset_problems(history, 1, 2)
    assert found.startswith("apart: [in,0] offset 0 was processed by id/1 #1 (committed), and")
    history = history_of()
    copying(history, range(2), 1)
    [found] = offset_problems(history, 1, 2)
    assert found == "apart: g is at 1 in [in,0], but id/1 #1 (committed) has 1"


def test_an_offset_that_is_seen_early() -> None:
    """Before its commit was asked for."""
    history = history_of()
    copying(history, range(1), 1)
    history.saw_offset("g", IN, 1, 4)
    [found] = offset_problems(history, 1, 1)
    assert found == "apart: g was at 1 in [in,0], which no commit had asked for"
