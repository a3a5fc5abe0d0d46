"""What the fetch threads want to know of a configuration, by the names of ConsumerConfig, which is
one. The KafkaConsumer, whose keys have other names, makes a `FetchSettings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

SMALLEST: Final = "smallest"
LARGEST: Final = "largest"
NO_RESET: Final = "none"


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
    def num_consumer_fetchers(self) -> int: ...

    @property
    def refresh_leader_backoff_ms(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """Times are milliseconds, sizes are bytes.

    auto_offset_reset        SMALLEST or LARGEST: where to go on from an offset that the log does
                             not have; NO_RESET: the reader is to be told
    fetch_message_max_bytes  of one partition in an answer
    fetch_max_bytes          of all partitions of an answer together, for brokers from 0.10.1 on;
                             None: to ask by version 0 alone
    """

    auto_offset_reset: str
    fetch_message_max_bytes: int
    fetch_min_bytes: int
    fetch_wait_max_ms: int
    fetch_max_bytes: int | None
    num_consumer_fetchers: int = 1
    refresh_leader_backoff_ms: int
