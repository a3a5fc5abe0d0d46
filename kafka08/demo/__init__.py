"""The demo: sends real text through a cluster, a consumer group, a migration and Spark.

`pipeline.py` has the stages in order; each compares its result with the produced messages.
"""

from kafka08.demo.pipeline import run_demo
from kafka08.demo.stage import StageResult

__all__ = ["StageResult", "run_demo"]
