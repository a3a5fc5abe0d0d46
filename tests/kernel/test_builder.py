"""SetBuilder and murmur2: a set that grows is the set that build_set makes at once."""

from __future__ import annotations

import gc
import threading
from collections import namedtuple
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import hashing
from tests.kernel.conftest import native_or_skip

FIELD = st.none() | st.binary(max_size=40)
PAIRS = st.lists(st.tuples(FIELD, FIELD), max_size=20)


def builder(kernel: ModuleType, capacity: int = 1000, owner: object = "owner") -> Any:
    class Mine(kernel.MessageRef):  # type: ignore[name-defined,misc]
        __slots__ = ()

    return kernel.SetBuilder(capacity, owner, Mine)


@given(pairs=PAIRS, capacity=st.integers(0, 600))
def test_it_grows_to_what_build_set_makes(
    kernel: ModuleType, pairs: list[tuple[bytes | None, bytes | None]], capacity: int
) -> None:
    """Of the messages that fit; one that does not leaves no trace, and a smaller one still fits."""
    building = builder(kernel, capacity)
    accepted = [pair for pair in pairs if building.append(*pair) is not None]
    size = building.size
    assert building.count == len(accepted)
    assert size <= capacity
    assert building.finish() == kernel.build_set(accepted)
    assert len(kernel.build_set(accepted)) == size
    if len(accepted) < len(pairs):
        assert any(len(kernel.build_set([pair])) > capacity - size for pair in pairs)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("new_producer_record", ("topic", "value", "key", "partition")),
        ("new_keyed_message", ("topic", "message", "key", "partition_key")),
    ],
)
def test_messages_are_named_tuples(kernel: ModuleType, name: str, fields: tuple[str, ...]) -> None:
    """Of the given class, with its hash, by position or by name, and with its defaults."""
    new = getattr(kernel, name)
    cls: Any = namedtuple("cls", fields, defaults=(None, None))  # type: ignore[misc]
    for values in (("t", b"v"), ("t", b"v", b"k"), ("t", b"v", b"k", 3)):
        expected = cls(*values)
        for made in (new(cls, *values), new(cls, **dict(zip(fields, values, strict=False)))):
            assert (cls, expected, hash(expected)) == (type(made), made, hash(made))
    for wrong in ((), ("t", 1, 2, 3, 4)):
        with pytest.raises(TypeError):
            new(cls, *wrong)
    for other in (list, object):
        with pytest.raises(TypeError):
            new(other, "t", b"v")


def test_places_and_callbacks(kernel: ModuleType) -> None:
    """A place knows owner and index; callbacks stand at their message's index."""
    building = builder(kernel, owner=[1])
    places = [building.append(None, b"x", callback) for callback in (None, "a", None, None, "b")]
    assert [(place.owner, place.index) for place in places] == [([1], n) for n in range(5)]
    assert type(places[0]).__name__ == "Mine"
    assert building.callbacks == [None, "a", None, None, "b"]
    assert (kernel.MessageRef("o", 7).owner, kernel.MessageRef("o", 7).index) == ("o", 7)


def test_a_finished_set_takes_nothing(kernel: ModuleType) -> None:
    """`append` returns None, and a second `finish` raises ValueError."""
    building = builder(kernel)
    building.append(b"k", b"v")
    assert len(building.finish()) == 28
    assert building.append(None, None) is None
    with pytest.raises(ValueError, match="already finished"):
        building.finish()


def test_what_is_no_bytes_is_refused(kernel: ModuleType) -> None:
    """TypeError, without a trace; anything with a buffer is copied."""
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


def test_a_finished_set_keeps_nobody_alive(kernel: ModuleType) -> None:
    """Owner and builder point at each other only while it is open."""

    class Owner:
        pass

    gc.collect()
    owner = Owner()
    building = builder(kernel, owner=owner)
    building.append(None, b"")
    building.finish()
    assert not [thing for thing in gc.get_referrers(owner) if thing is building]


def test_many_threads_append_without_a_lock(kernel: ModuleType) -> None:
    """Every place is given once, and holds what its thread put there."""
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


@given(data=st.binary(max_size=70))
def test_murmur2_is_the_one_of_java(data: bytes) -> None:
    """The native one gives what kafka08.hashing does, which is held to captured keys."""
    assert native_or_skip().murmur2(data) == hashing.murmur2(data)
