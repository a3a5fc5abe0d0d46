"""Live: reads the cluster periodically, and keeps the state for the console's pages as text.

So the load on brokers and ZooKeeper does not depend on the number of users, and a request costs
only the time to send the text.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kafka08.errors import KafkaError
from kafka08.exporter import ClusterView, Watch
from kafka08.exporter.summary import GroupPartitionRow
from kafka08.lifecycle import Closeable
from kafka08.observe.place import ClusterPlace
from kafka08.pages.overview import Overview, overview_of
from kafka08.pages.trends import Trends
from kafka08.runtime import ClientRuntime, Event

logger = logging.getLogger(__name__)

IDLE_SHARE: Final = 2.0
"""Pause after a read, as a multiple of its duration: spares large clusters, which take long."""


class State(NamedTuple):
    """The data of the pages.

    number   increases with each read
    text     JSON, compressed by gzip
    """

    number: int
    text: bytes


class Live(Closeable):
    """One thread may call `look`, any thread the rest.

    watch      of the cluster at `place`; closed with this
    settings   further data for the pages
    """

    def __init__(
        self,
        place: ClusterPlace,
        watch: Watch,
        runtime: ClientRuntime,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.place = place
        self.runtime = runtime
        self._settings = settings or {}
        self._watch = watch
        self._trends = Trends()
        self._lock = runtime.lock()
        self._overview: dict[str, Any] | None = None
        self._fault: str | None = None
        self._fault_ms: int | None = None
        self.state = self._state_after(0)

    def close(self) -> None:
        self._watch.close()

    @property
    def view(self) -> ClusterView | None:
        """The latest view."""
        return self._watch.view

    def look(self) -> float:
        """Read the cluster; returns how many seconds that took. If it does not respond, the pages
        say so, and keep showing the latest state."""
        began = self.runtime.monotonic()
        try:
            view = self._watch.read_view()
        except KafkaError as error:
            if self._fault is None:
                self._fault_ms = self.runtime.time_ms()
                logger.warning("Cannot read the cluster: %s", error)
            self._fault = str(error)
        else:
            self._fault = self._fault_ms = None
            with self._lock:
                self._watch.add(view)
            summary = self._watch.summary()
            self._trends.add(view.now_ms, summary)
            facts = Overview(str(self.place), view, summary, self._trends, self._watch.before)
            self._overview = overview_of(facts)
        self.state = self._state_after(self.state.number)
        return self.runtime.monotonic() - began

    def run(self, interval_s: float, stopping: Event) -> None:
        """Read once per interval, until `stopping` is set."""
        while not stopping.is_set():
            seconds = 0.0
            try:
                seconds = self.look()
            except Exception:  # the root of a thread: the next time may be better
                logger.exception("Uncaught error while reading the cluster")
            stopping.wait(max(interval_s - seconds, IDLE_SHARE * seconds))

    def partitions_of(self, group: str) -> list[GroupPartitionRow]:
        """The group's partitions with offsets, verdict and time lag; [] before the first read."""
        with self._lock:
            return [] if self.view is None else self._watch.partitions_of(group)

    def _state_after(self, number: int) -> State:
        said = {
            "number": number + 1,
            "connect": str(self.place),
            "fault": self._fault,
            "fault_ms": self._fault_ms,
            "overview": self._overview,
            **self._settings,
        }
        text = json.dumps(said, separators=(",", ":")).encode()
        return State(number + 1, gzip.compress(text, compresslevel=1))
