"""kafka08.cli.signals: a signal interrupts a wait and nothing else."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from kafka08.cli.background import Background
from kafka08.cli.signals import Interrupted, Stopped, StopRequest, interrupt_on_stop_signals


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restores this process's own signal handlers."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wait_is_interrupted(number: signal.Signals) -> None:
    """A signal during a wait raises Stopped from it."""
    stop = StopRequest()
    with pytest.raises(Stopped), stop.waiting():
        send(number)


def test_work_outside_a_wait_is_finished() -> None:
    """After a signal outside a wait, the next wait raises Stopped at once, and nothing before
    it."""
    stop = StopRequest()
    with stop.waiting():
        pass
    send(signal.SIGTERM)
    with pytest.raises(Stopped), stop.waiting():
        pytest.fail("the wait began")


def test_the_second_interrupt_is_for_a_stop_that_hangs() -> None:
    """A second Ctrl-C raises KeyboardInterrupt anywhere, for a stop that hangs. A second SIGTERM
    does not."""
    StopRequest()
    send(signal.SIGTERM)
    send(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


def test_an_event_is_set_by_either() -> None:
    """Both signals set the event, for commands whose threads check it themselves."""
    event = StopRequest()
    assert not event.is_set()
    send(signal.SIGINT)
    assert event.is_set()


@pytest.mark.parametrize("early", [False, True])
def test_limited_work_gets_some_seconds(early: bool) -> None:
    """After a signal, before it or in it, limited work ends with Stopped; without one never."""
    stop = StopRequest()
    before = signal.getsignal(signal.SIGALRM)
    with stop.limited(0.01):
        pass
    if early:
        send(signal.SIGTERM)
    late = threading.Timer(0.1, send, [signal.SIGTERM])
    if early:
        send(signal.SIGTERM)
    else:
        late.start()
    with pytest.raises(Stopped), stop.limited(0.01):
        threading.Event().wait(60)
    late.cancel()
    assert before == signal.getsignal(signal.SIGALRM)


@contextmanager
def signaled_elsewhere() -> Iterator[None]:
    """SIGTERM comes a moment later, another thread than the main one gets it, and what the block
    waits for ends, much before its time."""
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    late = threading.Timer(0.05, send, [signal.SIGTERM])
    late.start()
    began = time.monotonic()
    try:
        yield
        assert time.monotonic() - began < 10
    finally:
        late.join()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        end.set()
        other.join()


def test_a_signal_that_another_thread_gets_ends_a_wait() -> None:
    """The system may give a signal to another thread, or to the main thread just before it blocks.
    That ends no system call of the main thread, and yet a wait of it ends."""
    stop = StopRequest()
    with signaled_elsewhere():
        with pytest.raises(Stopped), stop.limited(0.01):
            threading.Event().wait(20)
        with pytest.raises(Stopped), stop.waiting():
            threading.Event().wait(20)


def test_such_a_signal_sets_the_event() -> None:
    """A command that does nothing but wait for it ends."""
    stop = StopRequest()
    with signaled_elsewhere():
        assert stop.wait(20)


def test_such_a_signal_ends_a_wait_for_work() -> None:
    """A command whose main thread waits for another one is interrupted."""
    interrupt_on_stop_signals()
    end = threading.Event()
    work = Background(lambda: end.wait(60), name="work")
    with signaled_elsewhere(), pytest.raises(Interrupted):
        work.result(20)
    end.set()


def test_limited_work_that_ends_in_time_is_done() -> None:
    """A signal in its middle does not end it, and nothing comes later."""
    stop = StopRequest()
    done = False
    timer = signal.getitimer(signal.ITIMER_REAL)  # perhaps that of the test run
    with stop.limited(60):
        send(signal.SIGTERM)
        done = True
    assert done
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    assert (timer[0] > 0.0, timer[1]) == (left > 0.0, interval)


def test_a_signal_at_any_instruction_of_a_wait_sets_the_event() -> None:
    """A handler runs between two instructions of the wait that it ends, and never waits for a lock
    that this wait has. It may come before each instruction in turn; a SIGALRM ends a deadlock."""

    def give_up(*_: object) -> None:
        raise AssertionError("the handler waits for the thread that it runs in")

    before = signal.signal(signal.SIGALRM, give_up)
    try:
        place = 0
        while True:
            stop = StopRequest()
            signal.setitimer(signal.ITIMER_REAL, 60)
            if not signal_arrives_at(place, lambda stop=stop: stop.wait(0)):
                break
            assert stop.is_set()
            assert stop.wait(0)
            place += 1
        assert place > 20, "that is a wait's number of instructions at least"
        assert not stop.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def signal_arrives_at(place: int, call: Any) -> bool:
    """Call, and send SIGTERM before its instruction `place`. False if it has fewer."""
    left = place

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                send(signal.SIGTERM)
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(outer)
    return left < 0


def test_every_thread_that_waits_is_woken() -> None:
    """One `set` ends the waits of all threads, and those that begin later."""
    stop = StopRequest()
    woken = threading.Semaphore(0)

    def wait() -> None:
        if stop.wait(60):
            woken.release()

    threads = [threading.Thread(target=wait, name="waits") for _ in range(5)]
    for thread in threads:
        thread.start()
    assert not stop.wait(0.01)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert all(woken.acquire(blocking=False) for _ in threads)
    assert stop.wait()
