"""The interface of both kernels, for type checkers. tests/kernel/test_interface.py compares
`_native.pyx` and `_python.py` with it. The docstrings are in the Python twin."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from kafka08.kernel.types import (
    BatchesOfProducers,
    Buffer,
    Columns,
    Converted,
    Decoder,
    Decompress,
    HeaderColumns,
    KeyAndValue,
    RecoverResult,
    Retained,
    Rules,
    Run,
    ScanResult,
)

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

INTERFACE: Final[int]
NAME: Final[str]

# One level of a set

class SetSummary:
    count: int
    size: int
    first_offset: int
    last_offset: int
    codec: int
    largest_entry: int
    monotonic: bool
    magics: int
    max_timestamp_ms: int
    max_timestamp_offset: int

def crc32(data: Buffer, value: int = 0) -> int: ...
def crc32c(data: Buffer, value: int = 0) -> int: ...
def new_buffer(size: int) -> bytearray: ...
def validate(data: Buffer, max_entry_bytes: int, verify_crc: bool = True) -> SetSummary: ...
def validate_and_assign(
    data: Buffer, base_offset: int, max_entry_bytes: int, verify_crc: bool = True
) -> SetSummary: ...
def find_offset(data: Buffer, target_offset: int) -> tuple[int, int] | None: ...
def find_position(tail: SegmentTail, position: int, target_offset: int) -> int: ...
def scan_timestamp(data: Buffer, target_ms: int) -> ScanResult: ...
def recover(
    data: Buffer,
    index_interval: int,
    since_last_index: int,
    max_timestamp_ms: int = -1,
    max_timestamp_offset: int = -1,
) -> RecoverResult: ...
def runs(data: Buffer) -> list[Run]: ...

# Entries

class MessageAndOffset:
    offset: int
    magic: int
    attributes: int
    crc: int
    key: bytes | None
    value: bytes | None
    position: int
    size: int
    timestamp_ms: int
    @property
    def timestamp_type(self) -> int: ...
    @property
    def codec(self) -> int: ...
    @property
    def entry_size(self) -> int: ...

def entries(data: Buffer, verify_crc: bool = False) -> Iterator[MessageAndOffset]: ...
def build_set(
    messages: Iterable[KeyAndValue],
    base_offset: int = 0,
    attributes: int = 0,
    magic: int = 0,
    timestamps: Iterable[int] | int | None = None,
) -> bytearray: ...
def build_from_lists(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    start: int,
    end: int,
    magic: int = 0,
    timestamps: Sequence[int] | int | None = None,
) -> bytearray: ...
def wrap(
    value: Buffer,
    offset: int,
    codec: int,
    magic: int = 0,
    timestamp_ms: int = -1,
    log_append_time: bool = False,
) -> bytearray: ...

# A leader's rules

def validate_and_stamp(
    data: Buffer, base_offset: int, max_entry_bytes: int, rules: Rules, now_ms: int
) -> SetSummary: ...
def number_batch(
    data: Buffer,
    base_offset: int,
    max_entry_bytes: int,
    rules: Rules,
    now_ms: int,
    leader_epoch: int,
    unpack: Decompress | None = None,
) -> SetSummary | None: ...
def check_messages(
    data: Buffer,
    rules: Rules,
    now_ms: int,
    wrapper_magic: int = -1,
    check_unstamped: bool = False,
) -> SetSummary: ...
def set_wrapper(data: Buffer, offset: int, timestamp_ms: int, log_append_time: bool) -> None: ...

# Conversion

def convert(
    data: Buffer,
    output: Buffer,
    magic: int,
    shift: int = 0,
    timestamp_ms: int = -1,
    log_append_time: bool = False,
) -> Converted: ...

# Messages

class MessageAndMetadata(Generic[K, V]):
    topic: str
    partition: int
    offset: int
    key: K | None
    value: V | None
    timestamp: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...]
    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: K | None,
        value: V | None,
        timestamp: int = -1,
        timestamp_type: int = -1,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None: ...
    @property
    def message(self) -> V | None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class MessageIterator:
    position_offset: int
    @property
    def next_offset(self) -> int: ...
    def __iter__(self) -> MessageIterator: ...
    def __next__(self) -> MessageAndMetadata[Any, Any]: ...

class StreamIterator:
    messages: MessageIterator
    ended: MessageIterator | None
    damage: Exception | None
    limit: float
    @property
    def busy(self) -> bool: ...
    def __init__(
        self,
        messages: MessageIterator,
        clock: Callable[[], float],
        find_more: Callable[[float | None], float],
    ) -> None: ...
    def __iter__(self) -> StreamIterator: ...
    def __next__(self) -> MessageAndMetadata[Any, Any]: ...
    def claim(self) -> None: ...
    def take(self) -> MessageAndMetadata[Any, Any] | None: ...

class StreamLoop:
    owner: object
    def __init__(self, stream: StreamIterator, owner: object) -> None: ...
    def __iter__(self) -> StreamLoop: ...
    def __next__(self) -> MessageAndMetadata[Any, Any]: ...

def messages(
    data: Buffer,
    topic: str,
    partition: int,
    from_offset: int,
    decompress: Decompress,
    key_decoder: Decoder | None = None,
    value_decoder: Decoder | None = None,
    verify_crc: bool = True,
    until_offset: int | None = None,
) -> MessageIterator: ...
def find_timestamp(
    data: Buffer, target_ms: int, decompress: Decompress, from_offset: int = 0
) -> tuple[int, int] | None: ...

# Columns

def column_batches(
    data: Buffer,
    from_offset: int,
    until_offset: int | None,
    decompress: Decompress,
    keys: bool = True,
    values: bool = True,
    verify_crc: bool = True,
    max_rows: int = 65536,
    max_bytes: int = 8388608,
    timestamps: bool = False,
    timestamp_types: bool = False,
    in_place: bool = False,
    headers: bool = False,
) -> Iterator[Columns]: ...
def build_from_columns(
    key_offsets: Buffer | None,
    key_data: Buffer | None,
    key_validity: Buffer | None,
    value_offsets: Buffer | None,
    value_data: Buffer | None,
    value_validity: Buffer | None,
    rows: int,
    base_offset: int = 0,
    start: int = 0,
    magic: int = 0,
    timestamps: Buffer | int | None = None,
    header_offsets: Buffer | None = None,
    header_data: Buffer | None = None,
) -> bytearray: ...
def header_lists(offsets: Buffer, data: Buffer, rows: int) -> HeaderColumns: ...
def encode_headers(
    list_offsets: Buffer,
    list_validity: Buffer | None,
    name_offsets: Buffer,
    name_data: Buffer | None,
    name_validity: Buffer | None,
    value_offsets: Buffer | None,
    value_data: Buffer | None,
    value_validity: Buffer | None,
    items: int,
    rows: int,
    start: int = 0,
) -> tuple[bytearray, bytearray]: ...
def without_aborted(data: Buffer, aborted: list[tuple[int, int]]) -> Buffer: ...

# Compaction

class OffsetMap:
    slots: int
    capacity: int
    def __init__(self, slots: int, capacity: int) -> None: ...
    def __len__(self) -> int: ...
    def add(self, data: Buffer, from_offset: int = 0) -> int: ...
    def retain(self, data: Buffer, output: Buffer, keep_tombstones: bool) -> Retained: ...

# Building

class MessageRef:
    owner: Any
    index: int
    def __init__(self, owner: Any, index: int) -> None: ...

class SetBuilder:
    callbacks: list[Any]
    capacity: int
    count: int
    max_timestamp_ms: int
    timestamps: bytearray | None
    def __init__(
        self,
        capacity: int,
        owner: Any,
        ref_type: type[MessageRef],
        magic: int = 0,
        clock: Callable[[], int] | None = None,
    ) -> None: ...
    @property
    def size(self) -> int: ...
    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        callback: Any = None,
        timestamp_ms: int = -1,
        headers: bytes | None = None,
    ) -> Any: ...
    def finish(self) -> bytearray: ...

# Producers

def new_producer_record(
    cls: type[Any],
    topic: str,
    value: Any = None,
    key: Any = None,
    partition: int | None = None,
    timestamp: int | None = None,
    headers: Any = None,
) -> Any: ...
def new_keyed_message(
    cls: type[Any], topic: str, message: Any, key: Any = None, partition_key: Any = None
) -> Any: ...
def set_constructor(cls: type[Any], function: Callable[..., Any]) -> None: ...

class OpenSet:
    builder: SetBuilder | None

class RecordRoute:
    queues: tuple[Any, ...]
    turns: Iterator[Any]
    is_numbered: bool
    def __init__(
        self, queues: Sequence[OpenSet], turns: Iterator[OpenSet], is_numbered: bool
    ) -> None: ...

class RecordAppender:
    def __init__(
        self,
        routes: Mapping[str, Any],
        otherwise: Callable[..., Any],
        without_room: Callable[..., Any],
    ) -> None: ...
    def send(self, record: Any, callback: Any = None) -> Any: ...

class ColumnBuffer:
    room: int
    def __init__(self, record_type: type[Any], otherwise: Callable[[Any], Any]) -> None: ...
    def __len__(self) -> int: ...
    def put(self, message: Any) -> Any: ...
    def admit(self, message: Any, limit: int) -> int: ...
    def take(self) -> list[list[Any]]: ...

def run_callbacks(
    callbacks: list[Any],
    cls: type[Any],
    topic: str,
    partition: int,
    base_offset: int,
    timestamps: Sequence[int] | int,
    error: Exception | None,
    on_error: Callable[[], object],
) -> None: ...
def are_of(types: frozenset[type], column: Sequence[object]) -> bool: ...
def distinct(column: Sequence[T]) -> set[T]: ...
def total_length(column: Sequence[Any]) -> int: ...
def key_partitions(keys: Sequence[bytes | None], count: int) -> list[int]: ...
def int_partitions(keys: Sequence[Any], count: int) -> list[int] | None: ...
def pick(column: Sequence[T], rows: Iterable[int]) -> list[T]: ...
def group_rows(numbers: Sequence[int]) -> dict[int, list[int]]: ...
def end_of_batch(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    start: int,
    batch_bytes: int,
    empty_bytes: int,
) -> tuple[int, int]: ...
def murmur2(data: Buffer) -> int: ...

# Requests

class IndexTail:
    base_offset: int
    entries: int
    capacity: int
    allocated: int
    last_offset: int
    last_position: int
    last_ms: int
    view: memoryview | None

class SegmentTail:
    base_offset: int
    size: int
    end_offset: int
    tail_offset: int
    tail_position: int
    bytes_since_index: int
    created_ms: int
    first_ms: int
    max_timestamp_ms: int
    max_timestamp_offset: int
    max_entry_bytes: int
    segment_bytes: int
    index_interval_bytes: int
    age_max_ms: int
    takes_plain_sets: bool
    is_full: bool
    index_is_due: bool
    rules: Rules | None
    read: Callable[[int, int], bytes]
    write: Callable[[Buffer, int], object]
    descriptor: int
    min_in_sync: int
    index_tail: IndexTail | None
    time_tail: IndexTail | None
    noted_epoch: int
    records: BatchesOfProducers | None

def append_plain(
    payload: Buffer,
    tails: list[SegmentTail | None],
    starts: list[int],
    sizes: list[int],
    now_ms: int,
    leader_epochs: list[int] | None = None,
) -> list[int]: ...
def append_copies(
    tails: list[SegmentTail | None], sets: list[Buffer], now_ms: int
) -> list[bool]: ...
def copy_fetched(
    payload: memoryview,
    tails: list[SegmentTail],
    offsets: list[int],
    limits: list[int],
    positions: list[int],
    bytes_max: int,
    high_watermarks: list[int],
    log_starts: list[int] | None = None,
) -> bytes | None: ...
def pack_fields(form: bytes, fields: tuple[Any, ...], framed: bool = False) -> bytes: ...
def unpack_snappy(data: Buffer, max_bytes: int, first_only: bool = False) -> bytearray | None: ...
def unpack_fields(data: Buffer, form: bytes, position: int = 0) -> tuple[Any, ...] | None: ...
def read_produce(
    payload: memoryview, partitions: dict[bytes, dict[int, T]], count_max: int
) -> tuple[int, int, list[T], list[int], list[int]] | None: ...
def read_fetch(
    payload: memoryview, partitions: dict[bytes, dict[int, T]]
) -> tuple[int, int, int, int, int, list[T], list[int], list[int], list[int] | None] | None: ...
def read_fetched(
    payload: memoryview, version: int, partitions: dict[bytes, dict[int, T]]
) -> tuple[list[T], list[int], list[int], list[int], list[Buffer]] | None: ...
def write_produced(
    payload: memoryview, base_offsets: list[int], times_ms: list[int] | None = None
) -> bytes: ...
def write_fetched(
    payload: memoryview,
    high_watermarks: list[int],
    sizes: list[int],
    log_starts: list[int] | None = None,
    stable_offsets: list[int] | None = None,
) -> list[bytes]: ...
