"""Hosts with networks of their own, on one machine: brokers whose packets can be lost.

    with Hosts(3) as hosts, HostsCluster(hosts, 3, {}) as cluster:
        hosts.cut(0, hosts.address(1), hosts.zookeeper)

Each host is a network namespace with one interface; a bridge in one more joins them, and us: we are
`hosts.here`, with a second address for ZooKeeper. A cut gives the other side a hardware address
that nobody has, so packets are lost silently, as on a broken network. The namespaces have no
names: each is that of a process that waits for the end of its stdin, so they go when we do, however
that is. Needs Linux, the rights to make a namespace, and the tools of iproute2 and util-linux.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Final

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.lifecycle import Closeable

BROKER_PORT: Final = 9092
NOBODY: Final = "02:00:00:00:00:01"
"""A hardware address that no interface has."""


class CannotMakeHosts(Exception):
    """This machine or user cannot create network namespaces; the message names the refused step."""


class Hosts(Closeable):
    """`count` hosts. CannotMakeHosts if that is impossible, with everything cleaned up."""

    def __init__(self, count: int) -> None:
        # 198.18.0.0/15 is for the tests of networks (RFC 2544); several of us may run at a time.
        self._prefix = f"198.18.{os.getpid() % 256}"
        self.here, self.zookeeper = f"{self._prefix}.1", f"{self._prefix}.2"
        self._namespaces: list[subprocess.Popen[str]] = []
        self._cuts: list[tuple[int, str]] = []
        try:
            for _ in range(count + 1):
                self._namespaces.append(namespace())
            self._connect()
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            said = getattr(error, "stderr", None) or str(error)
            raise CannotMakeHosts(said.strip()) from error

    def _connect(self) -> None:
        *hosts, switch = self._namespaces
        run(*within(switch), "ip", "link", "add", "switch", "type", "bridge")
        run(*within(switch), "ip", "link", "set", "switch", "up")
        ours = f"k08-{os.getpid()}"
        for number, host in enumerate(hosts):
            port = f"port{number}"
            self._plug(switch, port, "eth0", str(host.pid))
            run(*within(host), "ip", "address", "add", f"{self.address(number)}/24", "dev", "eth0")
            run(*within(host), "ip", "link", "set", "eth0", "up")
            run(*within(host), "ip", "link", "set", "lo", "up")
        self._plug(switch, "uplink", ours, str(os.getpid()))
        for address in (self.here, self.zookeeper):
            run("ip", "address", "add", f"{address}/24", "dev", ours)
        run("ip", "link", "set", ours, "up")

    @staticmethod
    def _plug(switch: subprocess.Popen[str], port: str, interface: str, pid: str) -> None:
        """Connect a port of the bridge to an interface in the namespace of `pid`."""
        cable = ["type", "veth", "peer", "name", interface, "netns", pid]
        run(*within(switch), "ip", "link", "add", port, *cable)
        run(*within(switch), "ip", "link", "set", port, "master", "switch", "up")

    def address(self, number: int) -> str:
        return f"{self._prefix}.{10 + number}"

    def command(self, number: int) -> list[str]:
        """The prefix of a command that runs on a host, as the same process."""
        return within(self._namespaces[number])

    def cut(self, number: int, *addresses: str) -> None:
        """Drop the packets of a host to these addresses until `heal`. Connections fail in both
        directions, because responses are dropped too."""
        for address in addresses:
            self._neighbour(number, "replace", address, "lladdr", NOBODY, "nud", "permanent")
            self._cuts.append((number, address))

    def heal(self) -> None:
        """Remove every cut."""
        while self._cuts:
            number, address = self._cuts.pop()
            self._neighbour(number, "del", address)

    def _neighbour(self, number: int, verb: str, address: str, *what: str) -> None:
        run(*self.command(number), "ip", "neighbour", verb, address, *what, "dev", "eth0")

    def close(self) -> None:
        """End the processes, which removes the namespaces and all interfaces."""
        for process in self._namespaces:
            process.communicate()


class HostsCluster(EmbeddedCluster):
    """A cluster with each broker on its own host, and ZooKeeper on this machine."""

    def __init__(self, hosts: Hosts, brokers: int, config: Mapping[str, str]) -> None:
        self._hosts = hosts
        super().__init__(brokers, config)

    def _make_zookeeper(self, _: object) -> EmbeddedZooKeeper:
        directory = self.data_dir / "zookeeper"
        host = self._hosts.zookeeper
        return EmbeddedZooKeeper(directory, host=host, any_address=True, guard=self.guard)

    def _start_brokers(self) -> None:
        self.brokers = [
            EmbeddedBroker(
                number,
                BROKER_PORT,
                host=self._hosts.address(number),
                directory=self.data_dir / f"broker-{number}",
                zookeeper_connect=self.zookeeper.connect_string,
                config=self._config,
                guard=self.guard,
            )
            for number in range(self._count)
        ]
        for broker in self.brokers:
            broker.process.command[:0] = self._hosts.command(broker.id)
            broker.start()


def namespace() -> subprocess.Popen[str]:
    """A process that holds a new network namespace until its stdin ends."""
    process = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if not process.stdout.readline():
        _, said = process.communicate()
        raise OSError(said.strip())
    return process


def within(process: subprocess.Popen[str]) -> list[str]:
    return ["nsenter", f"--net=/proc/{process.pid}/ns/net"]


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
