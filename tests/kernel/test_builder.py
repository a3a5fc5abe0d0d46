"""SetBuilder: a set that grows is the set that build_set makes at once."""

from __future__ import annotations

import gc
import threading
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

FIELD = st.none() | st.binary(max_size=40)
PAIRS = st.lists(st.tuples(FIELD, FIELD), max_size=20)


def builder(kernel: ModuleType, capacity: int = 1000, owner: object = "owner") -> Any:
    class Mine(kernel.MessageRef):  # type: ignore[name-defined,misc]
        __slots__ = ()

    return kernel.SetBuilder(capacity, owner, Mine)


@given(pairs=PAIRS, capacity=st.integers(0, 600))
def test_the_builder_makes_the_bytes_of_build_set(
    kernel: ModuleType, pairs: list[tuple[bytes | None, bytes | None]], capacity: int
) -> None:
    """The builder makes the bytes of build_set from the messages that fit. A message that does not
    fit changes nothing, and a smaller one still fits."""
    building = builder(kernel, capacity)
    accepted = [pair for pair in pairs if building.append(*pair) is not None]
    size = building.size
    assert building.count == len(accepted)
    assert size <= capacity
    assert building.finish() == kernel.build_set(accepted)
    assert len(kernel.build_set(accepted)) == size
    if len(accepted) < len(pairs):
        assert any(len(kernel.build_set([pair])) > capacity - size for pair in pairs)


def test_places_and_callbacks(kernel: ModuleType) -> None:
    """A reference has owner and index; a callback is at its message's index."""
    building = builder(kernel, owner=[1])
    places = [building.append(None, b"x", callback) for callback in (None, "a", None, None, "b")]
    assert [(place.owner, place.index) for place in places] == [([1], n) for n in range(5)]
    assert type(places[0]).__name__ == "Mine"
    assert building.callbacks == [None, "a", None, None, "b"]
    assert (kernel.MessageRef("o", 7).owner, kernel.MessageRef("o", 7).index) == ("o", 7)


def test_a_finished_set_refuses_messages(kernel: ModuleType) -> None:
    """`append` returns None, and a second `finish` raises ValueError."""
    building = builder(kernel)
    building.append(b"k", b"v")
    assert len(building.finish()) == 28
    assert building.append(None, None) is None
    with pytest.raises(ValueError, match="already finished"):
        building.finish()


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_set_that_grows_keeps_what_it_has(kernel: ModuleType, magic: int) -> None:
    """It is the set of a builder that had the room at once; it cannot shrink, or grow when it is
    finished."""
    large, grown = (kernel.SetBuilder(size, None, kernel.MessageRef, magic) for size in (900, 120))
    for number in range(20):
        fields = (b"k", b"%d" % number * 5, None, 1000 + number)
        assert large.append(*fields) is not None
        if grown.append(*fields) is None:
            grown.grow(2 * grown.capacity)
            assert grown.append(*fields).index == number
    assert grown.finish() == large.finish()
    assert grown.timestamps == large.timestamps
    with pytest.raises(ValueError, match="already finished"):
        grown.grow(2000)
    for size in (119, 1 << 31):
        with pytest.raises(OverflowError):
            kernel.SetBuilder(120, None, kernel.MessageRef, magic).grow(size)


def test_keys_and_values_must_be_bytes(kernel: ModuleType) -> None:
    """Other types raise TypeError and change nothing; any object with a buffer is copied."""
    building = builder(kernel)
    for bad in ("text", 7):
        with pytest.raises(TypeError):
            building.append(None, bad)
        with pytest.raises(TypeError):
            building.append(bad, None)
    changing = bytearray(b"abc")
    building.append(memoryview(b"key"), changing)
    changing[:] = b"xyz"
    assert building.finish() == kernel.build_set([(b"key", b"abc")])
    with pytest.raises(TypeError):
        kernel.SetBuilder(1, None, dict)
    with pytest.raises(OverflowError):
        kernel.SetBuilder(1 << 31, None, kernel.MessageRef)


def test_a_finished_set_keeps_no_object_alive(kernel: ModuleType) -> None:
    """Owner and builder refer to each other only while the set is open."""

    class Owner:
        pass

    gc.collect()
    owner = Owner()
    building = builder(kernel, owner=owner)
    building.append(None, b"")
    building.finish()
    assert not [thing for thing in gc.get_referrers(owner) if thing is building]


def test_many_threads_append_without_a_lock(kernel: ModuleType) -> None:
    """Each index is returned once, and has the message of the thread that got it."""
    building = builder(kernel, 4000 * 40)
    given: list[tuple[int, bytes]] = []

    def run(name: int) -> None:
        for n in range(1000):
            value = b"%d %d" % (name, n)
            given.append((building.append(None, value).index, value))

    threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = [(entry.offset, entry.value) for entry in kernel.entries(building.finish(), True)]
    assert sorted(given) == stored
