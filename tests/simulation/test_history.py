"""The checker itself, on hand-made histories: one for each thing that must hold."""

from __future__ import annotations

import pytest

from kafka08.simulation.history import History
from kafka08.structs import TopicPartition

TP = TopicPartition("t", 0)


@pytest.fixture
def history() -> History:
    """a, b and c were sent; b's answer was lost; somebody has read a and b."""
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
    """Nothing to complain of, wherever a send without an answer ended up."""
    assert [] == kinds(history, SOUND)
    history.unknown(TP, b"never arrived")
    assert [] == kinds(history, SOUND)


def test_1_lost(history: History) -> None:
    """The acknowledged c is not there, or stands elsewhere."""
    assert ["lost"] == kinds(history, {0: b"a", 1: b"b"})
    assert ["lost"] == kinds(history, {0: b"a", 1: b"b", 3: b"c"})
    assert ["lost", "lost", "vanished", "vanished"] == kinds(history, {})


def test_2_changed(history: History) -> None:
    """Two readers were given different contents, or the end has another than a reader saw."""
    history.record_read("other", TP, 1, b"c")
    assert ["changed", "changed"] == kinds(history, SOUND)


def test_3_vanished(history: History) -> None:
    """b was read, never acknowledged, and is gone: still a broken promise."""
    assert ["vanished"] == kinds(history, {0: b"a", 2: b"c"})


def test_4_repeated(history: History) -> None:
    """Nobody sent anything twice."""
    assert ["repeated"] == kinds(history, {**SOUND, 3: b"b"})


def test_5_out_of_order(history: History) -> None:
    """A later send of one sender got a smaller offset; a reader went back. Others may do both."""
    history.acknowledged("other", TP, 1, b"b")
    history.record_read("other", TP, 0, b"a")
    assert [] == kinds(history, SOUND)
    history.acknowledged("sender", TP, 1, b"b")
    history.record_read("reader", TP, 0, b"a")
    assert ["out of order", "out of order"] == kinds(history, SOUND)


def test_5_the_order_is_that_of_the_sends(history: History) -> None:
    """The first of two values was sent again after the second was stored, and acknowledged later:
    acknowledgements alone would be in order."""
    history.unknown(TP, b"first")
    history.unknown(TP, b"second")
    history.acknowledged("sender", TP, 3, b"second")
    history.acknowledged("sender", TP, 4, b"first")
    assert ["out of order"] == kinds(history, {**SOUND, 3: b"second", 4: b"first"})


def test_6_invented(history: History) -> None:
    """Nobody sent d."""
    assert ["invented"] == kinds(history, {**SOUND, 3: b"d"})


def test_senders_that_try_again() -> None:
    """Second copies are allowed, order holds where it is promised, and what is lost is lost."""
    for ordered in (True, False):
        history = History(ordered=ordered, repeats=True)
        history.acknowledged("sender", TP, 2, b"a")
        history.acknowledged("sender", TP, 1, b"b")
        assert ([] if not ordered else ["out of order"]) == kinds(
            history, {0: b"a", 1: b"b", 2: b"a"}
        )
        assert "lost" in kinds(history, {0: b"a", 1: b"b"})
