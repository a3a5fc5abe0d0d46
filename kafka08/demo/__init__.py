"""The main job, end to end: real text through a cluster, a group, a migration and Spark.

`pipeline.py` has the stages in order; each compares what it saw with what was produced.
"""

from kafka08.demo.pipeline import run_demo
from kafka08.demo.stage import StageResult

__all__ = ["StageResult", "run_demo"]
