"""Metrics of running parts: counts, times and rates, and the form in which they are read.

The part that knows a number owns it as a plain int, a `Timings` or a `Rate`. An exporter reads the
parts and creates families from them; there is no registry. Nothing here takes a lock: each object
belongs to one thread, and a reader in another thread may see a slightly older state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

RECENT_MAX: Final = 512
"""The number of recent values for quantiles."""
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""The quantiles of Kafka's histograms."""
BUCKETS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds of a histogram of seconds."""
RATE_WINDOW_S: Final = 30.0
"""metrics.sample.window.ms of Java's clients."""
RATE_WINDOWS: Final = 2
"""metrics.num.samples of Java's clients."""
SAMPLES_PER_TURN: Final = 2000
"""The number of samples between two pauses: about a millisecond."""


class Labels(dict[str, str]):
    """Labels of several samples, which an exposition turns into text once, in their order."""

    __slots__ = ("_of_quantiles", "text")
    text: str
    _of_quantiles: tuple[Labels, ...]

    def of_quantiles(self) -> tuple[Labels, ...]:
        """These labels with the label `quantile`, once for each of QUANTILES."""
        try:
            return self._of_quantiles
        except AttributeError:
            self._of_quantiles = tuple(
                Labels(sorted({**self, "quantile": f"{share:g}"}.items())) for share in QUANTILES
            )
            return self._of_quantiles


NO_LABELS: Final = Labels()


class Sample(NamedTuple):
    """One line of an exposition: the family's name with `suffix`, labels, and a value."""

    suffix: str
    labels: Mapping[str, str]
    value: float


class Batch(NamedTuple):
    """Samples with one suffix, which an exposition writes in a quarter of the time.

    values   ints, one for each of `labels`
    """

    suffix: str
    labels: Sequence[Labels]
    values: Sequence[int]


class Shared(NamedTuple):
    """Samples that many owners have, with the same values: an exposition writes them at the speed
    of memory.

    label    the name of the label whose value is the owner; it precedes the others
    owners   each with the places in `labels` of which it has no such sample
    labels   the other labels
    values   one for each of `labels`
    """

    label: str
    owners: Sequence[tuple[str, Sequence[int]]]
    labels: Sequence[Labels]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name.

    kind      gauge, counter (its samples have the suffix _total), summary, histogram or unknown
    samples   read once; may be created while they are read
    batches   further samples, likewise; `shared` too
    """

    name: str
    help: str
    samples: Iterable[Sample]
    kind: str = "gauge"
    batches: Iterable[Batch] = ()
    shared: Iterable[Shared] = ()


def gauge(name: str, says: str, value: float) -> Family:
    """A family of one value without labels."""
    return Family(name, says, (Sample("", NO_LABELS, value),))


def meter(
    name: str, says: str, rows: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[Family]:
    """A counter under the two names that dashboards for the JMX exporter expect: that of Kafka's
    meter (`<name>persec`) and that of Prometheus (`<name>_total`)."""
    found = list(rows)
    yield Family(f"{name}persec", says, [Sample("", *row) for row in found], "unknown")
    yield Family(name, says, [Sample("_total", *row) for row in found], "counter")


class Pauses:
    """Calls `pause` after about each SAMPLES_PER_TURN samples of one scrape, in whichever
    families they are."""

    __slots__ = ("_pause", "_samples")

    def __init__(self, pause: Callable[[], object]) -> None:
        self._pause = pause
        self._samples = 0

    def after(self, samples: int) -> None:
        """Count work that takes as long as so many samples."""
        self._samples += samples
        if self._samples >= SAMPLES_PER_TURN:
            self._samples = 0
            self._pause()

    def batches(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        """`items`, SAMPLES_PER_TURN at a time; each counts as a sample once it is done."""
        for start in range(0, len(items), SAMPLES_PER_TURN):
            batch = items[start : start + SAMPLES_PER_TURN]
            yield batch
            self.after(len(batch))


class Timings:
    """Durations of one kind of work.

    count, total   of all of them; the total in the unit that was added
    recent         the newest RECENT_MAX
    """

    __slots__ = ("_quantiles", "_quantiles_count", "count", "recent", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.recent: deque[float] = deque(maxlen=RECENT_MAX)
        self._quantiles = [0.0] * len(QUANTILES)
        self._quantiles_count = 0
        """The count for which they are."""

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.recent.append(value)

    def samples(self, labels: Labels) -> Iterator[Sample]:
        """The samples of a summary."""
        if self._quantiles_count != self.count:
            self._quantiles_count = self.count
            self._quantiles = quantiles(self.recent, QUANTILES)
        for of_quantile, value in zip(labels.of_quantiles(), self._quantiles, strict=True):
            yield Sample("", of_quantile, value)
        yield Sample("_count", labels, self.count)
        yield Sample("_sum", labels, self.total)


class Histogram:
    """The number of durations, in seconds, up to each of BUCKETS."""

    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self._total = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self._total += seconds

    def samples(self, labels: Mapping[str, str]) -> Iterator[Sample]:
        """The samples of a histogram: each bucket includes the ones below it."""
        count = 0
        for bound, added in zip((*BUCKETS, inf), self._counts, strict=True):
            count += added
            le = "+Inf" if bound == inf else repr(bound)
            yield Sample("_bucket", {**labels, "le": le}, count)
        yield Sample("_count", labels, count)
        yield Sample("_sum", labels, self._total)


def quantiles(values: Iterable[float], shares: Iterable[float]) -> list[float]:
    """Returns for each share (0 to 1) the smallest of `values` that this share of them does not
    exceed; 0.0 for each without values."""
    ascending = sorted(values)
    last = len(ascending) - 1
    return [
        ascending[min(last, int(share * len(ascending)))] if ascending else 0.0 for share in shares
    ]


class Rate:
    """An amount per second, over the last RATE_WINDOWS windows of RATE_WINDOW_S.

    As in Java, all windows but the last count as full: a rate that has just begun is spread over
    more time than has passed, so that one record after a long silence does not look like thousands
    a second. Source: org.apache.kafka.common.metrics.stats.Rate 0.10.2.2.
    """

    __slots__ = ("_windows", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self._windows: deque[list[float]] = deque(maxlen=RATE_WINDOWS)

    def add(self, amount: float, now: float) -> None:
        """`now` in seconds of a monotonic clock."""
        self.total += amount
        if not self._windows or now - self._windows[-1][0] >= RATE_WINDOW_S:
            self._windows.append([now, 0.0])
        self._windows[-1][1] += amount

    def per_second(self, now: float) -> float:
        """The rate at `now`; 0.0 if nothing was added within the windows."""
        oldest = now - RATE_WINDOWS * RATE_WINDOW_S
        # A copy: another thread may add a window meanwhile.
        live = [window for window in list(self._windows) if window[0] > oldest]
        if not live:
            return 0.0
        seconds = now - live[0][0]
        missing = RATE_WINDOWS - 1 - int(seconds / RATE_WINDOW_S)
        seconds += max(missing, 0) * RATE_WINDOW_S
        return sum(amount for _, amount in live) / seconds


class Mean:
    """Mean and largest of the values of the last windows, as Java's Avg and Max."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: deque[list[float]] = deque(maxlen=RATE_WINDOWS)

    def add(self, value: float, now: float) -> None:
        """Count a value, at `now` in monotonic seconds."""
        window = self._window(value, now)
        window[1] += 1
        window[2] += value
        window[3] = max(window[3], value)

    def add_all(self, values: Sequence[float], now: float) -> None:
        """Count several values, at least one, at `now` in monotonic seconds."""
        largest = max(values)
        window = self._window(largest, now)
        window[1] += len(values)
        window[2] += sum(values)
        window[3] = max(window[3], largest)

    def _window(self, largest: float, now: float) -> list[float]:
        """The current window; a new one begins with this largest value."""
        windows = self._windows
        if not windows or now - windows[-1][0] >= RATE_WINDOW_S:
            windows.append([now, 0.0, 0.0, largest])
        return windows[-1]

    def mean(self, now: float) -> float:
        """0.0 without a value."""
        live = self._live(now)
        count = sum(window[1] for window in live)
        return sum(window[2] for window in live) / count if count else 0.0

    def largest(self, now: float) -> float:
        """0.0 without a value."""
        return max((window[3] for window in self._live(now)), default=0.0)

    def _live(self, now: float) -> list[list[float]]:
        oldest = now - RATE_WINDOWS * RATE_WINDOW_S
        return [window for window in list(self._windows) if window[0] > oldest]
