"""Overview: the data that report and console show of a cluster, as JSON for their script. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kafka08.doctor import Finding
from kafka08.doctor.snapshot import LogDirectoryFacts
from kafka08.exporter.summary import Summary
from kafka08.observe.snapshot import ClusterView
from kafka08.pages.trends import Trends
from kafka08.pages.view_json import partitions_as_json


@dataclass(frozen=True, slots=True)
class Overview:
    """connect           connect string of the cluster, or its brokers
    before            earlier view, for rates; None: no rates
    findings          of the doctor; None: it did not run
    log_directories   local ones, for sizes in bytes, which brokers of 0.8 do not report
    answers           what a report's pages ask for: path → answer, or → name → answer (details)
    """

    connect: str
    view: ClusterView
    summary: Summary
    trends: Trends
    before: ClusterView | None = None
    findings: Sequence[Finding] | None = None
    log_directories: Sequence[LogDirectoryFacts] = field(default=())
    answers: Mapping[str, Any] = field(default_factory=dict)


def overview_of(facts: Overview) -> dict[str, Any]:
    """The overview in the form that static/parts.js reads."""
    view, summary = facts.view, facts.summary
    topic_bytes = bytes_by_topic(facts.log_directories)
    return {
        "connect": facts.connect,
        "now_ms": view.now_ms,
        "since_ms": None if facts.before is None else facts.before.now_ms,
        "controller": summary.controller,
        "has_zookeeper": summary.has_zookeeper,
        "brokers": [
            asdict(row) | {"is_alive": row.broker in view.brokers} for row in summary.brokers
        ],
        "topics": [asdict(row) | {"bytes": topic_bytes.get(row.topic)} for row in summary.topics],
        "partitions": partitions_as_json(view),
        "groups": [asdict(row) for row in summary.groups],
        "under_replicated": summary.under_replicated,
        "offline": summary.offline,
        "failed_requests": summary.failed_requests,
        "trends": facts.trends.as_dict(),
        "findings": None
        if facts.findings is None
        else [finding.as_dict() for finding in facts.findings],
        "log_directories": [
            {"path": d.path, "fault": d.fault, "total": d.total, "free": d.free}
            for d in facts.log_directories
        ],
    }


def bytes_by_topic(directories: Iterable[LogDirectoryFacts]) -> Mapping[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for directory in directories:
        for tp, log in directory.logs.items():
            found[tp.topic] += log.size
    return found
