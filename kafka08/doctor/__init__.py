"""Looks a whole cluster over and says what is wrong with it, why it matters, and one command.

`read_snapshot` (reader.py) reads ZooKeeper, brokers, groups and files, and changes nothing;
`findings_of` (examination.py) is a pure function of what it read. The checks stand by subject in
checks_*.py. Start with snapshot.py. For clusters of ours, of the JVM's, and mixed ones.
"""

from kafka08.doctor.check import Check, Finding, Severity
from kafka08.doctor.examination import CHECKS, findings_of
from kafka08.doctor.reader import SnapshotReader
from kafka08.doctor.snapshot import Snapshot

__all__ = ["CHECKS", "Check", "Finding", "Severity", "Snapshot", "SnapshotReader", "findings_of"]
