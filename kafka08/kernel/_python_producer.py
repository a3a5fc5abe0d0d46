"""The producers' work for each message: its tuple, its partition, its place in a batch or queue,
its callback: the Python twin of `_producer.pxi`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from kafka08.format.v2 import V2
from kafka08.hashing import masked_partition_of, murmur2
from kafka08.kernel._python_builder import SetBuilder, build_records
from kafka08.kernel._python_sets import build_set, check_timestamps
from kafka08.kernel.types import NO_TIMESTAMP

MAX_TIMESTAMP_MS: Final = (1 << 63) - 1
INT32_MAX: Final = (1 << 31) - 1
PLAIN: Final = frozenset({bytes, bytearray, type(None)})
"""Types of keys and values that are stored as they are."""
RECORD_FIELDS: Final = 6


def new_producer_record(
    cls: type[Any],
    topic: str,
    value: Any = None,
    key: Any = None,
    partition: int | None = None,
    timestamp: int | None = None,
    headers: Any = None,
) -> Any:
    """`ProducerRecord.__new__`: a named tuple of these fields. What `typing` generates takes twice
    as long, which is a fifth of the CPU of a send. ValueError for a timestamp that is negative or
    has more than 63 bits, TypeError for one that is not an int."""
    if timestamp is not None:
        if not isinstance(timestamp, int):
            raise TypeError(
                "a timestamp must be an int, milliseconds since 1970, not "
                f"{type(timestamp).__name__}"
            )
        if not 0 <= timestamp <= MAX_TIMESTAMP_MS:
            raise ValueError(
                f"timestamp {timestamp} is not from 0 to {MAX_TIMESTAMP_MS}, in milliseconds since "
                "1970"
            )
    return tuple.__new__(cls, (topic, value, key, partition, timestamp, headers))


def new_keyed_message(
    cls: type[Any], topic: str, message: Any, key: Any = None, partition_key: Any = None
) -> Any:
    """The same for `KeyedMessage`."""
    return tuple.__new__(cls, (topic, message, key, partition_key))


def set_constructor(cls: type[Any], function: Callable[..., Any]) -> None:
    """Make `function` the `__new__` of `cls`, a class of tuples. The native kernel also lets a call
    of the class itself (not of its subclasses) reach its own functions without `type.__call__`,
    which takes twice as long as all that they do."""
    if not issubclass(cls, tuple):
        raise TypeError(f"{cls} is no tuple")
    cls.__new__ = staticmethod(function)  # type: ignore[method-assign]


class OpenSet:
    """A partition's set that grows; `builder` is None while there is none."""

    __slots__ = ("builder",)

    def __init__(self) -> None:
        self.builder: SetBuilder | None = None


class RecordRoute:
    """Where the records of a topic go.

    queues       an OpenSet for each partition, at least one; ValueError without
    turns        an endless iterator over those for records without key and partition
    is_numbered  whether `queues[n]` is that of partition n; else a record with a partition is not
                 appended here
    """

    __slots__ = ("is_numbered", "queues", "turns")

    def __init__(
        self, queues: Sequence[OpenSet], turns: Iterator[OpenSet], is_numbered: bool
    ) -> None:
        self.queues = tuple(queues)
        self.turns = turns
        self.is_numbered = is_numbered
        if not self.queues:
            raise ValueError("a topic without partitions has no route")


class RecordAppender:
    """Appends records to open sets. Thread-safe. The base of KafkaProducer: an inherited method of
    C is called directly, and a method that passed the call on would cost a tenth of it. Its names
    here are mangled, so that a subclass may have the same ones, as with the native kernel.

    routes        topic → RecordRoute; read at each record
    otherwise     `otherwise(record, callback)` is called, and its result returned, for a topic
                  without a route, a key or value that is not bytes, bytearray or None, headers, a
                  partition that no queue has, and anything that is not a tuple of six fields
    without_room  `without_room(queue, key, value, callback, timestamp_ms)` likewise, if the set of
                  the record's queue is full, finished or absent
    """

    def __init__(
        self,
        routes: dict[str, Any],
        otherwise: Callable[..., Any],
        without_room: Callable[..., Any],
    ) -> None:
        self.__routes = routes
        self.__otherwise = otherwise
        self.__without_room = without_room

    def send(self, record: Any, callback: Any = None) -> Any:
        """Append `record`: (topic, value, key, partition, timestamp in ms or None, headers or
        None). Returns what `SetBuilder.append` does, whose errors it raises."""
        if not isinstance(record, tuple) or len(record) != RECORD_FIELDS:
            return self.__otherwise(record, callback)
        topic, value, key, partition, timestamp, headers = record
        if headers is not None or not {type(value), type(key)} <= PLAIN:
            return self.__otherwise(record, callback)
        queue = self.__queue_of(topic, key, partition)
        if queue is None:
            return self.__otherwise(record, callback)
        if timestamp is None:
            timestamp = NO_TIMESTAMP
        builder = queue.builder
        if builder is not None:
            ref = builder.append(key, value, callback, timestamp)
            if ref is not None:
                return ref
        return self.__without_room(queue, key, value, callback, timestamp)

    def __queue_of(self, topic: str, key: Any, partition: Any) -> OpenSet | None:
        route = self.__routes.get(topic)
        if route is None:
            return None
        if partition is not None:
            if route.is_numbered and type(partition) is int and 0 <= partition < len(route.queues):
                return route.queues[partition]  # type: ignore[no-any-return]
            return None
        if key is None:
            return next(route.turns)  # type: ignore[no-any-return]
        if type(key) is not bytes:
            return None
        number = masked_partition_of(murmur2(key), len(route.queues))
        return route.queues[number]  # type: ignore[no-any-return]


class ColumnBuffer:
    """Named tuples of one class as a list for each of their fields. `len` is their number.

    Thread-safe: threads may `put` without a lock, up to `room` tuples; what else they bring goes to
    `otherwise(message)`, which takes a lock and calls `admit`.

    record_type  their class; TypeError unless it is a named tuple
    room         how many more may be put; 0 makes all threads call `otherwise`
    """

    def __init__(self, record_type: type[Any], otherwise: Callable[[Any], Any]) -> None:
        if not issubclass(record_type, tuple):
            raise TypeError(f"{record_type} is no tuple")
        self.room = 0
        self._record_type = record_type
        self._otherwise = otherwise
        self._width = len(record_type._fields)  # type: ignore[attr-defined]
        self._columns: list[list[Any]] = [[] for _ in range(self._width)]
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._columns[0])

    def put(self, message: Any) -> Any:
        """Add `message`, and return None; the result of `otherwise` if it has another class or
        there is no room."""
        if self._fits(message):
            with self._lock:
                if self.room > 0:
                    self.room -= 1
                    self._add(message)
                    return None
        return self._otherwise(message)

    def admit(self, message: Any, limit: int) -> int:
        """Add `message`, with or without room, and then make room for `limit` tuples in all;
        returns how many there are now. TypeError for another class."""
        if not self._fits(message):
            raise TypeError(f"{message!r} is no {self._record_type.__name__}")
        with self._lock:
            self._add(message)
            self.room = max(0, limit - len(self))
            return len(self)

    def take(self) -> list[list[Any]]:
        """The columns, in the order of the class's fields. The buffer is empty then, without
        room."""
        with self._lock:
            columns, self._columns = self._columns, [[] for _ in range(self._width)]
            self.room = 0
            return columns

    def _fits(self, message: Any) -> bool:
        return isinstance(message, self._record_type) and len(message) == self._width

    def _add(self, message: Any) -> None:
        for column, field in zip(self._columns, message, strict=True):
            column.append(field)


def run_callbacks(
    callbacks: list[Any],
    cls: type[Any],
    topic: str,
    partition: int,
    base_offset: int,
    timestamps: Sequence[int] | int,
    error: Exception | None,
    on_error: Callable[[], object],
) -> None:
    """Call each of `callbacks` that is not None, in order: `callback(metadata, None)`, or
    `callback(None, error)` if there is an error. `metadata` is a `cls`, a tuple of (topic,
    partition, offset, timestamp); callback n is of the record at `base_offset + n` (negative: that
    is the offset of all), with timestamp n (an int: that of all). `on_error` is called in the
    handler of what a callback raises."""
    metadata = None
    for index, callback in enumerate(callbacks):
        if callback is None:
            continue
        if error is None:
            offset = base_offset if base_offset < 0 else base_offset + index
            timestamp = timestamps if isinstance(timestamps, int) else timestamps[index]
            metadata = tuple.__new__(cls, (topic, partition, offset, timestamp))
        try:
            callback(metadata, error)
        except BaseException:  # noqa: BLE001  # the user's code; `on_error` logs it
            on_error()


def are_of(types: frozenset[type], column: Sequence[object]) -> bool:
    """Whether each element's own type (no base of it) is one of `types`."""
    return types.issuperset(map(type, column))


def distinct(column: Sequence[Any]) -> set[Any]:
    """The different elements. Costs next to nothing where the same object follows itself."""
    return set(column)


def total_length(column: Sequence[Any]) -> int:
    """The sum of the lengths of all elements. TypeError for one without a length."""
    return sum(map(len, column))


def key_partitions(keys: Sequence[bytes | None], count: int) -> list[int]:
    """The partition, out of `count`, of each serialized key in every new producer; `count` itself
    for no key. ValueError unless `count` is at least 1."""
    if count < 1:
        raise ValueError(f"{count} partitions")
    return [count if key is None else masked_partition_of(murmur2(key), count) for key in keys]


def int_partitions(keys: Sequence[Any], count: int) -> list[int] | None:
    """abs(key) % `count` for each key; None if one is not an int that fits into 32 bits with both
    signs. ValueError unless `count` is at least 1."""
    if count < 1:
        raise ValueError(f"{count} partitions")
    if all(type(key) is int and -INT32_MAX <= key <= INT32_MAX for key in keys):
        return [abs(key) % count for key in keys]
    return None


def pick(column: Sequence[Any], rows: Iterable[int]) -> list[Any]:
    """The elements with these indexes. IndexError for one that is not there, or negative."""
    found = []
    for row in rows:
        if row < 0:
            raise IndexError(f"row {row}")
        found.append(column[row])
    return found


def group_rows(numbers: Sequence[int]) -> dict[int, list[int]]:
    """number → its ascending indexes in `numbers`; the numbers as they first appear."""
    groups: dict[int, list[int]] = {}
    for row, number in enumerate(numbers):
        groups.setdefault(number, []).append(row)
    return groups


def end_of_batch(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    start: int,
    batch_bytes: int,
    empty_bytes: int,
) -> tuple[int, int]:
    """(end, bytes) of the longest set of records [start, end) with at most `batch_bytes`, but at
    least one record if there is one. An entry has `empty_bytes` beside its key and value.
    ValueError for a `start` outside the values, or another number of keys."""
    check_rows(keys, values, start, len(values))
    end, size = start, 0
    while end < len(values):
        more = empty_bytes + _length(values[end])
        if keys is not None:
            more += _length(keys[end])
        if end > start and size + more > batch_bytes:
            break
        size += more
        end += 1
    return end, size


def build_from_lists(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    start: int,
    end: int,
    magic: int = 0,
    timestamps: Sequence[int] | int | None = None,
) -> bytearray:
    """`build_set` of rows [start, end) of two lists, numbered from 0; no message has a key if
    `keys` is None. `timestamps` has one for each of these rows, or is that of all. Of magic 2 one
    batch, which needs a row (ValueError)."""
    check_rows(keys, values, start, end)
    some_keys = [None] * (end - start) if keys is None else keys[start:end]
    if magic == V2.magic:
        one = NO_TIMESTAMP if timestamps is None else timestamps
        times = [one] * (end - start) if isinstance(one, int) else list(one)
        check_timestamps(magic, True, len(times), end - start)
        return build_records(list(zip(some_keys, values[start:end], strict=True)), times)
    return build_set(
        zip(some_keys, values[start:end], strict=True), magic=magic, timestamps=timestamps
    )


def check_rows(keys: Sequence[Any] | None, values: Sequence[Any], start: int, end: int) -> None:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"rows {start} to {end} of {len(values)}")
    if keys is not None and len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys for {len(values)} values")


def _length(field: bytes | None) -> int:
    return 0 if field is None else memoryview(field).nbytes
