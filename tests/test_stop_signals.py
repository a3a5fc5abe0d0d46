"""Signals that come before a program has said what they mean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kafka08.stop_signals import (
    handle_stop_signals,
    hold_stop_signals,
    stop_signals,
    stop_was_requested,
)

ALL = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """This process gets its own handlers back, and holds no signal."""
    before = {number: signal.getsignal(number) for number in ALL}
    yield
    hold_stop_signals()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ALL)
def test_a_signal_is_held(number: signal.Signals) -> None:
    """It is held until a program asks for it, even if other handlers are installed by then."""
    hold_stop_signals()
    assert not stop_was_requested()
    os.kill(os.getpid(), number)
    handle_stop_signals(lambda *_: None)
    assert stop_was_requested()


def test_the_second_interrupt_acts_at_once() -> None:
    """A second Ctrl-C ends an import that hangs."""
    hold_stop_signals()
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_signals_ignored_by_nohup_stay_ignored() -> None:
    """Closing the terminal does not stop such a program."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    hold_stop_signals()
    os.kill(os.getpid(), signal.SIGHUP)
    assert not stop_was_requested()
    assert signal.SIGHUP not in stop_signals()


@pytest.mark.parametrize("module", ["kafka08.cli", "kafka08.broker.process.main"])
def test_entry_points_import_nothing_before(module: str) -> None:
    """Their first imports are small, because signals are not held before these are done."""
    program = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"logging", "argparse", "typing", "click", "gevent"}.intersection(loaded)


def test_a_signal_while_the_interpreter_ends_changes_nothing() -> None:
    """By then all is done, and Python has taken its handlers back."""
    program = (
        "import os, signal\n"
        "from kafka08.stop_signals import hold_stop_signals\n"
        "class Last:\n"
        "    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGTERM):\n"
        "        kill(pid, number)\n"
        "hold_stop_signals()\n"
        "last = Last()\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
