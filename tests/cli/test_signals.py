"""kafka08.cli.signals: a signal interrupts a wait and nothing else."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from kafka08.cli.signals import Stopped, StopRequest


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


def test_limited_work_that_ends_in_time_is_done() -> None:
    """A signal in its middle does not end it, and nothing comes later."""
    stop = StopRequest()
    done = False
    with stop.limited(60):
        send(signal.SIGTERM)
        done = True
    assert done
    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)
