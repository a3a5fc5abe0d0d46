"""What a broker of an embedded cluster serves at its metrics.port, as Prometheus reads it."""

from __future__ import annotations

import re
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from kafka08.embedded.broker import EmbeddedBroker


class Scrape:
    """One scrape of a broker's metrics. The parser is prometheus-client's, so a text that
    Prometheus would refuse fails here."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        log = broker.process.log.read_text()
        url = re.findall(r"Serving metrics at (http://127\.0\.0\.1:\d+/metrics)", log)[-1]
        with urllib.request.urlopen(url, timeout=10) as response:
            self.text = response.read().decode()
        families = text_string_to_metric_families(self.text)
        self.samples = [sample for family in families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The value of the only sample with this name and exactly these labels."""
        [value] = [s.value for s in self.samples if s.name == name and s.labels == labels]
        return value

    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}
