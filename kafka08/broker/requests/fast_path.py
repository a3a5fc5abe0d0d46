"""FastPath: handles the requests that make up nearly all traffic, without message objects.

    Produce        any number of partitions (fast_produce)
    Fetch          any number of partitions (fetch_call)
    Metadata 0-2   a request that had a response before, in the same metadata epoch
    groups         JoinGroup 1, SyncGroup and Heartbeat of their members (fast_groups)

All other requests go to the handlers: a fast path returns Fallback, and then the request is
decoded in full. A fast path has no rules of its own; it does exactly what the handler of that API
would do, and that of Fetch is its handler. Other versions than these have other layouts, and are
never tried.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from kafka08 import kernel
from kafka08.broker.requests.fallback import FALL_BACK, Fallback
from kafka08.broker.requests.fast_groups import FastGroups
from kafka08.broker.requests.fast_produce import FastProduce
from kafka08.broker.requests.fetch_call import FetchCall
from kafka08.levels import Level
from kafka08.protocol.codec import REQUEST_HEADER, VERSION_LOW_BYTE, frame_of

if TYPE_CHECKING:
    from kafka08.broker.requests.context import BrokerContext
    from kafka08.network.server_connection import RequestConnection, ResponseFrame
    from kafka08.protocol.served import Served

API_NUMBER: Final = Struct(">I")
PRODUCE: Final = 0
PRODUCE_VERSIONS: Final = (0, 1, 2, 3)
FETCH: Final = 1
FETCH_VERSIONS: Final = (0, 1, 2, 3, 4, 5)
METADATA: Final = 3
METADATA_VERSIONS: Final = (0, 1, 2)
JOIN_GROUP_1: Final = (11, 1)
HEARTBEAT_0: Final = (12, 0)
SYNC_GROUP_0: Final = (14, 0)
VERSION: Final = slice(2, 4)
"""Position of the version in a request."""

Method = Callable[[memoryview, "RequestConnection"], "ResponseFrame | Fallback | None"]


def api_number(key: int, version: int) -> int:
    """Key and version as the number that API_NUMBER reads at the start of a payload."""
    return key << 16 | version


def by_number(methods: dict[tuple[int, int], Method], served: Served) -> dict[int, Method]:
    """Those that the level serves."""
    return {api_number(*row): method for row, method in methods.items() if row in served.rows}


class FastPath:
    """The methods by the first four bytes of a request (key, version) as a number.

    methods         of the most frequent requests, which they count themselves: a count by key in
                    one place takes three times as long
    group_methods   of those of groups; empty at level 0.8.2, where two of the numbers are stubs
    """

    def __init__(self, broker: BrokerContext, served: Served) -> None:
        self._broker = broker
        self._metadata_cache = broker.metadata_cache
        self._request_prefix = broker.request_prefix
        self._level = served.level
        self._partitions = broker.replica_manager.by_topic_name
        self._produce = FastProduce(broker)
        self._fetch_count = 0
        self._metadata_count = 0
        methods: dict[tuple[int, int], Method] = {
            **dict.fromkeys(((PRODUCE, v) for v in PRODUCE_VERSIONS), self._produce),
            **dict.fromkeys(((FETCH, v) for v in FETCH_VERSIONS), self.fetch),
            **dict.fromkeys(((METADATA, v) for v in METADATA_VERSIONS), self.metadata),
        }
        groups = FastGroups(broker)
        group_methods: dict[tuple[int, int], Method] = {}
        if served.level >= Level.V0_9_0:
            group_methods = {
                JOIN_GROUP_1: groups.join,
                SYNC_GROUP_0: groups.sync,
                HEARTBEAT_0: groups.heartbeat,
            }
        self.methods: Final = by_number(methods, served)
        self.group_methods: Final = by_number(group_methods, served)

    def counts(self) -> dict[int, int]:
        """API key → requests that came to `methods`."""
        return {
            PRODUCE: self._produce.count,
            FETCH: self._fetch_count,
            METADATA: self._metadata_count,
        }

    def fetch(
        self, payload: memoryview, link: RequestConnection
    ) -> ResponseFrame | Fallback | None:
        """The response, None if it is sent later, or Fallback if the codec must decode it."""
        self._fetch_count += 1
        fields = kernel.read_fetch(payload, self._partitions)
        if fields is None:
            return FALL_BACK
        version = payload[VERSION_LOW_BYTE]
        return FetchCall(self._broker, self._level, link, payload, version, *fields).answer()

    def metadata(self, payload: memoryview, _link: RequestConnection) -> ResponseFrame | Fallback:
        """The cached response to an equal request, if the metadata have not changed since."""
        self._metadata_count += 1
        try:
            _, _, correlation_id, client = REQUEST_HEADER.unpack_from(payload)
        except struct_error:
            return FALL_BACK
        body = bytes(payload[REQUEST_HEADER.size + max(client, 0) :])
        request = self._request_prefix + bytes(payload[VERSION]) + body
        response = self._metadata_cache.cached_response(request)
        if response is None:
            return FALL_BACK
        return frame_of(response, correlation_id)
