"""The producers' work for each message: tuples, routes, batches, queues and callbacks."""

from __future__ import annotations

import itertools
import threading
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import hashing

FIELD = st.none() | st.binary(max_size=40)
PAIRS = st.lists(st.tuples(FIELD, FIELD), max_size=20)
CALLED = "called"


class Pair(NamedTuple):
    """The limits of a ColumnBuffer in these tests."""

    left: Any
    right: Any = None


# ------------------------------------------------------------------------------------------ tuples


def named(name: str, fields: tuple[str, ...]) -> Any:
    """A class of named tuples whose first two fields have no default."""
    return namedtuple(name, fields, defaults=(None,) * (len(fields) - 2))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("new_producer_record", ("topic", "value", "key", "partition", "timestamp", "headers")),
        ("new_keyed_message", ("topic", "message", "key", "partition_key")),
    ],
)
@pytest.mark.parametrize("by_class", [False, True])
def test_messages_are_named_tuples(
    kernel: ModuleType, name: str, fields: tuple[str, ...], by_class: bool
) -> None:
    """Messages are of the given class, with its hash and defaults, by position or by name, from the
    function and from a call of a class that has it as constructor."""
    new = getattr(kernel, name)
    plain, cls = named("plain", fields), named("cls", fields)
    make: Callable[..., Any] = partial(new, cls)
    if by_class:
        kernel.set_constructor(cls, new)
        make = cls
    everything = ("t", b"v", b"k", 3, 4, ())[: len(fields)]
    for values in (everything[:2], everything[:3], everything):
        expected = plain(*values)
        for made in (make(*values), make(**dict(zip(fields, values, strict=False)))):
            assert (cls, expected, hash(expected)) == (type(made), made, hash(made))
    assert make("t", b"v", key=b"k") == plain("t", b"v", b"k")
    for wrong in ((), (*everything, 5), (None,) * 40):
        with pytest.raises(TypeError):
            make(*wrong)
    with pytest.raises(TypeError):
        make("t", b"v", other=1)
    for other in (list, object):
        with pytest.raises(TypeError):
            new(other, "t", b"v")


def test_a_record_refuses_a_timestamp_that_cannot_be(kernel: ModuleType) -> None:
    """A negative one as in Java, one of more than 63 bits, and one that is no whole number."""
    record = named("record", ("topic", "value", "key", "partition", "timestamp"))
    kernel.set_constructor(record, kernel.new_producer_record)
    for wrong, error in ((-1, ValueError), (1 << 63, ValueError), (1.0, TypeError)):
        with pytest.raises(error, match="milliseconds since 1970"):
            kernel.new_producer_record(tuple, "t", timestamp=wrong)
        with pytest.raises(error, match="milliseconds since 1970"):
            record("t", b"v", None, None, wrong)
    assert record("t", None, None, None, 0).timestamp == 0


def test_a_subclass_keeps_its_own_constructor(kernel: ModuleType) -> None:
    """A class that inherits from one with a constructor of the kernel calls its own `__new__`."""
    message = named("message", ("topic", "message", "key", "partition_key"))
    kernel.set_constructor(message, kernel.new_keyed_message)

    def new(cls: Any, topic: str) -> Any:
        return message.__new__(cls, topic.upper(), None)

    Loud = type("Loud", (message,), {"__new__": new})
    assert (type(Loud("t")), Loud("t")) == (Loud, ("T", None, None, None))
    with pytest.raises(TypeError):
        kernel.set_constructor(list, kernel.new_keyed_message)


# ------------------------------------------------------------------------------------------ routes


class Routing:
    """An appender for topic `t` with three partitions, whose sets have `capacity` bytes."""

    def __init__(
        self, kernel: ModuleType, capacity: int = 1000, *, magic: int = 0, is_numbered: bool = True
    ) -> None:
        self.queues = [kernel.OpenSet() for _ in range(3)]
        self.builders = [
            kernel.SetBuilder(capacity, n, kernel.MessageRef, magic, lambda: 77) for n in range(3)
        ]
        for queue, builder in zip(self.queues, self.builders, strict=True):
            queue.builder = builder
        self.left: list[tuple[Any, ...]] = []
        turns = itertools.cycle([self.queues[2], self.queues[0]])
        route = kernel.RecordRoute(self.queues, turns, is_numbered)
        self.send = kernel.RecordAppender(
            {"t": route}, self.leave("otherwise"), self.leave("without room")
        ).send

    def leave(self, why: str) -> Callable[..., str]:
        def note(*arguments: Any) -> str:
            self.left.append((why, *arguments))
            return CALLED

        return note

    def owner_of(self, *record: Any) -> Any:
        return self.send((*record, None)).owner


def test_partition_key_and_turn_choose_the_queue(kernel: ModuleType) -> None:
    """The record's partition, else the hash of its key, else the next turn."""
    routing = Routing(kernel)
    assert [routing.owner_of("t", b"v", b"k", n, None) for n in (0, 1, 2)] == [0, 1, 2]
    assert [routing.owner_of("t", b"v", None, None, None) for _ in range(3)] == [2, 0, 2]
    for key in (b"", b"a", b"some key"):
        chosen = (hashing.murmur2(key) & 0x7FFFFFFF) % 3
        assert routing.owner_of("t", b"v", key, None, None) == chosen
    assert routing.left == []


@pytest.mark.parametrize(
    "record",
    [
        ("u", b"v", None, None, None, None),
        ("t", b"v", "text", None, None, None),
        ("t", b"v", bytearray(b"k"), None, None, None),
        ("t", b"v", None, 3, None, None),
        ("t", b"v", None, -1, None, None),
        ("t", b"v", None, True, None, None),
        ("t", b"v", None, 1 << 70, None, None),
        ("t", b"v"),
        ["t", b"v", None, None, None, None],
        ("t", b"v", None, None, None),
        ("t", b"v", None, None, None, [("h", b"")]),
        None,
    ],
)
def test_what_needs_python_is_left(kernel: ModuleType, record: Any) -> None:
    """A new topic, a key of another type, a partition that does not exist, headers, and what is no
    record go to `otherwise`, whose result is returned; nothing was appended."""
    routing = Routing(kernel)
    callback = object()
    assert routing.send(record, callback) == CALLED
    assert routing.left == [("otherwise", record, callback)]
    assert [builder.count for builder in routing.builders] == [0, 0, 0]


def test_partitions_with_gaps_are_left(kernel: ModuleType) -> None:
    """Where queue n may not be that of partition n, only records without a partition are
    appended."""
    routing = Routing(kernel, is_numbered=False)
    assert routing.send(("t", b"v", None, 1, None, None)) == CALLED
    assert routing.owner_of("t", b"v", None, None, None) == 2


def test_a_set_without_room_is_left(kernel: ModuleType) -> None:
    """A set that is full, finished, or not there: `without_room` gets the queue and the fields."""
    routing = Routing(kernel, 30)
    routing.builders[1].finish()
    routing.queues[2].builder = None
    for n, timestamp in ((0, None), (1, 5), (2, None)):
        assert routing.send(("t", b"large" * 9, b"k", n, timestamp, None), CALLED) == CALLED
    fields = (b"k", b"large" * 9, CALLED)
    assert routing.left == [
        ("without room", queue, *fields, timestamp)
        for queue, timestamp in zip(routing.queues, (-1, 5, -1), strict=True)
    ]


def test_times_and_callbacks_are_appended(kernel: ModuleType) -> None:
    """A record's timestamp, else the clock's; its callback at its index. A timestamp before 1970
    is refused. A value that is no bytes, bytearray or None is left to the caller."""
    routing = Routing(kernel, magic=1)
    routing.send(("t", b"a", None, 0, 5, None))
    routing.send(("t", b"b", None, 0, None, None), CALLED)
    with pytest.raises(ValueError, match="before 1970"):
        routing.send(("t", b"", None, 0, -2, None))
    for value in ("text", memoryview(b"v")):
        for record in (("t", value, None, 0, 1, None), ("t", b"v", value, 0, 1, None)):
            assert routing.send(record, CALLED) == CALLED
            assert routing.left.pop()[1:] == (record, CALLED)
    assert routing.builders[0].callbacks == [None, CALLED]
    found = kernel.entries(routing.builders[0].finish(), True)
    assert [(entry.value, entry.timestamp_ms) for entry in found] == [(b"a", 5), (b"b", 77)]


def test_a_subclass_may_have_the_same_names(kernel: ModuleType) -> None:
    """KafkaProducer has routes of its own; a producer with serializers gives the base none."""

    class Appender(kernel.RecordAppender):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__({}, lambda *_: CALLED, None)
            self._routes = self._otherwise = self._without_room = self._queue_of = None

    assert Appender().send(("t", b"v", None, None, None)) == CALLED


def test_a_route_has_queues(kernel: ModuleType) -> None:
    """A route without a queue is refused: no key has a partition out of none."""
    with pytest.raises(ValueError, match="without partitions"):
        kernel.RecordRoute([], iter(()), True)


# ------------------------------------------------------------------------------------------ queues


def test_a_buffer_takes_as_many_as_it_has_room(kernel: ModuleType) -> None:
    """`admit` adds one and makes room, `put` uses it up and leaves the rest to Python; `take`
    empties it."""
    left: list[Any] = []

    def otherwise(message: Any) -> str:
        left.append(message)
        return CALLED

    buffer = kernel.ColumnBuffer(Pair, otherwise)
    assert buffer.put(Pair(1)) == CALLED
    assert (buffer.admit(Pair(2), 3), buffer.room) == (1, 2)
    assert [buffer.put(Pair(n, n)) for n in (3, 4, 5)] == [None, None, CALLED]
    assert (len(buffer), left) == (3, [Pair(1), Pair(5, 5)])
    assert (buffer.admit(Pair(6), 1), buffer.room) == (4, 0)
    buffer.room = 1
    assert buffer.take() == [[2, 3, 4, 6], [None, 3, 4, None]]
    assert (len(buffer), buffer.room, buffer.take()) == (0, 0, [[], []])


def test_a_buffer_takes_one_class(kernel: ModuleType) -> None:
    """Other objects are left to Python, even tuples of the same fields; subclasses are taken."""
    buffer = kernel.ColumnBuffer(Pair, lambda message: CALLED)
    sub = type("Sub", (Pair,), {})
    buffer.admit(sub(1), 9)
    wrong: tuple[Any, ...] = ((1, 2), "ab", None, tuple.__new__(Pair, (1,)))
    assert [buffer.put(other) for other in wrong] == [CALLED] * 4
    for other in wrong:
        with pytest.raises(TypeError):
            buffer.admit(other, 9)
    assert (buffer.put(sub(2)), len(buffer)) == (None, 2)
    with pytest.raises(TypeError):
        kernel.ColumnBuffer(list, print)


def test_threads_put_without_a_lock(kernel: ModuleType) -> None:
    """The columns stay aligned, each thread's messages stay in order, and no room is used twice."""
    lock = threading.Lock()
    taken: list[list[list[Any]]] = []

    def admit(message: Any) -> None:
        with lock:
            buffer.room = 0
            if buffer.admit(message, 9) >= 10:
                taken.append(buffer.take())

    buffer = kernel.ColumnBuffer(Pair, admit)

    def run(name: int) -> None:
        for n in range(1000):
            buffer.put(Pair(name, (name, n)))

    threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(columns[0]) for columns in taken} == {10}
    rows = [row for columns in (*taken, buffer.take()) for row in zip(*columns, strict=True)]
    for name in range(4):
        assert [row for row in rows if row[0] == name] == [(name, (name, n)) for n in range(1000)]


# --------------------------------------------------------------------------------------- callbacks


@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt])
def test_callbacks_get_where_their_record_is(
    kernel: ModuleType, raised: type[BaseException]
) -> None:
    """Offset and timestamp of the callback's record, in a tuple of the given class; an error goes
    to `on_error`, and the next one is called."""
    where = named("where", ("topic", "partition", "offset", "timestamp"))
    calls: list[Any] = []

    def called(*arguments: Any) -> None:
        calls.append(arguments)

    def failing(*arguments: Any) -> None:
        raise raised("the user's")

    given = [called, None, failing, called]
    kernel.run_callbacks(
        *(given, where, "t", 3, 10, [5, 6, 7, 8], None, lambda: calls.append("error"))
    )
    assert calls == [(("t", 3, 10, 5), None), "error", (("t", 3, 13, 8), None)]
    assert type(calls[0][0]) is where
    calls.clear()
    kernel.run_callbacks([called, called], where, "t", 3, -1, 9, None, print)
    assert calls == [(("t", 3, -1, 9), None)] * 2
    calls.clear()
    error = ValueError("the broker's")
    kernel.run_callbacks([None, called], where, "t", 3, -1, 9, error, print)
    assert calls == [(None, error)]


# ----------------------------------------------------------------------------------------- columns


@given(pairs=PAIRS, batch_bytes=st.integers(0, 300), empty_bytes=st.sampled_from([26, 34]))
def test_batches_are_as_long_as_they_may_be(
    kernel: ModuleType,
    pairs: list[tuple[bytes | None, bytes | None]],
    batch_bytes: int,
    empty_bytes: int,
) -> None:
    """Batches have the bytes of their set, end before the first record that does not fit, and have
    one record at least."""
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    magic = int(empty_bytes > 26)
    start = 0
    while start < len(pairs):
        end, size = kernel.end_of_batch(keys, values, start, batch_bytes, empty_bytes)
        assert start < end <= len(pairs)
        assert size == len(kernel.build_set(pairs[start:end], magic=magic))
        assert size <= batch_bytes or end == start + 1
        if end < len(pairs):
            assert len(kernel.build_set(pairs[start : end + 1], magic=magic)) > batch_bytes
        start = end
    assert kernel.end_of_batch(None, values, len(pairs), 9, 26) == (len(pairs), 0)


@given(pairs=PAIRS, start=st.integers(0, 20), magic=st.integers(0, 1), data=st.data())
def test_sets_of_lists_are_those_of_pairs(
    kernel: ModuleType,
    pairs: list[tuple[bytes | None, bytes | None]],
    start: int,
    magic: int,
    data: st.DataObject,
) -> None:
    """Rows of two lists make the bytes of build_set, with a time of each or of all; without keys
    every key is null."""
    start = min(start, len(pairs))
    end = data.draw(st.integers(start, len(pairs)))
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    times: list[Any] = [None, 7, list(range(end - start))] if magic else [None]
    for some in times:
        options = {"magic": magic, "timestamps": some}
        made = kernel.build_from_lists(keys, values, start, end, **options)
        assert made == kernel.build_set(pairs[start:end], **options)
        keyless = kernel.build_from_lists(None, values, start, end, **options)
        assert keyless == kernel.build_set([(None, v) for v in values[start:end]], **options)


def test_rows_that_are_not_there(kernel: ModuleType) -> None:
    """Rows outside the lists, and lists of different lengths, are refused."""
    values: list[bytes | None] = [b"a", b"b"]
    for keys, start, end in ((None, 0, 3), (None, 2, 1), (None, -1, 1), ([None], 0, 1)):
        with pytest.raises(ValueError, match=r"rows|keys"):
            kernel.build_from_lists(keys, values, start, end)
    for keys, start in ((None, 3), (None, -1), ([None], 0)):
        with pytest.raises(ValueError, match=r"rows|keys"):
            kernel.end_of_batch(keys, values, start, 9, 26)
    with pytest.raises(ValueError, match="1 timestamps for 2"):
        kernel.build_from_lists(None, values, 0, 2, 1, [5])
    with pytest.raises(TypeError):
        kernel.build_from_lists(None, ["text"], 0, 1)


@given(keys=st.lists(FIELD, max_size=30), count=st.integers(1, 9))
def test_rows_by_their_key(kernel: ModuleType, keys: list[bytes | None], count: int) -> None:
    """Each key's partition is Java's; rows without a key have one number of their own. Rows are
    grouped in order."""
    expected = [count if k is None else (hashing.murmur2(k) & 0x7FFFFFFF) % count for k in keys]
    assert kernel.key_partitions(keys, count) == expected
    groups = kernel.group_rows(expected)
    assert list(groups) == list(dict.fromkeys(expected))
    for number, rows in groups.items():
        assert rows == [row for row, other in enumerate(expected) if other == number]
    with pytest.raises(ValueError, match="0 partitions"):
        kernel.key_partitions(keys, 0)


@given(
    keys=st.lists(st.integers(-(1 << 31), 1 << 31) | st.sampled_from([1, True, None, "1"])),
    count=st.integers(1, 9),
)
def test_whole_numbers_choose_a_partition(kernel: ModuleType, keys: list[Any], count: int) -> None:
    """As the old producer's partitioner does; other keys, and numbers whose hash is another one,
    are left to it."""
    found = kernel.int_partitions(keys, count)
    if all(type(key) is int and abs(key) < 1 << 31 for key in keys):
        assert found == [abs(key) % count for key in keys]
    else:
        assert found is None
    with pytest.raises(ValueError, match="0 partitions"):
        kernel.int_partitions(keys, 0)


@given(column=st.lists(st.integers(), min_size=1, max_size=20), data=st.data())
def test_rows_are_picked(kernel: ModuleType, column: list[int], data: st.DataObject) -> None:
    """The elements of these rows, of any sequence; a row that is not there is refused."""
    rows = data.draw(st.lists(st.integers(0, len(column) - 1)))
    for some in (column, tuple(column), range(len(column))):
        assert kernel.pick(some, rows) == [some[row] for row in rows]
        for wrong in (-1, len(some)):
            with pytest.raises(IndexError):
                kernel.pick(some, [*rows, wrong])


@given(column=st.lists(st.sampled_from([None, b"", b"ab", "text", True, 1]), max_size=12))
def test_facts_of_a_column(kernel: ModuleType, column: list[Any]) -> None:
    """Types are the elements' own (a bool is no int); equal elements are one; lengths are added."""
    kinds = set(map(type, column))
    for types in ({bytes}, {bytes, type(None)}, {int}, {int, bool, str, bytes, type(None)}):
        assert kernel.are_of(frozenset(types), column) == (kinds <= types)
    assert kernel.distinct(column) == set(column)
    if kinds <= {bytes, str}:
        assert kernel.total_length(column) == sum(map(len, column))
    else:
        with pytest.raises(TypeError):
            kernel.total_length(column)


@given(data=st.binary(max_size=70))
def test_murmur2_is_the_one_of_java(kernel: ModuleType, data: bytes) -> None:
    """For any buffer; text is refused."""
    for buffer in (data, bytearray(data), memoryview(data)):
        assert kernel.murmur2(buffer) == hashing.murmur2(data)
    with pytest.raises(TypeError):
        kernel.murmur2("text")
