"""The runtime of clients on an event loop: calls that wait, their ends, streams and pollers."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import weakref
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kafka08.errors import ConfigError
from kafka08.runtime.asyncio_loop import LoopRuntime, LoopStream
from kafka08.zk.zookeeper import SessionSettings

Scenario = Callable[[LoopRuntime], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def main() -> None:
        await scenario(LoopRuntime())

    asyncio.run(asyncio.wait_for(main(), 10))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, two = socket.socketpair()
    yield one, two
    one.close()
    two.close()


def test_other_tasks_run_while_a_call_waits() -> None:
    """Until another one sets what it waits for."""

    async def scenario(runtime: LoopRuntime) -> None:
        event = runtime.event()
        waiting = asyncio.create_task(runtime.run(event.wait, 5))
        await asyncio.sleep(0)
        assert not waiting.done()
        await runtime.run(event.set)
        assert await waiting
        assert not await runtime.run(runtime.event().wait, 0.01)

    run(scenario)


def test_calls_that_never_wait_let_the_loop_run() -> None:
    """A loop of such calls cannot keep it for itself."""

    async def scenario(runtime: LoopRuntime) -> None:
        other = asyncio.create_task(asyncio.sleep(0))
        while not other.done():
            assert await runtime.run(int, "7") == 7

    run(scenario)


def test_a_cancelled_call_ends_first() -> None:
    """CancelledError comes at the call in which it waits, and its cleanup may wait, too."""
    seen = []

    async def scenario(runtime: LoopRuntime) -> None:
        def call() -> None:
            try:
                runtime.sleep(100)
            except BaseException as error:
                seen.append(type(error))
                runtime.sleep(0.01)
                seen.append(asyncio.CancelledError)
                raise

        waiting = asyncio.create_task(runtime.run(call))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()

    run(scenario)
    assert seen == [asyncio.CancelledError] * 2


def test_the_result_of_a_cancelled_call_is_undone() -> None:
    """Where it has ended before its caller could get the result."""
    undone = []

    async def scenario(runtime: LoopRuntime) -> None:
        event = runtime.event()
        call = runtime.run(event.wait, 5, undo=lambda: undone.append(1))
        waiting = asyncio.create_task(call)
        await asyncio.sleep(0)
        await runtime.run(event.set)
        await asyncio.sleep(0)  # now it has its result
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()

    run(scenario)
    assert undone == [1]


def test_a_result_is_freed_at_once() -> None:
    """Without the garbage collector: polls return thousands of objects."""

    class Result:
        pass

    async def scenario(runtime: LoopRuntime) -> None:
        def after_a_wait() -> Result:
            runtime.sleep(0)
            return Result()

        gc.disable()
        try:
            for call in (Result, after_a_wait):
                result = weakref.ref(await runtime.run(call))
                assert result() is None
        finally:
            gc.enable()

    run(scenario)


def test_a_coroutine_function_as_a_callback() -> None:
    """The call waits for it. It runs for the call's task, and its error is the call's."""

    async def scenario(runtime: LoopRuntime) -> None:
        async def callback(wanted: object) -> object:
            await asyncio.sleep(0.001)
            assert await runtime.run(runtime.current_task) is wanted
            raise KeyError

        plain = runtime.plain(callback)
        assert plain is not None
        with pytest.raises(KeyError):
            await runtime.run(lambda: plain(runtime.current_task()))

    run(scenario)


def test_an_error_of_a_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With its name."""

    async def scenario(runtime: LoopRuntime) -> None:
        task = runtime.spawn(int, "no number", name="digits")
        await runtime.run(task.join)

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert "task 'digits'" in caplog.text
    assert "no number" in caplog.text


def test_a_stream(pair: tuple[socket.socket, socket.socket]) -> None:
    """Waits for bytes and room, times out, and never waits with a timeout of 0."""

    async def scenario(runtime: LoopRuntime) -> None:
        stream, peer = (LoopStream(runtime, one) for one in pair)
        large = bytes(4 << 20)
        sending = asyncio.create_task(runtime.run(peer.sendall, large))
        received, room = 0, bytearray(1 << 16)
        while received < len(large):
            received += await runtime.run(stream.recv_into, room)
        await sending
        stream.settimeout(0.01)
        with pytest.raises(TimeoutError):
            await runtime.run(stream.recv_into, room)
        stream.settimeout(0)
        with pytest.raises(BlockingIOError):
            await runtime.run(stream.peek)
        stream.settimeout(5)
        ending = asyncio.create_task(runtime.run(stream.recv_into, room))
        await asyncio.sleep(0)
        stream.abort()
        assert await ending == 0
        stream.close()
        peer.close()

    run(scenario)


def test_a_poller(pair: tuple[socket.socket, socket.socket]) -> None:
    """Returns streams that are ready, and what `wake_up` ends."""

    async def scenario(runtime: LoopRuntime) -> None:
        stream, peer = (LoopStream(runtime, one) for one in pair)
        poller = runtime.poller()
        poller.watch(stream, "key", read=True, write=False)
        assert await runtime.run(poller.poll, 0.01) == []
        polling = asyncio.create_task(runtime.run(poller.poll, None))
        await asyncio.sleep(0)
        peer.send(b"x")
        assert await polling == [("key", 1, 0)]
        poller.forget(stream)
        polling = asyncio.create_task(runtime.run(poller.poll, None))
        await asyncio.sleep(0)
        poller.wake_up()
        assert await polling == []
        poller.wake_up()
        assert await runtime.run(poller.poll, None) == []
        poller.close()
        stream.close()
        peer.close()

    run(scenario)


def test_connecting() -> None:
    """Also to a name; a refusal is an OSError."""

    async def scenario(runtime: LoopRuntime) -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for host in ("127.0.0.1", "localhost", "broker.localhost"):
            stream = await runtime.run(runtime.connect, (host, port), 5)
            assert await runtime.run(stream.recv_into, bytearray(1)) == 0
            stream.close()
        server.close()
        await server.wait_closed()
        with pytest.raises(OSError):
            await runtime.run(runtime.connect, ("127.0.0.1", port), 5)

    run(scenario)


def test_another_loop_is_refused() -> None:
    """As is a program without one, a wait outside of `run`, and ZooKeeper."""
    kept = []

    async def scenario(runtime: LoopRuntime) -> None:
        kept.append(runtime)
        with pytest.raises(RuntimeError, match="may call what may wait"):
            runtime.sleep(0)
        with pytest.raises(ConfigError, match="no ZooKeeper"):
            runtime.zookeeper(SessionSettings("h:2181"))

    async def elsewhere() -> None:
        await kept[0].run(int)

    run(scenario)
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(elsewhere())
    with pytest.raises(RuntimeError, match="no running event loop"):
        LoopRuntime()
