"""Why no session began: probes every server of a connect string, for the error message."""

from __future__ import annotations

import socket

PROBE_S = 1.0


def explain(hosts: str) -> str:
    """One clause for each of `h1:1,h2:2`: the outcome of a connection to it. Waits at most
    PROBE_S for each address."""
    return "; ".join(f"{address}: {_probe(address)}" for address in hosts.split(","))


def _probe(address: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PROBE_S):
            return (
                "accepts connections but starts no session (is it ZooKeeper, and has it a quorum?)"
            )
    except TimeoutError:
        return "does not respond"
    except OSError as error:
        return (error.strerror or str(error)).lower()
