"""Reads as one group of KafkaConsumers, round after round, while members are killed, frozen and
started, the coordinator is killed, and connections are held or reset.

The members use their consumers in all ways, as chance has it. Their histories are checked
(kafka08/simulation/group_history.py): what each is handed is in order, nothing is skipped, no
commit goes back, and every message is processed. Exits 1 if anything else was seen.
"""

from __future__ import annotations

import logging
import random
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.soak import Outcome, announced, say, soak, soak_parser
from tests.histories.group_clusters import of_jvm, of_ours
from tests.interop.jvm import POM_0_9_0, POM_0_10_2, POM_2_8, POM_3_9

JVM = {"0.9.0.1": POM_0_9_0, "0.10.2.2": POM_0_10_2, "2.8.2": POM_2_8, "3.9.1": POM_3_9}
OURS = ("0.9.0", "0.10.2")


def main() -> int:
    parser = soak_parser("soak-group", __doc__)
    parser.add_argument(
        "--brokers", choices=[*OURS, *JVM], default=OURS[-1], help="a level of ours, or a release"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of faults, in each round")
    options = parser.parse_args()
    # What the load logs of brokers that are down is no news.
    logging.getLogger("kafka08").setLevel(logging.CRITICAL)
    with announced(options), ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="soak-group-"))
        say(f"what the members say goes to {directory}")
        if options.brokers in JVM:
            cluster = stack.enter_context(of_jvm(directory, JVM[options.brokers]))
        else:
            cluster = stack.enter_context(of_ours(options.brokers))

        def run_round(number: int, rng: random.Random) -> Outcome:
            name = f"soak-{number}"
            try:
                told, problems = cluster.history(name, directory / name, rng, options.seconds)
                if not problems:
                    shutil.rmtree(directory / name)
                return Outcome(told, problems)
            except AssertionError as error:
                return Outcome("stuck", [str(error)])

        return soak(options, run_round)


if __name__ == "__main__":
    sys.exit(main())
