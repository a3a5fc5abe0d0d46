"""Dispatcher: which handler gets which request, and how outcomes and errors become answers.

The table takes (key, version), so that later versions can be added. Produce and Fetch of a single
partition and repeated Metadata requests have a short way in front of it (short_ways). Source:
kafka.server.KafkaApis.handle 0.8.2.2.
"""

from __future__ import annotations

import logging
from struct import Struct
from types import ModuleType
from typing import Final

from kafka08.broker.call import ApiHandler, Call, Later, Refuse
from kafka08.broker.context import BrokerContext
from kafka08.broker.halt import halt_on
from kafka08.broker.handlers import (
    consumer_metadata,
    controlled_shutdown,
    fetch,
    heartbeat,
    join_group,
    leader_and_isr,
    metadata,
    offset_commit,
    offset_fetch,
    offsets,
    produce,
    stop_replica,
    update_metadata,
)
from kafka08.broker.short_ways import ShortWays
from kafka08.errors import ProtocolError, StorageError
from kafka08.network.exchange import Answer, Exchange
from kafka08.protocol.codec import REQUESTS, decode_request, encode_response
from kafka08.protocol.types import Response

log = logging.getLogger(__name__)

MODULES: Final[dict[int, ModuleType]] = {
    0: produce,
    1: fetch,
    2: offsets,
    3: metadata,
    4: leader_and_isr,
    5: stop_replica,
    6: update_metadata,
    7: controlled_shutdown,
    8: offset_commit,
    9: offset_fetch,
    10: consumer_metadata,
    11: join_group,
    12: heartbeat,
}

HANDLERS: Final[dict[tuple[int, int], tuple[ApiHandler, Refuse]]] = {
    (key, version): (MODULES[key].handle, MODULES[key].refuse) for key, version in REQUESTS
}
"""(key, version) → handler and refusal: exactly the APIs of 0.8.2.2."""


LARGE_KEYS: Final = frozenset({0, 4, 5, 6})
"""Produce has messages; LeaderAndIsr, StopReplica and UpdateMetadata a broker's partitions."""
REQUEST_BYTES_MAX: Final = 4 << 20
"""Most bytes of any other request: 80,000 topics in a Metadata request, or 1,000 offsets with 4 KB
of metadata each. What is larger can only be a mistake, and would hold the hub for seconds."""
KEY: Final = Struct(">h")


class Dispatcher:
    """The request handler of a SocketServer. Called in the hub; never switches."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        short = ShortWays(broker)
        self._short_ways = {0: short.produce, 1: short.fetch, 3: short.metadata}

    def __call__(self, payload: memoryview, link: Exchange) -> Answer | None:
        """The answer, or None if the call is parked. ProtocolError for what closes the connection:
        an unknown key, bytes that are not the layout, or too many of them."""
        if len(payload) > REQUEST_BYTES_MAX:
            (key,) = KEY.unpack_from(payload)
            if key not in LARGE_KEYS:
                raise ProtocolError(
                    f"a request with key {key} of {len(payload)} bytes is larger than the maximum "
                    f"of {REQUEST_BYTES_MAX}"
                )
        if len(payload) > 1 and not payload[0]:  # a key below 256
            short_way = self._short_ways.get(payload[1])
            if short_way is not None:
                try:
                    answer = short_way(payload)
                except StorageError as error:
                    halt_on(error, self._broker.runtime)
                    raise
                if answer is not None:
                    return answer
        header, request = decode_request(payload)
        handle, refuse = HANDLERS[type(request).KEY, type(request).VERSION]
        call = Call(self._broker, link, header, request, refuse)
        try:
            outcome = handle(self._broker, request, call)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - the root of a request: becomes its answer
            outcome = call.refusal(error)
        if isinstance(outcome, Response):
            return encode_response(outcome, header.correlation_id)
        if isinstance(outcome, Later):
            return None if outcome is Later.PARKED else b""
        return outcome
