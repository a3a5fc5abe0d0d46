"""Transactions of KafkaProducer and librdkafka, again and again, while brokers and producers fail.

In each round processes send, read, process and write in transactions. Chance kills, suspends and
cuts off brokers, ends their sessions, and fills or slows their disks; it kills producers, and
replaces some while they run or are suspended. In the end two clients read everything, and the
history is checked (kafka08/simulation/transaction_history.py has the rules). Exits 1 if one is
broken; then the story, and what brokers and processes said, stay in the directory that a line at
the start names. A call of librdkafka that never ends is counted as a fault.
"""

from __future__ import annotations

import logging
import random
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.soak import Outcome, announced, say, soak, soak_parser
from tests.histories.transaction_run import JAVA, run_once, transaction_cluster


def main() -> int:
    parser = soak_parser("soak-transactions", __doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of faults, in each round")
    parser.add_argument(
        "--java", choices=list(JAVA), action="append", default=[], help="a producer that sends, too"
    )
    options = parser.parse_args()
    # What the load logs of brokers that are down is no news.
    logging.getLogger("kafka08").setLevel(logging.CRITICAL)
    with announced(options), transaction_cluster() as cluster:
        directory = Path(tempfile.mkdtemp(prefix="soak-transactions-"))
        say(f"what the processes say goes to {directory}")

        def run_round(number: int, rng: random.Random) -> Outcome:
            name = f"soak-{number}"
            summary, problems = run_once(
                cluster, name, directory / name, rng, options.seconds, options.java
            )
            if not (directory / name / "story").exists():
                shutil.rmtree(directory / name)
            return Outcome(summary, problems)

        failed = soak(options, run_round)
        if not any(directory.iterdir()):
            directory.rmdir()
        return failed


if __name__ == "__main__":
    sys.exit(main())
