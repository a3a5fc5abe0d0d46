"""kafka08.cli.signals: a signal interrupts a wait and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from kafka08.cli.signals import Stopped, StopRequest, stop_event


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


@pytest.mark.parametrize("make", [StopRequest, stop_event])
def test_the_second_interrupt_is_for_a_stop_that_hangs(make: type) -> None:
    """A second Ctrl-C raises KeyboardInterrupt anywhere, for a stop that hangs. A second SIGTERM
    does not."""
    make()
    send(signal.SIGTERM)
    send(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


def test_an_event_is_set_by_either() -> None:
    """Both signals set the event, for commands whose threads check it themselves."""
    event = stop_event()
    assert not event.is_set()
    send(signal.SIGINT)
    assert event.is_set()
