"""Exit with 1 if a group is too far behind, or if that cannot be known.

usage: lag_alarm.py GROUP [--above MESSAGES]
"""

from __future__ import annotations

import argparse
import os
import sys

from kafka08.errors import KafkaError
from kafka08.groups import GroupReader, lag_by_topic


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("group")
    parser.add_argument("--above", type=int, default=1000)
    arguments = parser.parse_args()
    with GroupReader(os.environ.get("KAFKA08_ZOOKEEPER", "localhost:2181")) as reader:
        facts = reader.facts(arguments.group)
    lags = lag_by_topic(facts.partitions)
    for topic in lags:
        print(topic.topic, topic.lag_text)
    for what in facts.failed_requests:
        print("not known:", what, file=sys.stderr)
    is_known = bool(lags) and not facts.failed_requests
    return int(not is_known or sum(topic.lag for topic in lags) > arguments.above)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KafkaError as error:
        sys.exit(f"Error: {error}")
