"""The configuration of fetch threads, under the names of ConsumerConfig, which satisfies
`FetchOptions`. The KafkaConsumer's keys have other names, so it creates a `FetchSettings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from kafka08.protocol.fetch import READ_UNCOMMITTED

SMALLEST: Final = "smallest"
LARGEST: Final = "largest"
NO_RESET: Final = "none"


@dataclass(frozen=True, slots=True)
class Nearest:
    """Fetch from the replica that the leader calls the nearest, if its brokers choose one.

    rack       where the client is, as the brokers' replica.selector.class compares it
    again_ms   the leader is asked again after this time
    """

    rack: str
    again_ms: int


class FetchOptions(Protocol):
    """See FetchSettings."""

    @property
    def auto_offset_reset(self) -> str: ...

    @property
    def fetch_message_max_bytes(self) -> int: ...

    @property
    def fetch_min_bytes(self) -> int: ...

    @property
    def fetch_wait_max_ms(self) -> int: ...

    @property
    def fetch_max_bytes(self) -> int | None: ...

    @property
    def isolation(self) -> int: ...

    @property
    def nearest(self) -> Nearest | None: ...

    @property
    def num_consumer_fetchers(self) -> int: ...

    @property
    def refresh_leader_backoff_ms(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """Times are milliseconds, sizes are bytes.

    auto_offset_reset        SMALLEST or LARGEST: where to continue if the log does not have the
                             position; NO_RESET: raise OffsetOutOfRange to the reader
    fetch_message_max_bytes  the limit of one partition in a response
    fetch_max_bytes          the limit of a whole response, for brokers from 0.10.1 on; None: use
                             a Fetch version below 3, which has no such limit
    isolation                READ_COMMITTED: without messages of transactions that were aborted, up
                             to the first that is open
    nearest                  None: fetch from leaders alone
    """

    auto_offset_reset: str
    fetch_message_max_bytes: int
    fetch_min_bytes: int
    fetch_wait_max_ms: int
    fetch_max_bytes: int | None
    isolation: int = READ_UNCOMMITTED
    nearest: Nearest | None = None
    num_consumer_fetchers: int = 1
    refresh_leader_backoff_ms: int
