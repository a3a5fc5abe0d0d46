"""FaultInjection: the rules of a cluster in one of its broker processes, before its handlers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from kafka08.broker.requests.dispatcher import handlers_at
from kafka08.embedded.match_log import Line, MatchLog
from kafka08.errors import ProtocolError
from kafka08.faults.names import partitions_in
from kafka08.faults.responses import with_addresses, with_throttle_ms
from kafka08.faults.rule import Rule
from kafka08.levels import Level
from kafka08.network.forwarding import ForwardingConnection
from kafka08.network.server_connection import (
    BYTES,
    GeneratedBytes,
    Piece,
    RequestConnection,
    RequestHandler,
    ResponseFrame,
)
from kafka08.protocol.api import ApiVersion
from kafka08.protocol.codec import RequestHeader, decode_request, encode_response
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.served import SERVED
from kafka08.protocol.types import Request
from kafka08.runtime import BrokerRuntime

logger = logging.getLogger(__name__)

KEY: Final = slice(0, 2)
"""The position of the API's key in a request."""
NAMED_MAX: Final = 5
"""The most partitions of a request that a line names."""
Numbered = tuple[int, Rule]


class FaultInjection:
    """The rules around one broker's request handlers. Everything runs in the hub.

    pid    of this process, for the lines of the log
    """

    def __init__(
        self, runtime: BrokerRuntime, broker_id: int, level: Level, log: MatchLog, pid: int
    ) -> None:
        self._runtime = runtime
        self._id = broker_id
        self._served = SERVED[level]
        self._handlers = handlers_at(level)
        self._log = log
        self._pid = pid
        self._by_key: dict[int, list[Numbered]] = {}

    def use(self, rules: Mapping[int, Rule], version: int, begins: int) -> None:
        """Use these rules, by number, and announce their version. begins: as for MatchLog.use."""
        self._by_key = {}
        for number, rule in sorted(rules.items()):
            for key in {api.key for api in rule.apis}:
                self._by_key.setdefault(key, []).append((number, rule))
        self._log.use(rules, begins)
        announced = {"rules": version, "broker": self._id, "pid": self._pid}
        self._log.note({**announced, "at": self._runtime.time_ms()})

    def around(self, handle: RequestHandler) -> RequestHandler:
        """A handler that asks the rules first; `handle` itself if there is none."""
        return partial(self._handle, handle) if self._by_key else handle

    def _handle(
        self, handle: RequestHandler, payload: memoryview, link: RequestConnection
    ) -> ResponseFrame | None:
        rules = self._by_key.get(int.from_bytes(payload[KEY]))
        if not rules:
            return handle(payload, link)
        try:
            header, request = decode_request(payload, self._served)
        except ProtocolError:
            return handle(payload, link)  # which refuses it
        for number, rule in rules:
            if rule.matches(self._id, header, request) and self._is_hit(number, header, request):
                logger.info("rule %d for %s: %s", number, link.peer, rule)
                row = self._served.row(header.key, header.version)
                hit = _Hit(self._runtime, rule, row, header, request, handle, link)
                return hit.respond(payload, self._refusal)
        return handle(payload, link)

    def _is_hit(self, number: int, header: RequestHeader, request: Request) -> bool:
        tally = self._log.tallies[number]
        if tally.hits == tally.rule.times:
            return False  # for ever: it needs no line
        line: Line = {
            "rule": number,
            "broker": self._id,
            "pid": self._pid,
            "at": self._runtime.time_ms(),
            "api": self._served.names[header.key],
            "version": header.version,
            "client_id": header.client_id,
            "correlation_id": header.correlation_id,
            "partitions": [
                topic if partition is None else f"{topic}-{partition}"
                for topic, partition in islice(partitions_in(request), NAMED_MAX)
            ],
        }
        return self._log.note(line)

    def _refusal(self, request: Request, code: int, correlation_id: int) -> bytes:
        _, refuse = self._handlers[type(request)]
        return encode_response(refuse(request, code), correlation_id, request.version)


@dataclass(frozen=True, slots=True)
class _Hit:
    """One request that a rule has hit."""

    runtime: BrokerRuntime
    rule: Rule
    row: ApiVersion
    header: RequestHeader
    request: Request
    handle: RequestHandler
    link: RequestConnection

    def respond(
        self, payload: memoryview, refusal: Callable[[Request, int, int], bytes]
    ) -> ResponseFrame | None:
        """As a RequestHandler."""
        rule, link = self.rule, self.link
        if rule.close == "before" or (rule.error is not None and self._has_no_response):
            self._close()
            return None
        if rule.error is not None:
            return refusal(self.request, rule.error, self.header.correlation_id)
        if rule.delay_ms is not None:
            # A copy: the receive buffer is reused, and the handler numbers messages in place.
            self._later(rule.delay_ms, self._begin, memoryview(bytearray(payload)))
            return None
        response = self.handle(payload, _Changing(link, self._change))
        return None if response is None else self._change(response)

    @property
    def _has_no_response(self) -> bool:
        return isinstance(self.request, ProduceRequest) and self.request.required_acks == 0

    def _begin(self, payload: memoryview) -> None:
        """Handle the request, late."""
        link = self.link
        if link.ending:
            return
        try:
            response = self.handle(payload, link)
        except ProtocolError as error:
            link.fail(error)
            return
        if response is not None:
            link.send_response(response)

    def _change(self, response: ResponseFrame) -> ResponseFrame | None:
        """The frame to send instead; None: nothing yet, or the connection has closed."""
        rule = self.rule
        if rule.drop:
            return b""
        if rule.close == "after":
            self._close()
            return None
        if not response:
            return response  # there is none
        if rule.cut_bytes is not None:
            if rule.cut_bytes == 0:
                self._close()
                return None
            self.link.when_sent(self._close)
            return _start_of(response, rule.cut_bytes)
        if rule.throttle_ms is not None:
            first, *others = [response] if isinstance(response, BYTES) else response
            assert isinstance(first, bytes | bytearray)
            changed = with_throttle_ms(first, self.row, rule.throttle_ms)
            self._later(rule.throttle_ms, self.link.send_response, [changed, *others])
            return None
        assert rule.addresses is not None
        assert isinstance(response, bytes | bytearray)
        return with_addresses(response, self.request, rule.addresses)

    def _close(self) -> None:
        self.link.finish(f"closed by a rule: {self.rule}")

    def _later(self, delay_ms: int, call: Callable[..., object], *args: object) -> None:
        self.runtime.call_later(delay_ms / 1000, call, *args)


class _Changing(ForwardingConnection):
    """The connection of a request whose response is changed."""

    def __init__(
        self, link: RequestConnection, change: Callable[[ResponseFrame], ResponseFrame | None]
    ) -> None:
        super().__init__(link)
        self._change = change

    def send_response(self, response: ResponseFrame) -> None:
        """As ServerConnection.send_response."""
        changed = self._change(response)
        if changed is not None:
            self._link.send_response(changed)


def _start_of(response: ResponseFrame, size: int) -> list[Piece]:
    """The first bytes of a response. Generated ones are left out, and what comes after them."""
    pieces: Sequence[Piece] = [response] if isinstance(response, BYTES) else response
    start = bytearray()
    for piece in pieces:
        left = size - len(start)
        if left == 0 or isinstance(piece, GeneratedBytes):
            break
        if isinstance(piece, BYTES):
            start += piece[:left]
        else:
            start += piece.file.pread(min(left, piece.size), piece.position)
    return [start]
