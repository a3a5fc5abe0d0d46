"""A verification as a report: Markdown for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka08.migration.verification import Verification

COLUMNS = ("topic", "partition", "owner", "zookeeper", "kafka", "lag", "moved", "apart", "verdict")


def as_dict(found: Verification) -> dict[str, Any]:
    """Everything, as JSON has it."""
    return {
        "group": found.group,
        "storage": found.storage.value,
        "verified": found.is_verified,
        "at": found.at_ms,
        "seconds": round(found.seconds, 1),
        "samples": found.samples,
        "members": [
            {
                "member": m.consumer_id,
                "kafka08": m.is_ours,
                "configured": None if m.configured is None else m.configured.value,
                "storage": None if m.storage is None else m.storage.value,
            }
            for m in found.facts.members
        ],
        "partitions": [
            {
                "topic": v.facts.topic_partition.topic,
                "partition": v.facts.topic_partition.partition,
                "owner": v.facts.thread_id,
                "zookeeper": v.facts.zookeeper,
                "kafka": v.facts.kafka,
                "log_start": v.facts.log_start,
                "log_end": v.facts.log_end,
                "lag": v.facts.lag,
                "never_committed": v.facts.never_committed,
                "moved_zookeeper": v.moved_zookeeper,
                "moved_kafka": v.moved_kafka,
                "apart": v.apart,
                "problems": list(v.problems),
                "notes": list(v.notes),
            }
            for v in found.partitions
        ],
        "problems": list(found.problems),
        "notes": list(found.notes),
        "to_do": list(found.to_do),
    }


def rows(found: Verification) -> list[tuple[object, ...]]:
    """One row of COLUMNS for each partition; None where there is nothing."""
    return [
        (
            *v.facts.topic_partition,
            v.facts.thread_id,
            v.facts.zookeeper,
            v.facts.kafka,
            v.facts.lag_text,
            f"{v.moved_zookeeper}/{v.moved_kafka}",
            v.apart,
            "agreed" if v.is_agreed else "problem",
        )
        for v in found.partitions
    ]


def as_markdown(found: Verification) -> str:
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Verification) -> Iterator[str]:
    verdict = "verified" if found.is_verified else f"{len(found.problems)} problems"
    yield f"# Offsets of group {found.group}: {verdict}"
    yield ""
    watched = f"watched for {found.seconds:.0f} s, {found.samples} samples"
    looked = watched if found.samples else "the group is stopped; looked at once"
    yield f"Storage: {found.storage.value}. Members: {len(found.facts.members)}. {looked}."
    yield ""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|" + "---|" * len(COLUMNS)
    for row in rows(found):
        yield "| " + " | ".join("-" if cell is None else str(cell) for cell in row) + " |"
    yield ""
    yield "moved: messages by which ZooKeeper's and Kafka's offset advanced while it watched."
    sections = (("Problems", found.problems), ("Notes", found.notes), ("To do", found.to_do))
    for title, texts in sections:
        if texts:
            yield ""
            yield f"## {title}"
            yield ""
            yield from (f"- {text}" for text in texts)


def write_report(found: Verification, path: Path) -> tuple[Path, Path]:
    """`<path>.md` and `<path>.json`; a suffix that `path` has is replaced."""
    markdown, machine = path.with_suffix(".md"), path.with_suffix(".json")
    markdown.write_text(as_markdown(found))
    machine.write_text(json.dumps(as_dict(found), indent=2) + "\n")
    return markdown, machine
