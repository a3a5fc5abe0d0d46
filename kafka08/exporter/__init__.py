"""A cluster's metrics from outside: any cluster with a ZooKeeper, ours, the JVM's, or mixed.

`ClusterReader` reads a `ClusterView` (kafka08.observe). `Histories` (histories.py, pure)
records how log ends and commits changed. `families_of` (families.py, pure) makes metrics of both,
with the names of kafka_exporter; `verdict.py` applies Burrow's rules. `Exporter` (exporter.py)
repeats this and serves the latest text. `Probe` (probe.py) measures a topic with messages of its
own. `Watch` (watch.py) serves `kafka08 top`: it has the rows of summary.py (pure).
"""

from kafka08.exporter.exporter import Exporter
from kafka08.exporter.families import families_of
from kafka08.exporter.histories import Histories
from kafka08.exporter.probe import Probe
from kafka08.exporter.verdict import Verdict
from kafka08.exporter.watch import Watch
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import ClusterView

__all__ = [
    "ClusterReader",
    "ClusterView",
    "Exporter",
    "Histories",
    "Probe",
    "Verdict",
    "Watch",
    "families_of",
]
