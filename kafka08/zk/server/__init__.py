"""A ZooKeeper server for tests: the pure model behind ZooKeeper's wire protocol.

`python -m kafka08.zk.server` runs it as one small process, which serves a few hundredths of a
second later. It keeps its state across a kill of the process (`journal`), never across a crash of
the machine: Apache's ZooKeeper is for data that must last.

    jute, requests, replies   bytes ↔ values of zk/model
    wire_server               connections: bytes in, bytes out (pure)
    words                     four-letter words (pure)
    faults                    what a test may command (pure)
    journal                   its state in a file
    driver                    sockets and time; the only part that uses them

Start reading with wire_server.py. It serves clients of ZooKeeper 3.4 to 3.9; requests.py says what
it leaves out. A server in the protocol's sense alone: no ensemble, no quotas, no TLS, no SASL.
"""

from __future__ import annotations
