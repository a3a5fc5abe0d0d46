"""Health checks of a cluster: each finding says what is wrong, why it matters, and what to do.

`SnapshotReader` (reader.py) reads ZooKeeper, brokers, groups and files, and changes nothing.
`findings_of` (examination.py) applies all checks to that snapshot (pure). checks_*.py has the
checks by subject. Start with snapshot.py. Works on clusters of ours, of the JVM's, and mixed ones.
"""

from kafka08.doctor.check import Check, Finding, Severity
from kafka08.doctor.examination import CHECKS, EARLY_CHECKS, findings_of
from kafka08.doctor.reader import SnapshotReader
from kafka08.doctor.snapshot import Snapshot

__all__ = [
    "CHECKS",
    "EARLY_CHECKS",
    "Check",
    "Finding",
    "Severity",
    "Snapshot",
    "SnapshotReader",
    "findings_of",
]
