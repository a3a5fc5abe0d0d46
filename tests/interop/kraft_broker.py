"""A JVM broker of 4.4, which is its own controller, with a listener for each of our needs."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kafka08.embedded.ports import free_ports
from tests.interop.jvm import HERE, JvmProcess, run_tool
from tests.interop.secured_broker import LISTENERS as OF_CLIENTS
from tests.interop.secured_broker import PASSWORD, USER, Secured, listener_keys, make_stores
from tests.network.secured import DATA

POM_4_4: Final = HERE / "pom-4.4.0.xml"
CLUSTER_ID: Final = "kafka08-interop-test-1"
LISTENERS: Final = (*OF_CLIENTS, "PROXIED", "CONTROLLER")
"""PROXIED names the port of a proxy."""


def authorizer(name: str) -> dict[str, str]:
    """The keys of a broker with this authorizer that lets everybody do what no entry is about."""
    return {
        "authorizer.class.name": name,
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }


class KraftBroker(JvmProcess):
    """address    listener → its host:port
    secured       the same for clients with TLS and a login
    proxy_port    what clients of PROXIED are told; the proxy connects to `address["PROXIED"]`
    """

    def __init__(self, directory: Path, flags: Sequence[str] = ()) -> None:
        stores = make_stores(directory)
        *ports, self.proxy_port = free_ports(len(LISTENERS) + 1)
        self.address = {
            name: f"127.0.0.1:{port}" for name, port in zip(LISTENERS, ports, strict=True)
        }
        self.secured = Secured(self.address, stores)
        advertised = {**self.address, "PROXIED": f"127.0.0.1:{self.proxy_port}"}
        del advertised["CONTROLLER"]
        keys = {
            **listener_keys(self.address, stores),
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self.address['CONTROLLER']}",
            "controller.listener.names": "CONTROLLER",
            "advertised.listeners": ",".join(f"{name}://{at}" for name, at in advertised.items()),
            "log.dirs": str(directory / "logs"),
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "log.cleaner.dedupe.buffer.size": "4194304",
            **authorizer("org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        }
        config = directory / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
        scram = [
            ("--add-scram", f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]")
            for bits in (256, 512)
        ]
        done = run_tool(
            *("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)),
            *(word for pair in scram for word in pair),
            pom=POM_4_4,
        )
        assert done.rc == 0, done
        super().__init__(
            *("broker of 4.4", directory / "server.out", "kafka.Kafka", str(config)),
            ready=self._is_ready,
            flags=flags,
            pom=POM_4_4,
        )

    def _is_ready(self) -> bool:
        return "Kafka Server started" in self.log.read_text(errors="replace")

    def keys(self, listener: str) -> dict[str, str]:
        """Those of a client of ours."""
        if listener != "SASL_SSL":
            at = f"127.0.0.1:{self.proxy_port}" if listener == "PROXIED" else self.address[listener]
            return {"bootstrap.servers": at}
        user = "org.apache.kafka.common.security.plain.PlainLoginModule required username={} {};"
        return {
            "bootstrap.servers": self.address[listener],
            "security.protocol": listener,
            "ssl.truststore.location": str(DATA / "ca.pem"),
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": user.format("alice", 'password="alice-secret"'),
        }


@contextmanager
def cutting_proxy(port: int, to: str, seed: int) -> Iterator[list[int]]:
    """Passes bytes on, and closes each connection after some: before a request arrives, within a
    response or behind it. Yields the number of cuts, which ends at 30."""
    host, _, target = to.rpartition(":")
    rng, cuts = random.Random(seed), [0]
    listener = socket.create_server(("127.0.0.1", port))

    def pipe(source: socket.socket, sink: socket.socket, left: int) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if cuts[0] < 30 and left < len(data):
                    sink.sendall(data[:left])
                    cuts[0] += 1
                    break
                left -= len(data)
                sink.sendall(data)
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def serve(client: socket.socket, limits: tuple[int, int]) -> None:
        with client, socket.create_connection((host, int(target))) as broker:
            answers = threading.Thread(target=pipe, args=(broker, client, limits[1]))
            answers.start()
            pipe(client, broker, limits[0])
            answers.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                limits = rng.randrange(700, 20_000), rng.randrange(700, 2500)
                served.append(threading.Thread(target=serve, args=(client, limits)))
                served[-1].start()

    served = [threading.Thread(target=accept)]
    served[0].start()
    try:
        yield cuts
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in served:
            thread.join(30)
