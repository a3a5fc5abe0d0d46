"""How many messages an interval may have: worked by hand from Spark 2.4's rules."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.spark.rates import BACKPRESSURE, MAX_RATE, Get, PidRate, RateLimit
from kafka08.structs import TopicPartition

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))


def conf(**given: str) -> Get:
    """Spark's configuration with these settings of backpressure, or `max_rate`."""
    names = {
        (MAX_RATE if name == "max_rate" else BACKPRESSURE + name.replace("_", ".")): value
        for name, value in given.items()
    }
    return names.get


def test_no_limit() -> None:
    """No rate limits an interval by default, nor the first one with backpressure."""
    assert RateLimit(conf(), 1000).limits({T0: 5}) is None
    assert RateLimit(conf(enabled="true"), 1000).limits({T0: 5}) is None


def test_a_fixed_rate_is_of_each_partition() -> None:
    """The rate is in messages a second per partition, whatever the lag; a short interval has at
    least one message."""
    assert RateLimit(conf(max_rate="10"), 500).limits({T0: 0, T1: 9999}) == {T0: 5, T1: 5}
    assert RateLimit(conf(max_rate="1"), 100).limits({T0: 7}) == {T0: 1}


def test_a_shared_rate_is_shared_by_lag() -> None:
    """Partitions share the rate by their lag. It begins at the initial rate; the fixed rate limits
    each partition."""
    lags = {T0: 300, T1: 100, T2: 0}
    limit = RateLimit(conf(enabled="true", initialRate="1000"), 2000)
    assert limit.limits(lags) == {T0: 1500, T1: 500, T2: 1}
    limit = RateLimit(conf(enabled="true", initialRate="1000", max_rate="400"), 2000)
    assert limit.limits(lags) == {T0: 800, T1: 500, T2: 1}
    assert limit.limits({T0: 0, T1: 0}) is None
    assert RateLimit(conf(initialRate="1000"), 2000).limits(lags) is None


def test_the_rate_follows_the_processing_rate() -> None:
    """The first interval's rate comes first, then the reached one less the backlog, not below the
    least rate; limits use it."""
    limit = RateLimit(conf(enabled="true", initialRate="5000", pid_minRate="200"), 1000)
    assert limit.pid is not None
    limit.pid.done(1000, 800, 1000, 0)
    assert limit.pid.rate is None
    assert limit.limits({T0: 1}) == {T0: 5000}
    limit.pid.done(2000, 600, 1000, 500)
    # 800 - 1.0 * (800 - 600) - 0.2 * (500 * 600 / 1000)
    assert limit.pid.rate == pytest.approx(540)
    assert limit.limits({T0: 1, T1: 1}) == {T0: 270, T1: 270}
    limit.pid.done(3000, 300, 1000, 9000)
    assert limit.pid.rate == 200


def test_the_derivative() -> None:
    """The change of the error counts by its configured weight."""
    pid = PidRate.configured(conf(pid_derived="0.5"), 1000)
    pid.done(1000, 800, 1000, 0)
    pid.done(3000, 600, 1000, 0)
    # 600 - 0.5 * (200 - 0) / 2 s
    assert pid.rate == pytest.approx(550)


@pytest.mark.parametrize(("end", "count", "took"), [(2000, 0, 9), (2000, 5, 0), (1000, 5, 9)])
def test_intervals_without_information_are_ignored(end: int, count: int, took: int) -> None:
    """An interval without messages or time, or reported before, changes nothing."""
    pid = PidRate(1000)
    pid.done(1000, 800, 1000, 0)
    pid.done(end, count, took, 0)
    assert pid.rate is None


def test_there_is_only_one_estimator() -> None:
    """Another estimator's name is an error, as in Spark."""
    with pytest.raises(ConfigError, match="fuzzy does not exist; use pid"):
        RateLimit(conf(enabled="true", rateEstimator="fuzzy"), 1000)
