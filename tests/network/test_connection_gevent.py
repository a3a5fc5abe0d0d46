"""Connection in a program that gevent has patched: it waits green without being told so."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from gevent import monkey
monkey.patch_all()

import gevent, socket, struct
from kafka08.errors import ConnectionFailed, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.protocol import codec
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse

server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
accepted = []
arrived = []                      # greenlets that are waiting for a response at the same time


def serve(sock):
    while data := sock.recv(4096):
        _, request = codec.decode_request(data[4:])
        arrived.append(sock)
        while len(arrived) < 3:
            gevent.sleep(0.001)
        decoded = ConsumerMetadataResponse(0, 1, request.group, 1)
        frame = codec.encode_response(decoded, 0)
        for byte in range(len(frame)):        # piece by piece, so that reads really wait
            sock.sendall(frame[byte : byte + 1])
            gevent.sleep(0)


def accept():
    while True:
        sock, _ = server.accept()
        accepted.append(sock)
        gevent.spawn(serve, sock)


gevent.spawn(accept)


def ask(group):
    with Connection("127.0.0.1", port, timeout_ms=10_000) as connection:
        assert connection.send(ConsumerMetadataRequest(group)).host == group
        assert not connection.is_stale()


gevent.joinall([gevent.spawn(ask, f"g{n}") for n in range(3)], raise_error=True)

silent = socket.create_server(("127.0.0.1", 0))
waiting = Connection("127.0.0.1", silent.getsockname()[1], timeout_ms=50)
try:
    waiting.send(ConsumerMetadataRequest("g"))
    raise AssertionError("answered")
except RequestTimeout:
    pass
waiting.timeout_ms = 60_000
waiting.write(ConsumerMetadataRequest("g"))
reader = gevent.spawn(waiting.read_response)
gevent.sleep(0)
waiting.abort()
try:
    reader.get(timeout=10)
    raise AssertionError("answered")
except ConnectionFailed:
    print("green")
"""


def test_requests_wait_green() -> None:
    """Three requests wait at the same time in one thread; timeout, staleness and abort work too."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "green\n", done.stderr
