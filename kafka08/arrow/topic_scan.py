"""Reads topics into anything that takes Arrow data: pyarrow, Polars, pandas, DuckDB.

A scan is a batch: its ranges are fixed when it is made, so reading it twice gives the same
messages. Offsets are committed only when the caller asks, after a complete read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa

from kafka08.arrow.batches import MILLISECONDS, BatchBuilder
from kafka08.arrow.bounds import Bound, Committed, Extreme, Offsets, Times
from kafka08.arrow.committed import commit_offsets
from kafka08.arrow.connections import new_cluster, new_fetch_pool, resolved
from kafka08.arrow.options import ReadOptions, Topics
from kafka08.arrow.range_reader import RangeReader
from kafka08.arrow.ranges import OffsetRange, furthest_ends
from kafka08.arrow.resolve import NothingCommitted, Resolver
from kafka08.arrow.settings import ClusterAddress, ReadSettings, secrets_of
from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.requests import StorageName
from kafka08.client.security import SecureClientConfig
from kafka08.errors import ClientError, ConfigError
from kafka08.lifecycle import Closeable
from kafka08.protocol.header_columns import HEADERS
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, Broker, TopicPartition

COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": MILLISECONDS,
    "timestampType": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS,
}
"""Name → type of every column. `timestamp` is null where a message has none; `timestampType` is 0
for the producer's time, 1 for the broker's, -1 for messages of 0.8 and 0.9, which carry none.
`headers` is a list of (key, value), null where a message has none, as before 0.11."""

DEFAULT_COLUMNS: Final = ("topic", "partition", "offset", "key", "value")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXTREMES: Final = {"earliest": Extreme.EARLIEST, "latest": Extreme.LATEST}


class NotRead(ClientError):
    """Raised by `commit` of a scan that was not read to its end."""


def scan(
    bootstrap: str = "",
    topics: str | Sequence[str] = (),
    *,
    zookeeper: str = "",
    ranges: Iterable[OffsetRange | tuple[str, int, int, int]] | None = None,
    group: str = "",
    storage: StorageName = "zookeeper",
    start: str | datetime | Mapping[TopicPartition, int] | None = None,
    end: str | datetime | Mapping[TopicPartition, int] = "latest",
    if_uncommitted: str = "earliest",
    columns: Sequence[str] = DEFAULT_COLUMNS,
    settings: ReadSettings = ReadSettings(client_id="kafka08-arrow"),
    security: Mapping[str, str] = {},
) -> Scan:
    """A scan of `topics`, or of exact `ranges`. Asks the brokers for its offsets at once.

    bootstrap        host:port,host:port of some brokers; or `zookeeper`, the connect string of the
                     ZooKeeper where they are registered
    ranges           (topic, partition, from_offset, until_offset), in place of `topics`
    group            group for `commit`; without `start` the scan begins at its committed offsets
    storage          the store of those offsets: "zookeeper" or "kafka"
    start, end       "earliest", "latest", "committed" (start only), or an offset for each partition
                     (EARLIEST_OFFSET and LATEST_OFFSET for the ends of its log). By default from
                     the committed offsets, or without a group from the earliest, to the latest.
                     A datetime with a time zone is, in each partition, the first message whose
                     timestamp is that or later, else the log's end: of brokers from 0.10.1 on
    if_uncommitted   start of a partition without a committed offset: "earliest", "latest", "error"
    columns          of COLUMNS, in the order wanted; the others are not decoded
    settings         fetch sizes, timeouts, retries; `fail_on_data_loss=False` skips lost offsets
    security         Kafka's keys for TLS and SASL (docs/clients.md), with `bootstrap`

    Raises ConfigError, NoBrokersAvailable, UnknownTopicOrPartition, or DataLost if offsets that
    were asked for no longer exist.
    """
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or not columns:
        raise ConfigError(
            f"columns: {', '.join(unknown) or 'none'} given; valid are {', '.join(COLUMNS)}"
        )
    if storage not in {"zookeeper", "kafka"}:
        raise ConfigError(f"storage: {storage!r} is not zookeeper or kafka")
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    if (ranges is None) == (not any(names)):
        raise ConfigError("give either topics or ranges")
    if ranges is not None and start is not None:
        raise ConfigError("start cannot be given with ranges: each range has its own")
    exact = None if ranges is None else tuple(_checked_range(r) for r in ranges)
    options = ReadOptions(
        address=_address(bootstrap, zookeeper, security),
        settings=settings,
        ranges=exact,
        subscription=None if exact is not None else Topics(tuple(sorted(set(names)))),
        start=_start(start, group, if_uncommitted),
        end=_end(end),
        group=group,
        storage=storage,
    )
    schema = pa.schema([(name, COLUMNS[name]) for name in columns])
    address = resolved(options.address, settings, options.topic_filter())
    return Scan(replace(options, address=address), schema)


class Scan(Closeable):
    """Messages of fixed ranges, as a stream of Arrow record batches. Made by `scan`.

    ranges   what is read, by topic and partition; without empty ranges
    schema   Arrow schema of the batches

    Give it to whatever reads the Arrow PyCapsule interface (`polars.DataFrame(scan)`,
    `pyarrow.table(scan)`), or iterate over it for batches of at most 64 Ki rows. Each stream reads
    from the brokers again. Errors of a read: DataLost, InvalidMessage, MessageTooLarge, and the
    last error of a broker if there was no progress in time. Not for several threads at once.
    """

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._cluster = new_cluster(options.address, options.settings)
        self._pool = new_fetch_pool(options.address, options.settings)
        self._lost: set[Broker] = set()
        self._was_read = False
        self.schema = schema
        try:
            self._resolver = Resolver(options, self._cluster, names=("start", "end"))
            with self._resolver.deadline():
                self._all = tuple(self._resolver.batch())
        except NothingCommitted as error:
            self.close()
            raise NothingCommitted(error.facts, "Give if_uncommitted='earliest'") from None
        except BaseException:
            self.close()
            raise
        self.ranges = tuple(sorted(r for r in self._all if r.size))

    def __len__(self) -> int:
        """Number of offsets; an upper bound of the rows, since compaction removes messages."""
        return sum(r.size for r in self.ranges)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Scan of {len(self)} offsets in {len(self.ranges)} partitions>"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches, partition by partition, in the order of their offsets."""
        for wanted in self.ranges:
            leader = self._resolver.leader(wanted.topic_partition)
            settings = self._options.settings
            reader = RangeReader(
                wanted, settings, self._cluster, self._pool, leader, lost=self._lost
            )
            yield from BatchBuilder(self.schema, wanted).batches(reader)
        self._was_read = True

    def reader(self) -> pa.RecordBatchReader:
        """The batches as a pyarrow.RecordBatchReader."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def commit(self) -> None:
        """Commit the end of every range for the group, in the store given as `storage`.

        ConfigError without a group; NotRead unless a stream of this scan was read to its end: the
        messages would be skipped. Raises the first partition's error; the others are stored.
        """
        if not self._options.group:
            raise ConfigError("commit needs a group: scan(…, group=NAME)")
        if not self._was_read:
            raise NotRead(f"{self!r} was not read to its end: read it, then commit")
        if ends := furthest_ends(self._all):
            commit_offsets(self._cluster, self._options.group, ends, self._options.storage)

    def close(self) -> None:
        """Close the connections. A stream that is not read to its end fails at its next fetch."""
        self._cluster.close()
        self._pool.close()


def _address(bootstrap: str, zookeeper: str, security: Mapping[str, str]) -> ClusterAddress:
    if bool(bootstrap) == bool(zookeeper):
        raise ConfigError("give either bootstrap (host:port,host:port) or zookeeper")
    keys = SecureClientConfig(security)
    keys.log_notes()
    secrets = secrets_of(keys, zookeeper)
    if zookeeper:
        return ClusterAddress((), zookeeper)
    return ClusterAddress(tuple(parse_bootstrap(bootstrap, "bootstrap")), secrets=secrets)


def _checked_range(wanted: OffsetRange | tuple[str, int, int, int]) -> OffsetRange:
    found = OffsetRange(*wanted)
    if found.partition < 0 or not 0 <= found.from_offset <= found.until_offset:
        raise ConfigError(f"ranges: {tuple(wanted)!r} is not (topic, partition, from, until)")
    return found


def _start(
    start: str | datetime | Mapping[TopicPartition, int] | None, group: str, if_uncommitted: str
) -> Bound:
    if start is None:
        start = "committed" if group else "earliest"
    if if_uncommitted not in {*_EXTREMES, "error"}:
        raise ConfigError(f"if_uncommitted: {if_uncommitted!r} is not earliest, latest or error")
    if isinstance(start, datetime):
        return _time(start, "start")
    if not isinstance(start, str):
        return Offsets(_offsets(start, "start"))
    if start == "committed":
        if not group:
            raise ConfigError("start=committed needs a group: scan(…, group=NAME)")
        return Committed(_EXTREMES.get(if_uncommitted))
    if start not in _EXTREMES:
        raise ConfigError(f"start: {start!r} is not earliest, latest, committed or a mapping")
    return _EXTREMES[start]


def _end(end: str | datetime | Mapping[TopicPartition, int]) -> Bound:
    if isinstance(end, datetime):
        return _time(end, "end")
    if not isinstance(end, str):
        return Offsets(_offsets(end, "end"))
    if end != "latest":
        raise ConfigError(f"end: {end!r} is not latest or a mapping")
    return Extreme.LATEST


def _time(given: datetime, name: str) -> Times:
    """Rounds up to the milliseconds of messages, so that no earlier message is included."""
    if given.tzinfo is None:
        raise ConfigError(f"{name}: {given!r} has no time zone; give it one: tzinfo=timezone.utc")
    time_ms = -((_EPOCH - given) // timedelta(milliseconds=1))
    if time_ms < 0:
        raise ConfigError(f"{name}: {given} is before 1970")
    return Times(None, time_ms, latest_if_later=True)


def _offsets(given: Mapping[TopicPartition, int], name: str) -> dict[TopicPartition, int]:
    """The mapping with TopicPartitions as keys; ConfigError for offsets that cannot be."""
    offsets = {TopicPartition(*tp): offset for tp, offset in given.items()}
    for tp, offset in offsets.items():
        if offset < 0 and offset not in {EARLIEST_OFFSET, LATEST_OFFSET}:
            raise ConfigError(f"{name}: {tp} has {offset}, which is not an offset")
    return offsets
