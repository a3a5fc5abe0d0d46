"""The process of a broker, around its server."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, time, weakref
import gevent
from kafka08.broker.process import main

class Cycle: pass

class Quiet:
    def __init__(self, config, runtime): pass
    def startup(self): pass
    store = None
    def await_shutdown(self):
        cycle = Cycle()
        cycle.itself = cycle
        gone = weakref.ref(cycle)
        del cycle
        give_up_at = time.monotonic() + 30
        while gone() is not None and time.monotonic() < give_up_at:
            gevent.sleep(0.02)
        print(gone() is None)

main.COLLECTION_S = 0.05
main.run({"broker.id": "0", "zookeeper.connect": "127.0.0.1:1"}, make_server=Quiet)
"""


def test_a_quiet_broker_collects_what_is_young() -> None:
    """Python collects when new objects come, of which a broker without requests makes none: what
    its last requests left in cycles would stay, with all that it holds."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (b"True\n", 0) == (done.stdout, done.returncode), done.stderr
