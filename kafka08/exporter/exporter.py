"""Exporter: reads the cluster once per interval, and serves the latest text.

So the load on brokers and ZooKeeper does not depend on the number of scrapers, and a scrape of a
hundred thousand partitions takes only the time to send its text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from gzip import compress
from typing import Any, Final

from kafka08.errors import KafkaError
from kafka08.exporter.families import families_of
from kafka08.exporter.histories import Histories
from kafka08.exporter.kminion_families import kminion_families
from kafka08.exposition import CONTENT_TYPE, body_of
from kafka08.metrics import NO_LABELS, Family, Sample, gauge
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import ClusterView
from kafka08.runtime import ClientRuntime, Event

logger = logging.getLogger(__name__)

PACKING: Final = 1
"""Level of gzip. The text of 100,000 partitions of groups becomes 2 MB instead of 52, in 0.1 s."""
COLLECTIONS: Final = (50_000, 20, 100)
"""Thresholds of the garbage collector for a process that only exports: its many objects live long
and have no cycles, and collections take a third of its time with the usual ones."""


class Exporter:
    """One thread may call `refresh`, any thread `app`.

    more   additional families, such as a probe's
    view   the latest view; None before the first
    body   the latest text; `packed`: compressed by gzip, or b"" until a scraper accepts that
    """

    def __init__(
        self,
        reader: ClusterReader,
        runtime: ClientRuntime,
        more: Callable[[], Iterable[Family]] = tuple,
    ) -> None:
        self._reader = reader
        self._runtime = runtime
        self.more = more
        self.view: ClusterView | None = None
        self._histories = Histories()
        self._failures = 0
        self.body = b""
        self.packed = b""
        self._packs = False

    def refresh(self) -> None:
        """Read the cluster and make the text. If ZooKeeper does not respond, the text says so."""
        families: list[Family] = []
        try:
            view = self.view = self._reader.read_view()
        except KafkaError as error:
            self._failures += 1
            logger.warning("Cannot read the cluster: %s", error)
        else:
            for said in view.failed_requests:
                logger.warning("No response: %s", said)
            self._histories.add(view)
            families += families_of(view, self._histories)
            families += kminion_families(view, self._histories)
        families.append(gauge("kafka08_exporter_up", "1 if ZooKeeper responded.", bool(families)))
        families.append(
            Family(
                "kafka08_exporter_failures",
                "How often ZooKeeper did not respond.",
                [Sample("_total", NO_LABELS, self._failures)],
                "counter",
            )
        )
        body = body_of([*families, *self.more()])
        packed = compress(body, PACKING) if self._packs else b""
        self.body, self.packed = body, packed

    def run(self, interval_s: float, stopping: Event) -> None:
        """Refresh once per interval, until `stopping` is set."""
        while not stopping.is_set():
            began = self._runtime.monotonic()
            try:
                self.refresh()
            except Exception:  # the root of a thread: the next time may be better
                logger.exception("Uncaught error while reading the cluster")
            stopping.wait(max(0.0, interval_s - (self._runtime.monotonic() - began)))

    @property
    def is_whole(self) -> bool:
        """Whether the last refresh found all that it asked for."""
        return self.view is not None and not self.view.failed_requests and not self._failures

    @property
    def text(self) -> str:
        """The text of the latest refresh."""
        return self.body.decode()

    def app(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """A WSGI application: serves the text of the latest refresh, at every path."""
        if environ.get("REQUEST_METHOD") not in {"GET", "HEAD"}:
            start_response("405 Method Not Allowed", [("Allow", "GET, HEAD")])
            return [b""]
        headers = [("Content-Type", CONTENT_TYPE)]
        if "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
            self._packs = True
            if packed := self.packed:
                headers.append(("Content-Encoding", "gzip"))
                start_response("200 OK", headers)
                return [packed]
        start_response("200 OK", headers)
        return [self.body]
