"""SASL for clients: PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628), and the login of
a Session with them.

A mechanism is a generator: it yields a token for the broker and gets the broker's. No secret is in
an error. Source: org.apache.kafka.common.security 2.8.2.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Generator
from typing import Any, Final

from kafka08.errors import (
    NO_ERROR,
    AuthenticationFailed,
    IllegalSaslState,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from kafka08.network.session import Exchange, Session
from kafka08.protocol.frame import SIZE
from kafka08.protocol.sasl_authenticate import SaslAuthenticateRequest
from kafka08.protocol.sasl_handshake import SaslHandshakeRequest

Tokens = Generator[bytes, bytes, None]
Mechanism = Callable[[], Tokens]

NONCE_BYTES: Final = 24
BEARER: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""A token by RFC 6750."""
ITERATIONS: Final = range(4096, (1 << 20) + 1)
"""A server chooses the work of its clients, and with too little of it the password can be guessed
from what they send."""


def plain(user: str, password: str) -> Tokens:
    yield f"\0{user}\0{password}".encode()


def scram(algorithm: str, user: str, password: str, nonce: str = "") -> Tokens:
    """`algorithm` as hashlib names it; `nonce` for tests. The broker proves that it knows the
    password, too."""
    nonce = nonce or base64.b64encode(os.urandom(NONCE_BYTES)).decode()
    name = user.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={name},r={nonce}"
    first = (yield f"n,,{bare}".encode()).decode("utf-8", "replace")
    fields = _fields(first)
    whole = fields.get("r", "")
    if not whole.startswith(nonce) or whole == nonce:
        raise AuthenticationFailed("the broker's response is to another SCRAM exchange")
    salt, count = _decoded(fields.get("s", "")), fields.get("i", "")
    if not (count.isascii() and count.isdigit() and len(count) < 9 and int(count) in ITERATIONS):
        limits = f"{ITERATIONS.start} to {ITERATIONS.stop - 1}"
        raise AuthenticationFailed(f"SCRAM with {count[:20]!r} iterations, not {limits}")

    def mac(key: bytes, text: str) -> bytes:
        return hmac.digest(key, text.encode(), algorithm)

    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, int(count))
    key = mac(salted, "Client Key")
    without_proof = f"c=biws,r={whole}"
    exchange = f"{bare},{first},{without_proof}"
    signature = mac(hashlib.new(algorithm, key).digest(), exchange)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    last = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    shown = _decoded(_fields(last.decode("utf-8", "replace")).get("v", ""))
    if not hmac.compare_digest(shown, mac(mac(salted, "Server Key"), exchange)):
        raise AuthenticationFailed("the broker does not know the password: it may be another one")


def oauthbearer(source: Callable[[], str]) -> Tokens:
    """`source` gives the token. A broker says why it refuses one only when it is asked again."""
    token = source()
    if not isinstance(token, str) or not BEARER.fullmatch(token):
        raise AuthenticationFailed("what should be a token has other characters, or is no text")
    refusal = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if refusal:
        yield b"\x01"
        raise AuthenticationFailed(f"the broker refuses the token: {bytes(refusal[:300])!r}")


PASSWORD_MECHANISMS: Final[dict[str, Callable[[str, str], Tokens]]] = {
    "PLAIN": plain,
    "SCRAM-SHA-256": lambda user, password: scram("sha256", user, password),
    "SCRAM-SHA-512": lambda user, password: scram("sha512", user, password),
}


def login(name: str, user: str, password: str) -> Callable[[Session], Exchange]:
    """The login of each session by a mechanism with a password."""
    mechanism = PASSWORD_MECHANISMS[name]
    hint = "user name and password of sasl.jaas.config"
    return lambda session: _log_in(session, name, mechanism(user, password), hint)


def login_by_token(source: Callable[[], str]) -> Callable[[Session], Exchange]:
    """The login of each session by OAUTHBEARER, with a token of now."""
    hint = "the token of OAUTHBEARER"
    return lambda session: _log_in(session, "OAUTHBEARER", oauthbearer(source), hint)


def _log_in(session: Session, name: str, tokens: Tokens, hint: str) -> Exchange:
    try:
        version = session.versions.highest(SaslHandshakeRequest, 0, 1)
    except UnsupportedVersion:
        raise AuthenticationFailed("it is older than Kafka 0.10, and has no SASL for it") from None
    payload = yield session.request(SaslHandshakeRequest(name, version=version))
    response: Any = session.response(payload)[1]
    if response.error_code == IllegalSaslState.code:
        raise AuthenticationFailed(
            "its listener takes no login: it is PLAINTEXT or SSL (security.protocol)"
        )
    if response.error_code == UnsupportedSaslMechanism.code:
        enabled = ", ".join(response.mechanisms) or "none"
        raise AuthenticationFailed(f"it does not have sasl.mechanism {name}, but {enabled}")
    if response.error_code != NO_ERROR:
        raise AuthenticationFailed(f"error {response.error_code} of SaslHandshake")
    if version:
        yield from _exchange(session, tokens, hint)
    else:
        yield from _exchange_bare(session, tokens)


def _exchange(session: Session, tokens: Tokens, hint: str) -> Exchange:
    """The tokens in requests."""
    version = session.versions.highest(SaslAuthenticateRequest, 0, 1)
    token = next(tokens)
    while True:
        payload = yield session.request(SaslAuthenticateRequest(token, version=version))
        response: Any = session.response(payload)[1]
        if response.error_code != NO_ERROR:
            text = response.error_message or f"error {response.error_code}"
            raise AuthenticationFailed(f"{text} ({hint})")
        try:
            token = tokens.send(bytes(response.token))
        except StopIteration:
            session.login_ms = max(0, response.session_lifetime_ms)
            return


def _exchange_bare(session: Session, tokens: Tokens) -> Exchange:
    """The tokens as frames of their own, as before 1.0. A broker that refuses one closes the
    connection without a word."""
    session.least = 0  # the last token of PLAIN
    token = next(tokens)
    while True:
        answer = yield SIZE.pack(len(token)) + token
        try:
            token = tokens.send(bytes(answer))
        except StopIteration:
            return


def _fields(message: str) -> dict[str, str]:
    """The fields of a SCRAM message. AuthenticationFailed if it is an error."""
    fields = dict(part.split("=", 1) for part in message.split(",") if "=" in part)
    if "e" in fields:
        raise AuthenticationFailed(f"the broker refuses it: {fields['e'][:100]!r}")
    return fields


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationFailed("a malformed SCRAM message of the broker") from None
