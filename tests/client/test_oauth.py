"""Tokens of an OAuth server, which is a real one over HTTP and HTTPS, and unsecured ones."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from kafka08.client.oauth import RENEWED_AT, ClientCredentials, unsecured_tokens
from kafka08.errors import AuthenticationFailed, ConfigError, ConnectionFailed, KafkaError
from tests.mock_clock import MockClock
from tests.network.secured import DATA, server_context

SECRET = "client-secret"
RIGHT = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()


class TokenServer(HTTPServer):
    """Issues t1, t2, ... for the right pair; `response` takes the place of that, if it is set.

    forms   of the requests, in order
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.forms: list[dict[str, list[str]]] = []
        self.response: tuple[int, bytes, dict[str, str]] | None = None


class _Handler(BaseHTTPRequestHandler):
    server: TokenServer

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.server.forms.append(parse_qs(self.rfile.read(size).decode()))
        if self.server.response is not None:
            status, body, headers = self.server.response
        elif self.headers["Authorization"] == RIGHT:
            issued = {"access_token": f"t{len(self.server.forms)}", "expires_in": 100}
            status, body, headers = 200, json.dumps(issued).encode(), {}
        else:
            status, body, headers = 401, b'{"error":"invalid_client"}', {}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.server.forms.append({})
        self.send_response(500)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def running(*, tls: bool = False) -> Iterator[tuple[TokenServer, str]]:
    with TokenServer() as server:
        if tls:
            server.socket = server_context().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            scheme = "https" if tls else "http"
            yield server, f"{scheme}://127.0.0.1:{server.server_port}/token"
        finally:
            server.shutdown()
            thread.join()


def test_a_token_is_used_for_the_larger_part_of_its_life() -> None:
    """Then the next login gets another one. The request is that of RFC 6749."""
    clock = MockClock()
    with running() as (server, url):
        tokens = ClientCredentials(url, "me", SECRET, "kafka read", clock=clock)
        assert [tokens(), tokens()] == ["t1", "t1"]
        clock.sleep(100 * RENEWED_AT)
        assert tokens() == "t2"
    assert server.forms == [{"grant_type": ["client_credentials"], "scope": ["kafka read"]}] * 2


def test_a_server_with_tls_must_be_trusted() -> None:
    """By the system, or by the store of sasl.jaas.config."""
    with running(tls=True) as (server, url):
        trusting = ClientCredentials(url, "me", SECRET, truststore=str(DATA / "ca.pem"))
        assert trusting() == "t1"
        with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
            ClientCredentials(url, "me", SECRET)()
    assert len(server.forms) == 1


@pytest.mark.parametrize(
    ("response", "kind", "what"),
    [
        (None, AuthenticationFailed, "401 .*invalid_client.*clientId, clientSecret and scope"),
        ((400, b"", {}), AuthenticationFailed, "responded with 400"),
        ((503, b"later", {}), ConnectionFailed, "responded with 503 .*later"),
        ((302, b"", {"Location": "/other"}), ConnectionFailed, "responded with 302"),
        ((200, b"<html>", {}), ConnectionFailed, "other than a JSON object"),
        ((200, b"[" * 100_000, {}), ConnectionFailed, "other than a JSON object"),
        ((200, b"{}", {}), ConnectionFailed, "without an access_token"),
        ((200, b'{"access_token": 7}', {}), ConnectionFailed, "without an access_token"),
    ],
)
def test_a_refusal_is_final_and_a_failure_passes(
    response: Any, kind: type[KafkaError], what: str
) -> None:
    """The error shows no secret, and a redirection gets none."""
    with running() as (server, url):
        server.response = response
        with pytest.raises(kind, match=what) as failed:
            ClientCredentials(url, "me", "wrong-" + SECRET)()
    assert SECRET not in f"{failed.value}"
    assert len(server.forms) == 1


def test_a_server_that_is_not_there_is_named() -> None:
    """With its address: it is none of the brokers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(
        ConnectionFailed, match=f"no token from http://127.0.0.1:{port}/t: .*refused"
    ):
        ClientCredentials(f"http://127.0.0.1:{port}/t", "me", SECRET)()


@pytest.mark.parametrize("life", ["soon", -1, float("nan"), float("inf"), None])
def test_a_token_without_a_known_life_is_used_once(life: object) -> None:
    """It may be over at any time."""
    with running() as (server, url):
        server.response = 200, json.dumps({"access_token": "t", "expires_in": life}).encode(), {}
        tokens = ClientCredentials(url, "me", SECRET)
        assert tokens() == tokens() == "t"
    assert len(server.forms) == 2


def test_unsecured_tokens_are_as_java_makes_them() -> None:
    """A header without an algorithm, the claims with the time, and no signature."""
    token = unsecured_tokens({"unsecuredLoginStringClaim_sub": "alice", "other": "x"})()
    parts = [base64.urlsafe_b64decode(part + "===") for part in token.split(".")]
    claims = json.loads(parts[1])
    assert (json.loads(parts[0]), parts[2]) == ({"alg": "none"}, b"")
    assert claims["sub"] == "alice"
    assert claims["exp"] - claims["iat"] == 3600
    assert claims.keys() == {"sub", "iat", "exp"}
    with pytest.raises(ConfigError, match="unsecuredLoginStringClaim_sub"):
        unsecured_tokens({})


def test_no_secret_is_in_its_repr() -> None:
    """A debugger, or a log, may show it."""
    shown = repr(ClientCredentials("https://h/t", "me", SECRET))
    assert "me" in shown
    assert SECRET not in shown
