"""The process of one broker of an embedded cluster, with the faults of the cluster: its rules, and
those of the broker's disk.

    python -P -m kafka08.embedded.broker_process server.properties [DIRECTORY]

It reads DIRECTORY/rules.json at its start and at each SIGUSR1, and notes in DIRECTORY/matches which
version of it it has. Before that note the signal would end it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka08.stop_signals import hold_stop_signals

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the import

if TYPE_CHECKING:
    from kafka08.broker.process.server import KafkaServer
    from kafka08.broker.settings.config import BrokerConfig
    from kafka08.runtime.greenlets import GeventRuntime

CHANGED: Final = signal.SIGUSR1


def main(arguments: Sequence[str], *, is_patched: bool = False) -> int:
    """As main of a broker. is_patched: `import_broker` was called before."""
    from kafka08.broker.process.main import run, run_patched
    from kafka08.config import load_properties

    properties, *directories = arguments

    def make_server(config: BrokerConfig, runtime: GeventRuntime) -> KafkaServer:
        return server_with_rules(config, runtime, Path(directories[0]))

    start = run_patched if is_patched else run
    make = make_server if directories else None
    return start(load_properties(properties), make_server=make)


def server_with_rules(config: BrokerConfig, runtime: GeventRuntime, directory: Path) -> KafkaServer:
    """A broker with the rules of that directory, now and whenever they change."""
    import os

    from kafka08.broker.process.server import KafkaServer
    from kafka08.embedded.fault_injection import FaultInjection
    from kafka08.embedded.fault_rules import MATCHES, read_rules
    from kafka08.embedded.faulty_disk import FaultyDisk
    from kafka08.embedded.match_log import MatchLog
    from kafka08.runtime.greenlets import block

    disk = runtime.disk = FaultyDisk(block)
    log = MatchLog(directory / MATCHES)
    injection = FaultInjection(runtime, config.broker_id, config.level, log, os.getpid())
    server = KafkaServer(config, runtime, injection.around)

    def reload() -> None:
        file = read_rules(directory)
        disk.fault = file.disks.get(config.broker_id)
        server.use_descriptors()
        injection.use(file.rules, file.version, file.begins)
        server.use_around()

    # Before the first reading, whose note says that the signal may be sent.
    runtime.on_signal(CHANGED, reload)
    reload()
    return server


if __name__ == "__main__":
    hold_stop_signals()
    sys.exit(main(sys.argv[1:]))
