"""How long a broker's work blocks the hub: its CPU time between two switches."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.types import Request
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from tests.broker.world import Client, World
from tests.cpu_speed import slowdown

HOLD_S: Final = 0.1
"""A ZooKeeper session, clients and other brokers wait meanwhile."""
TRIES: Final = 5


class Hub:
    """Measures the longest CPU time between two switches of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._since = self._longest = 0.0
        runtime: Any = world.runtime
        runtime.sleep = lambda seconds: self._switch()

        def run_native(call: Callable[..., object], *args: object) -> object:
            self._switch()
            result = call(*args)
            self._since = time.thread_time()
            return result

        run_native_later = runtime.run_native_later

        def call_later(done: Callable[..., object], call: Any, *args: object) -> None:
            run_native_later(done, lambda: run_native(call, *args))

        runtime.run_native, runtime.run_native_later = run_native, call_later

    def _switch(self) -> None:
        self._longest = max(self._longest, time.thread_time() - self._since)
        self._since = time.thread_time()

    def held(self, work: Callable[[], object]) -> float:
        """Seconds that `work` blocks the hub at most, on a quiet core and without the garbage
        collector, which runs after any allocation and is not this work's fault."""
        gc.collect()
        gc.disable()
        try:
            before = slowdown()
            longest = self.measured(work)
            return longest / max(before, slowdown())
        finally:
            gc.enable()

    def measured(self, work: Callable[[], object]) -> float:
        """The same as it is on this core now, and without a look at the collector."""
        self._longest, self._since = 0.0, time.thread_time()
        work()
        self._switch()
        return self._longest

    def respond(self, request: Request) -> Any:
        """The response. AssertionError if the request blocked the hub for too long."""
        client, data = Client(self.world), encode_request(request, 1, "test")
        held = self.held(lambda: client.send(data))
        assert held < HOLD_S, f"{type(request).__name__} held the hub for {held:.3f} s"
        (frame,) = client.frames()
        return decode_response(type(request), frame, request.version)[1]

    def update(self, request: UpdateMetadataRequest) -> None:
        assert 0 == self.respond(request).error_code

    def best_response(self, request: Request, before: Callable[[], None] = lambda: None) -> Any:
        """`respond` for a request that may be repeated. The best of several runs counts, because
        other programs use the processor too."""
        for _ in range(TRIES - 1):
            before()
            with suppress(AssertionError):
                return self.respond(request)
        before()
        return self.respond(request)
