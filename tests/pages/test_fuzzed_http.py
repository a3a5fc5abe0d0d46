"""Drawn HTTP requests, sound, odd and damaged, to the servers that ask for a token, and to that of
metrics: without the token nothing is answered but refusals, each request costs little, and memory
and threads do not grow."""

from __future__ import annotations

import gc
import multiprocessing
import random
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final, cast

import pytest

from kafka08.cli.http_server import serve_http
from kafka08.embedded.cluster_control import ClusterControl
from kafka08.embedded.control_app import ControlApp
from kafka08.exporter import Watch
from kafka08.exposition import metrics_app
from kafka08.observe.place import ClusterPlace
from kafka08.pages.console import Console
from kafka08.pages.guard import COOKIE, Guard
from kafka08.pages.live import Live
from kafka08.runtime.threads import THREADS
from tests.cpu_speed import slowdown
from tests.memory import lasting_growth, resident_bytes
from tests.waiting import until

REQUESTS: Final = 600
LOOK_EACH: Final = 75
"""So many requests between two looks at the memory: a leak shows at each, other noise does not."""
REQUEST_S: Final = 0.1
GROWTH_BYTES_MAX: Final = 16 << 20
"""A request has up to 256 KB, and each thread some memory of its own: 7 MB come and go."""
TOKEN: Final = "t" * 32
TEXTS: Final = (
    *("", "localhost", "127.0.0.1:80", "[::1]", "[" * 50, ":" * 1000, "x" * 60_000, "é\xff\x00"),
    *("\\" * 60_000, '"' + "\\1" * 30_000, ";" * 60_000, "=;" * 30_000, f'{COOKIE}="', "%" * 999),
    *(f"Bearer {TOKEN[:-1]}", "Bearer " + " " * 60_000, "bearer", "Basic eDp4", f"{COOKIE}=t"),
    *("application/json", "http://evil.example", "0", "-1", "9" * 5000, "chunked", "cross-site"),
)
NAMES: Final = (
    *("Host", "Host", "Cookie", "Authorization", "Origin", "Content-Type", "Content-Length"),
    *("Transfer-Encoding", "X-Kafka08-Page", "Sec-Fetch-Site", "Expect", "X", "", "a b"),
)
PATHS: Final = (
    *("/", "/api/state", "/api/messages", "/api/change", "/parts.js", "/../x", "*", "//x", ""),
    *(
        "/?token=x",
        "/?" + "a=b&" * 9000,
        "/?" + "%" * 60_000,
        "/" + "%2f" * 9000,
        "/brokers/1/kill",
    ),
    *("/brokers/" + "9" * 5000 + "/kill", "/metrics", "http://evil.example/"),
)


def drawn(rng: random.Random) -> bytes:
    method = rng.choice(("GET", "GET", "POST", "HEAD", "PUT", "OPTIONS", "é", ""))
    version = rng.choice(("HTTP/1.0", "HTTP/1.0", "HTTP/1.1", "HTTP/9.9", ""))
    lines = [f"{method} {rng.choice(PATHS)} {version}"]
    lines += (
        f"{rng.choice(NAMES)}: {rng.choice(TEXTS)}" for _ in range(rng.choice((0, 1, 4, 200)))
    )
    data = bytearray("\r\n".join([*lines, "", rng.choice(TEXTS)]).encode("latin-1"))
    if rng.random() < 0.3:
        for _ in range(rng.randrange(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def sent(port: int, data: bytes) -> bytes:
    """The response; nothing if the server closes the connection without one."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            return client.makefile("rb").read()
        except OSError:  # the server has closed it
            return b""


def console() -> Callable[..., Any]:
    live = Live(ClusterPlace("nowhere:1"), Watch("nowhere:1"), THREADS)
    return Console(live, Guard("p" * 32, TOKEN, changes=True))


APPS: Final[dict[str, tuple[Callable[[], Callable[..., Any]], str]]] = {
    "console": (console, "/parts.js"),
    "control": (lambda: ControlApp(cast("ClusterControl", None), TOKEN), "/openapi.json"),
    "metrics": (lambda: metrics_app(list), "/metrics"),
}
"""Each with a path that whoever has the token may read."""


def is_refused(response: bytes) -> bool:
    """Also by nothing, or by the error alone, as a client of HTTP 0.9 gets it."""
    if not response.startswith(b"HTTP/"):
        return not any(word in response for word in (b"<script", b"import ", b"openapi"))
    return response.split(b" ", 2)[1] in {b"%d" % code for code in range(400, 500)} | {
        b"501",
        b"505",
    }


@pytest.mark.parametrize("name", APPS)
def test_no_request_is_answered_or_costs_much(name: str) -> None:
    """Nor ends the server, which answers afterwards. In a process of its own: the allocator of one
    that has run thousands of tests takes 50 MB more for the first requests."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        process.submit(check, name).result()


def check(name: str) -> None:
    app, path = APPS[name]
    port = int(serve_http(app(), "127.0.0.1", 0, "--listen").rpartition(":")[2])
    rng, sizes, threads = random.Random(name), [], threading.active_count()
    for number in range(REQUESTS):
        data = drawn(rng)
        began = time.process_time()
        response = sent(port, data)
        took = time.process_time() - began
        assert took < REQUEST_S or took / slowdown() < REQUEST_S, data[:500]
        assert name == "metrics" or is_refused(response), (data[:500], response[:500])
        if number % LOOK_EACH == LOOK_EACH - 1:
            gc.collect()
            sizes.append(resident_bytes())
    assert lasting_growth(sizes) < GROWTH_BYTES_MAX, sizes
    until(lambda: threading.active_count() <= threads, "the end of the threads")
    sound = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    assert b" 200 " in sent(port, sound.encode()).partition(b"\r\n")[0]
