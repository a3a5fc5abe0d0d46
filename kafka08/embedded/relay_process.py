"""A relay between clients and the servers of an embedded cluster, with links that can be cut.

Run as a file, with the standard library alone, so that it starts in a few hundredths of a second.
Commands are JSON lines on stdin; each gets one line on stdout in reply:

    {"links": [{"name": "broker-0", "host": "127.0.0.1", "listen": 0, "target": 10001}, …]}
                                    → {"ports": [34567, …]}      once, first; listen 0: any port
    {"cut": [["broker-0", 4711], …]}  → {}     the links to be cut now, with their processes
    {"reset": ["broker-0", …]}        → {}     the links whose connections are reset, once

A cut loses no byte and closes no connection: bytes in flight wait, as in a network that retransmits
packets. It affects every connection over a named link, and every connection that the named process
has opened over any link. A reset ends connections as a firewall does that forgot them: bytes in
flight are lost, and both sides see an error. End of stdin ends the relay.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import struct
import sys
from contextlib import suppress
from typing import Any, NamedTuple

CHUNK_BYTES = 256 * 1024
NO_LINGER = struct.pack("ii", 1, 0)
"""SO_LINGER with which a close resets the connection."""


class Link(NamedTuple):
    """An address for clients, and the server behind it."""

    name: str
    host: str
    target: int


class Relayed:
    """One client's connection over a link."""

    def __init__(self, link: Link, client: socket.socket) -> None:
        self.link = link
        self.client = client
        self.client_port: int = client.getpeername()[1]
        self.may_pass = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_reset = False

    def reset(self) -> None:
        """End both connections with an error."""
        if self._task is not None:
            self._is_reset = True
            self._task.cancel()

    async def run(self) -> None:
        """Forward bytes both ways until both sides are done."""
        self._task = asyncio.current_task()
        server = socket.socket()
        try:
            await self.may_pass.wait()
            server.setblocking(False)
            await asyncio.get_running_loop().sock_connect(
                server, (self.link.host, self.link.target)
            )
            for end in (self.client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._carry_both_ways(server)
        except OSError:
            pass  # the server is gone: the client's connection is closed as well
        finally:
            for end in (self.client, server):
                if self._is_reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
                end.close()

    async def _carry_both_ways(self, server: socket.socket) -> None:
        """Forward until both directions are done, or one fails. Neither task may outlive the
        sockets: a closed descriptor is soon reused, and the task would take another connection's
        bytes."""
        ways = [
            asyncio.ensure_future(self._carry(self.client, server)),
            asyncio.ensure_future(self._carry(server, self.client)),
        ]
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(source, CHUNK_BYTES):
            await self.may_pass.wait()
            await loop.sock_sendall(sink, data)
        await self.may_pass.wait()
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


class Relay:
    """All links and the current cuts."""

    def __init__(self) -> None:
        self._connections: set[Relayed] = set()
        self._cut_links: set[str] = set()
        self._cut_processes: list[int] = []
        """Open descriptors of directories below /proc: unlike a process id, a descriptor is never
        reused while it is open."""
        self._tasks: set[asyncio.Task[None]] = set()

    def listen(self, spec: dict[str, Any]) -> int:
        """Open a link; returns the port for clients."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((spec["host"], spec["listen"]))
        listener.listen(512)
        listener.setblocking(False)
        link = Link(spec["name"], spec["host"], spec["target"])
        self._keep(self._accept(link, listener))
        port: int = listener.getsockname()[1]
        return port

    def cut(self, cuts: list[tuple[str, int]]) -> None:
        """Cut exactly the connections that `cuts` select."""
        self._cut_links = {name for name, _ in cuts}
        for process in self._cut_processes:
            os.close(process)
        self._cut_processes = [process for _, pid in cuts for process in open_process(pid)]
        self._decide(self._connections)

    def reset(self, names: list[str]) -> None:
        """Reset every connection over these links."""
        for relayed in list(self._connections):
            if relayed.link.name in names:
                relayed.reset()

    async def _accept(self, link: Link, listener: socket.socket) -> None:
        while True:
            client, _ = await asyncio.get_running_loop().sock_accept(listener)
            client.setblocking(False)
            try:
                relayed = Relayed(link, client)
            except OSError:
                client.close()  # it was closed before we accepted it
                continue
            self._connections.add(relayed)
            self._decide({relayed})
            self._keep(self._run(relayed))

    async def _run(self, relayed: Relayed) -> None:
        try:
            await relayed.run()
        finally:
            self._connections.discard(relayed)

    def _decide(self, connections: set[Relayed]) -> None:
        ports = {port for process in self._cut_processes for port in ports_of(process)}
        for relayed in connections:
            if relayed.link.name in self._cut_links or relayed.client_port in ports:
                relayed.may_pass.clear()
            else:
                relayed.may_pass.set()

    def _keep(self, work: Any) -> None:
        # The event loop itself holds tasks only weakly.
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def open_process(pid: int) -> list[int]:
    """A descriptor of the process's directory below /proc; empty if there is none."""
    try:
        return [os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY)]
    except OSError:
        return []


def ports_of(process: int) -> set[int]:
    """Local TCP ports of a process's connections (`open_process`); empty after its end."""
    inodes = set()
    with suppress(OSError):
        descriptors = os.open("fd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=process)
        try:
            for name in os.listdir(descriptors):
                with suppress(OSError):
                    target = os.readlink(name, dir_fd=descriptors)
                    if match := re.fullmatch(r"socket:\[(\d+)\]", target):
                        inodes.add(match[1])
        finally:
            os.close(descriptors)
    ports = set()
    with suppress(OSError):
        table = os.open("net/tcp", os.O_RDONLY, dir_fd=process)
        with open(table) as lines:
            for fields in map(str.split, lines.readlines()[1:]):
                if fields[9] in inodes:
                    ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


async def main() -> None:
    """Serve until stdin ends."""
    relay = Relay()
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    while line := await commands.readline():
        command = json.loads(line)
        reply: dict[str, Any] = {}
        if "links" in command:
            reply["ports"] = [relay.listen(link) for link in command["links"]]
        elif "reset" in command:
            relay.reset(command["reset"])
        else:
            relay.cut(command["cut"])
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
