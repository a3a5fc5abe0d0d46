"""kafka08.spark.session: no signal loses the Java process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from kafka08.spark.session import _deferred_signals


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """This process gets its own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_java_is_known(number: signal.Signals) -> None:
    """Ctrl-C while PySpark starts its Java (a regression: that stayed for ever, since nobody knew
    it) acts once the block is done, through the handler that was there."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(number, interrupt)
    done = False
    with pytest.raises(KeyboardInterrupt), _deferred_signals():  # noqa: PT012
        os.kill(os.getpid(), number)
        done = True
    assert done
    assert signal.getsignal(number) is interrupt


def test_without_a_signal_nothing_is_changed() -> None:
    """The handlers of before are back."""
    before = signal.getsignal(signal.SIGINT)
    with _deferred_signals():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
