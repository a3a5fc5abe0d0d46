"""SecuredPort: a port with TLS, a login, or both, in front of a broker of a test.

Certificates and keys are in tests/data/tls: those of a broker and of a client, for localhost and
127.0.0.1, and of their authority, whose key is gone.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka08.protocol import api_versions, codec, sasl_authenticate, sasl_handshake
from kafka08.protocol.api_versions import ApiVersionRange, ApiVersionsResponse
from kafka08.protocol.frame import SIZE
from kafka08.protocol.sasl_authenticate import SaslAuthenticateResponse
from kafka08.protocol.sasl_handshake import SaslHandshakeResponse

HEADER = struct.Struct(">hhi")
DATA = Path(__file__).parents[1] / "data" / "tls"
CA, BROKER, CLIENT = ((DATA / f"{name}.pem").read_text() for name in ("ca", "broker", "client"))
BROKER_KEY, CLIENT_KEY, ENCRYPTED_KEY = (
    (DATA / f"{name}.key").read_text() for name in ("broker", "client", "client.encrypted")
)
PAIR = b"\0alice\0alice-secret"
"""The only login, as PLAIN sends it."""
LOGIN_KEYS = {sasl_handshake.API.key, sasl_authenticate.API.key}
TLS_HANDSHAKE = b"\x16"
ALERT_OF_JVM = bytes.fromhex("15030300020250")
"""The response of a JVM to what is no TLS."""


def server_context(*, wants_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "broker.pem", DATA / "broker.key")
    context.load_verify_locations(DATA / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED if wants_certificate else ssl.CERT_NONE
    return context


class SecuredPort:
    """Passes what comes after TLS and the login on to `target`.

    tls         the server's side; None: without TLS
    mechanisms  of the login; None: without one
    is_bare     the tokens are frames of their own, as before 1.0
    login_ms    how long a login counts; more of them are taken between two requests
    logins      how many there were
    """

    def __init__(
        self,
        target: tuple[str, int],
        *,
        tls: ssl.SSLContext | None = None,
        mechanisms: list[str] | None = None,
        is_bare: bool = False,
        login_ms: int = 0,
    ) -> None:
        self._target = target
        self._tls = tls
        self._mechanisms = mechanisms
        self._is_bare = is_bare
        self._login_ms = login_ms
        self.logins = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> SecuredPort:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError), link:
            secured = link if self._tls is None else self._secured(link, self._tls)
            with secured, socket.create_connection(self._target) as target:
                if self._mechanisms is None or self._log_in(secured):
                    back = threading.Thread(target=pipe, args=(target, secured), daemon=True)
                    back.start()
                    if self._login_ms:
                        self._pass_requests(secured, target)
                    else:
                        pipe(secured, target)
                    back.join()

    def _pass_requests(self, link: socket.socket, target: socket.socket) -> None:
        for payload in frames(link):
            if HEADER.unpack_from(payload)[0] in LOGIN_KEYS:
                self._answer(link, payload)
            else:
                target.sendall(SIZE.pack(len(payload)) + payload)
        target.shutdown(socket.SHUT_WR)

    def _secured(self, link: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
        if link.recv(1, socket.MSG_PEEK) != TLS_HANDSHAKE:
            link.sendall(ALERT_OF_JVM)
            link.shutdown(socket.SHUT_WR)
        secured = tls.wrap_socket(link, server_side=True, do_handshake_on_connect=False)
        try:
            secured.do_handshake()
        except OSError:
            # A close with unread bytes is a reset, which may overtake the alert.
            with secured, contextlib.suppress(OSError):
                while socket.socket.recv(secured, 1 << 16):
                    pass
            raise
        return secured

    def _log_in(self, link: socket.socket) -> bool:
        """Whether the client may go on."""
        for payload in frames(link):
            key = HEADER.unpack_from(payload)[0]
            if key not in {api_versions.API.key, *LOGIN_KEYS}:
                return False  # as brokers do
            is_known = self._answer(link, payload)
            if key == sasl_authenticate.API.key:
                return is_known
            if self._is_bare and key == sasl_handshake.API.key:
                is_known = next(frames(link)) == PAIR
                if is_known:
                    link.sendall(SIZE.pack(0))
                return is_known
        return False

    def _answer(self, link: socket.socket, payload: bytes) -> bool:
        """Answer a request of a login. Returns whether the name or the pair in it is known."""
        assert self._mechanisms is not None
        key, version, number = HEADER.unpack_from(payload)
        response: Any
        is_known = True
        if key == api_versions.API.key:
            lasts = {3: 0, 17: 0, 18: 0} if self._is_bare else {3: 0, 17: 1, 18: 0, 36: 1}
            ranges = [ApiVersionRange(key, 0, last) for key, last in lasts.items()]
            response = ApiVersionsResponse(0, ranges)
        elif key == sasl_handshake.API.key:
            is_known = payload.endswith(tuple(name.encode() for name in self._mechanisms))
            response = SaslHandshakeResponse(0 if is_known else 33, self._mechanisms)
        else:
            is_known = payload.endswith(PAIR)
            self.logins += is_known
            text = None if is_known else "Authentication failed: Invalid username or password"
            response = SaslAuthenticateResponse(0 if is_known else 58, text, b"", self._login_ms)
        link.sendall(codec.encode_response(response, number, version))
        return is_known


def frames(link: socket.socket) -> Iterator[bytes]:
    while head := received(link, SIZE.size):
        yield received(link, SIZE.unpack(head)[0])


def received(link: socket.socket, size: int) -> bytes:
    """So many bytes, or none if the peer has closed it before."""
    data = b""
    while len(data) < size:
        piece = link.recv(size - len(data))
        if not piece:
            return b""
        data += piece
    return data


def pipe(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
