"""The checker itself, on hand-made histories: one for each thing that must hold."""

from __future__ import annotations

import pytest

from kafka08.simulation.history import History
from kafka08.structs import TopicPartition

TP = TopicPartition("t", 0)


@pytest.fixture
def history() -> History:
    """a, b and c were sent; b's response was lost; a consumer has read a and b."""
    history = History()
    history.acknowledged("sender", TP, 0, b"a")
    history.unknown(TP, b"b")
    history.acknowledged("sender", TP, 2, b"c")
    history.record_read("reader", TP, 0, b"a")
    history.record_read("reader", TP, 1, b"b")
    return history


SOUND = {0: b"a", 1: b"b", 2: b"c"}


def kinds(history: History, final: dict[int, bytes]) -> list[str]:
    return [problem.partition(":")[0] for problem in history.problems({TP: final})]


def test_a_sound_history(history: History) -> None:
    """A history without violations has no problems, whether or not a send without a response was
    stored."""
    assert [] == kinds(history, SOUND)
    history.unknown(TP, b"never arrived")
    assert [] == kinds(history, SOUND)


def test_1_lost(history: History) -> None:
    """An acknowledged message that is missing, or is at another offset, is lost."""
    assert ["lost"] == kinds(history, {0: b"a", 1: b"b"})
    assert ["lost"] == kinds(history, {0: b"a", 1: b"b", 3: b"c"})
    assert ["lost", "lost", "vanished", "vanished"] == kinds(history, {})


def test_2_changed(history: History) -> None:
    """An offset with different values for two readers, or for a reader and the log at the end, has
    changed."""
    history.record_read("other", TP, 0, b"a")
    history.record_read("other", TP, 1, b"c")
    assert ["changed", "changed"] == kinds(history, SOUND)


def test_3_vanished(history: History) -> None:
    """A message that was read but is missing at the end has vanished, even if it was never
    acknowledged."""
    assert ["vanished"] == kinds(history, {0: b"a", 2: b"c"})


def test_4_repeated(history: History) -> None:
    """A value at two offsets is a repetition where senders do not retry; one that was tried again
    once is at two offsets at most."""
    assert ["repeated"] == kinds(history, {**SOUND, 3: b"b"})
    tried_twice = History(copies=lambda _value: 2)
    tried_twice.unknown(TP, b"b")
    assert [] == kinds(tried_twice, {0: b"b", 1: b"b"})
    assert ["repeated"] == kinds(tried_twice, {0: b"b", 1: b"b", 2: b"b"})


def test_5_out_of_order(history: History) -> None:
    """One sender's acknowledged offsets, and one reader's offsets, must rise; offsets of different
    senders and readers may cross."""
    history.acknowledged("other", TP, 1, b"b")
    history.record_read("other", TP, 0, b"a")
    assert [] == kinds(history, SOUND)
    history.acknowledged("sender", TP, 1, b"b")
    history.record_read("reader", TP, 0, b"a")
    assert ["out of order", "out of order"] == kinds(history, SOUND)


def test_5_the_order_is_that_of_the_sends(history: History) -> None:
    """The rule about order compares sends, not acknowledgements: the first of two values was sent
    again after the second was stored, and acknowledged later."""
    history.unknown(TP, b"first")
    history.unknown(TP, b"second")
    history.acknowledged("sender", TP, 3, b"second")
    history.acknowledged("sender", TP, 4, b"first")
    assert ["out of order"] == kinds(history, {**SOUND, 3: b"second", 4: b"first"})


def test_6_skipped(history: History) -> None:
    """A reader that passes over an offset, also before its first message, has skipped it."""
    history.record_read("other", TP, 1, b"b")
    assert ["skipped"] == kinds(history, SOUND)
    history.record_read("reader", TP, 3, b"d")
    history.unknown(TP, b"d")
    assert ["skipped", "skipped"] == kinds(history, {**SOUND, 3: b"d"})


def test_7_invented(history: History) -> None:
    """A read message d that no producer sent is a violation."""
    assert ["invented"] == kinds(history, {**SOUND, 3: b"d"})


def test_senders_that_try_again() -> None:
    """Senders that retry may store a value twice, but the rules about order and losses still
    hold."""
    for ordered in (True, False):
        history = History(ordered=ordered, copies=lambda _value: 2)
        history.acknowledged("sender", TP, 2, b"a")
        history.acknowledged("sender", TP, 1, b"b")
        assert ([] if not ordered else ["out of order"]) == kinds(
            history, {0: b"a", 1: b"b", 2: b"a"}
        )
        assert "lost" in kinds(history, {0: b"a", 1: b"b"})
