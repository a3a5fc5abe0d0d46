"""Applies all checks to a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafka08.doctor import (
    checks_brokers,
    checks_files,
    checks_groups,
    checks_partitions,
    checks_requests,
    checks_topics,
)
from kafka08.doctor.check import Check, Finding
from kafka08.doctor.snapshot import Snapshot

CHECKS: Final[tuple[Check, ...]] = (
    *checks_brokers.CHECKS,
    *checks_partitions.CHECKS,
    *checks_topics.CHECKS,
    *checks_requests.CHECKS,
    *checks_groups.CHECKS,
    *checks_files.CHECKS,
)

EARLY_CHECKS: Final = checks_brokers.CHECKS
"""Those that may find something in the brokers and the controller alone."""


def findings_of(snapshot: Snapshot, checks: Iterable[Check] = CHECKS) -> list[Finding]:
    """All findings, problems first; empty if the cluster is healthy."""
    found = [finding for check in checks for finding in check.findings(snapshot)]
    return sorted(found, key=lambda finding: not finding.is_problem)
