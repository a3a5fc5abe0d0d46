"""ForwardingConnection: the connection of a request, seen through something that acts when the
response comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka08.network.server_connection import RequestConnection, ResponseFrame


class ForwardingConnection:
    """A RequestConnection that passes everything on to another one. Subclasses override
    `send_response`."""

    def __init__(self, link: RequestConnection) -> None:
        self._link = link

    @property
    def peer(self) -> str:
        return self._link.peer

    @property
    def number(self) -> int:
        return self._link.number

    @property
    def ending(self) -> bool:
        return self._link.ending

    @property
    def on_close(self) -> Callable[[], object] | None:
        return self._link.on_close

    @on_close.setter
    def on_close(self, call: Callable[[], object] | None) -> None:
        self._link.on_close = call

    def send_response(self, response: ResponseFrame) -> None:
        self._link.send_response(response)

    def when_sent(self, call: Callable[[], object]) -> None:
        self._link.when_sent(call)

    def is_abandoned(self) -> bool:
        return self._link.is_abandoned()

    def finish(self, reason: str = "") -> None:
        self._link.finish(reason)

    def fail(self, error: Exception) -> None:
        self._link.fail(error)
