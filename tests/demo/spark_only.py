"""The command line, whose demo passes over the stages between produce and Spark: they take time."""

from __future__ import annotations

from kafka08.cli import main
from kafka08.demo.ledger import Content
from kafka08.demo.pipeline import Job
from kafka08.demo.stage import StageResult


def passed_over(_: Job) -> StageResult:
    return StageResult("passed over", Content(), 0.0, "")


if __name__ == "__main__":
    for stage in ("consume_half", "migrate", "consume_rest", "roll_back"):
        setattr(Job, stage, passed_over)
    main()
