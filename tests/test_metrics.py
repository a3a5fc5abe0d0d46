"""Timings, rates, and families as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kafka08.exposition import text_of
from kafka08.metrics import (
    RATE_WINDOW_S,
    RECENT_MAX,
    SAMPLES_PER_TURN,
    Batch,
    Family,
    Labels,
    Mean,
    Pauses,
    Rate,
    Sample,
    Timings,
    meter,
    quantiles,
)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, 0.0),
        ([7.0], 0.999, 7.0),
        ([3.0, 1.0, 2.0, 4.0], 0.5, 3.0),
        (list(range(100)), 0.99, 99),
    ],
)
def test_a_quantile_is_a_value_that_was_there(
    values: list[float], share: float, expected: float
) -> None:
    """A quantile is one of the values, in any order, of one value, and of none."""
    assert [expected] == quantiles(values, (share,))


def test_timings_keep_their_count_and_sum_and_only_the_newest_values() -> None:
    """Count and sum are exact however many values there were."""
    timings = Timings()
    for number in range(RECENT_MAX + 10):
        timings.add(float(number))
    assert RECENT_MAX + 10 == timings.count
    assert sum(range(RECENT_MAX + 10)) == timings.total
    assert RECENT_MAX == len(timings.recent)
    assert [10.0] == quantiles(timings.recent, (0.0,))


def test_a_rate_that_has_just_begun_is_spread_over_a_window() -> None:
    """One record after a long silence is not a thousand a second, as in Java, which adds a window
    to the time that has passed until the first one is full."""
    rate = Rate()
    rate.add(60.0, now=1000.0)
    for passed, seconds in ((0.0, 30.0), (10.0, 40.0), (29.0, 59.0), (30.0, 30.0), (59.0, 59.0)):
        assert 60.0 / seconds == rate.per_second(1000.0 + passed), passed


def test_a_rate_forgets_events_behind_its_windows() -> None:
    """Its total does not forget them."""
    rate = Rate()
    rate.add(60.0, now=0.0)
    assert 0.0 == rate.per_second(2 * RATE_WINDOW_S + 1)
    assert 60.0 == rate.total


def test_a_steady_rate_is_exact() -> None:
    """Ten events a second for a minute give a rate of ten."""
    rate = Rate()
    for second in range(61):
        rate.add(10.0, now=float(second))
    assert rate.per_second(61.0) == pytest.approx(10.0, rel=0.05)


def test_mean_and_largest_are_of_the_last_windows() -> None:
    """A large value leaves with its window."""
    mean = Mean()
    mean.add(100.0, now=0.0)
    mean.add(2.0, now=2 * RATE_WINDOW_S)
    mean.add(4.0, now=2 * RATE_WINDOW_S + 1)
    now = 2 * RATE_WINDOW_S + 2
    assert (3.0, 4.0) == (mean.mean(now), mean.largest(now))


def test_a_meter_has_the_names_of_both_kinds_of_boards() -> None:
    """Each with the same value, and text that Prometheus' own parser takes, escapes included."""
    text = text_of(meter("a_bytesin", "Bytes.", [({"topic": 'x"\\\n'}, 7)]))
    samples = [s for f in text_string_to_metric_families(text) for s in f.samples]
    assert [("a_bytesinpersec", 7), ("a_bytesin_total", 7)] == [(s.name, s.value) for s in samples]
    assert {'x"\\\n'} == {sample.labels["topic"] for sample in samples}


def samples_of(family: Family) -> Iterator[Sample]:
    """All of them, one by one."""
    yield from family.samples
    for suffix, labels, values in family.batches:
        yield from (Sample(suffix, *pair) for pair in zip(labels, values, strict=True))


class Registered:
    """Families as a collector of prometheus-client."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.help, family.kind)
            for suffix, labels, value in samples_of(family):
                metric.add_sample(f"{family.name}{suffix}", dict(labels), value)
            yield metric


TOPICS = [Labels(topic=name) for name in ("a", 'b"\\\n', "100%{}")]


def test_the_text_is_that_of_prometheus_client() -> None:
    """Names, escapes, kinds and numbers, of every shape there is."""
    timings = Timings()
    timings.add(0.25)
    families = [
        *meter("a_bytesin", 'Bytes\\ in "text"\n.', [({"topic": 'x"\\\n', "a": "é"}, 7)]),
        Family("took_ms", "Time.", list(timings.samples(Labels(request="Fetch"))), "summary"),
        Family("size", "Bytes.", [Sample("", {}, n) for n in (0, -1, 1e300, float("inf"), 1.5)]),
        Family("empty", "Nothing.", []),
        Family(
            "many", "With none.", [], batches=[Batch("_total", TOPICS, range(3)), Batch("", [], [])]
        ),
        Family(
            "large",
            "Above what a float has.",
            [],
            batches=[Batch("", TOPICS, [0, 10**17, -(10**17)])],
        ),
        Family(
            "again", "Labels that have a text.", [], batches=[Batch("", TOPICS, [-1, 2, 12345])]
        ),
    ]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Registered(families))
    theirs = generate_latest(registry).decode()
    assert theirs == text_of(families)


def test_timings_are_a_summary() -> None:
    """Quantiles, count and sum, under one name with one type."""
    timings = Timings()
    timings.add(5.0)
    [family] = text_string_to_metric_families(
        text_of([Family("took_ms", "Time.", timings.samples(Labels(request="Fetch")), "summary")])
    )
    values = {(s.name, s.labels.get("quantile")): s.value for s in family.samples}
    assert "summary" == family.type
    assert 5.0 == values["took_ms", "0.99"] == values["took_ms_sum", None]
    assert 1.0 == values["took_ms_count", None]


def test_other_tasks_run_between_samples() -> None:
    """A scrape of thousands of samples pauses between them, whether one family has them or many."""
    done = 0
    pauses: list[int] = []
    of_scrape = Pauses(lambda: pauses.append(done))
    for batch in of_scrape.batches(range(SAMPLES_PER_TURN * 2 + 1)):
        done += len(batch)
    for _ in range(2):
        done += SAMPLES_PER_TURN // 2
        of_scrape.after(SAMPLES_PER_TURN // 2)
    assert [SAMPLES_PER_TURN, 2 * SAMPLES_PER_TURN, 3 * SAMPLES_PER_TURN + 1] == pauses
