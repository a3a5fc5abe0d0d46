"""SASL mechanisms against their RFCs, and sasl.jaas.config as Java reads it."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka08.client.jaas import parse_jaas
from kafka08.client.sasl import ITERATIONS, oauthbearer, plain, scram
from kafka08.errors import AuthenticationFailed, ConfigError

NONCE = "rOprNGfwEbeRWgbNEkqO"
WHOLE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"r={WHOLE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
LAST = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
"""The example of RFC 7677, with the password pencil."""


def test_scram_is_that_of_the_rfc() -> None:
    """Each message of the example, and its end when the server has proved itself."""
    tokens = scram("sha256", "user", "pencil", NONCE)
    assert next(tokens) == f"n,,n=user,r={NONCE}".encode()
    proof = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert tokens.send(FIRST.encode()) == f"c=biws,r={WHOLE},p=".encode() + proof
    with pytest.raises(StopIteration):
        tokens.send(LAST.encode())


@pytest.mark.parametrize(
    ("first", "last", "what"),
    [
        (FIRST.replace(NONCE, "x" + NONCE), LAST, "another SCRAM exchange"),
        (FIRST.replace(WHOLE, NONCE), LAST, "another SCRAM exchange"),
        (FIRST.replace("4096", str(ITERATIONS.start - 1)), LAST, "iterations"),
        (FIRST.replace("4096", str(ITERATIONS.stop)), LAST, "iterations"),
        (FIRST.replace("4096", "4" * 5000), LAST, "iterations"),
        (FIRST.replace("s=", "s=*"), LAST, "malformed"),
        ("e=other-error", LAST, "refuses it: 'other-error'"),
        (FIRST, LAST.replace("v=6", "v=7"), "does not know the password"),
        (FIRST, "", "does not know the password"),
    ],
)
def test_a_server_that_cannot_know_the_password_is_refused(
    first: str, last: str, what: str
) -> None:
    """Each deviation is an error, which shows no secret."""
    tokens = scram("sha256", "user", "pencil", NONCE)
    next(tokens)
    with pytest.raises(AuthenticationFailed, match=what) as failed:
        deque(map(tokens.send, (first.encode(), last.encode())))
    assert "pencil" not in str(failed.value)


def test_names_are_quoted_for_the_mechanism() -> None:
    """SCRAM escapes its separators; PLAIN has no escapes."""
    assert next(scram("sha512", "b,o=b", "x", "N")) == b"n,,n=b=2Co=3Db,r=N"
    assert next(plain("b,o=b", "p\u00e4ss")) == b"\0b,o=b\0p\xc3\xa4ss"
    assert next(scram("sha512", "u", "x")) != next(scram("sha512", "u", "x"))


def test_a_token_is_sent_and_its_refusal_read() -> None:
    """A broker responds with its reason, and says the error when it is asked again."""
    tokens = oauthbearer(lambda: "a.b.c")
    assert next(tokens) == b"n,,\x01auth=Bearer a.b.c\x01\x01"
    with pytest.raises(StopIteration):
        tokens.send(b"")
    tokens = oauthbearer(lambda: "a.b.c")
    next(tokens)
    assert tokens.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        tokens.send(b"")


@pytest.mark.parametrize("token", ["", "a b", "a\x01auth=Bearer b", b"a", None])
def test_a_token_cannot_hold_another_one(token: Any) -> None:
    """The error does not show it."""
    with pytest.raises(AuthenticationFailed, match="what should be a token") as refused:
        next(oauthbearer(lambda: token))
    assert "Bearer" not in str(refused.value)


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ('username="alice" password="alice-secret"', ("alice", "alice-secret")),
        ("username=alice\n  password='p w'", ("alice", "p w")),
        ('username=a.b-c$_9 // why\n password /* \n */ = "x"', ("a.b-c$_9", "x")),
        (r'username="b,o=b" password="\"s\'cret\\ \t\101"', ("b,o=b", "\"s'cret\\ \tA")),
        ('username="" password=";"', ("", ";")),
    ],
)
def test_jaas_is_read_as_java_reads_it(options: str, found: tuple[str, str]) -> None:
    """Quotes, escapes, comments and the case of the flag."""
    for flag in ("required", "REQUIRED", "optional"):
        module, values = parse_jaas(f"{MODULE} {flag} {options};")
        assert module == MODULE
        assert (values["username"], values["password"]) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        f'{MODULE} required username="a" password="hush"',
        f"{MODULE} required username=a password=12345hush;",
        f'{MODULE} username="a" password="hush";',
        f'{MODULE} required username="a" password "hush";',
        f'{MODULE} required username="a" password="hush\n";',
        f'{MODULE} required "username"="hush";',
        f"{MODULE} required username=;",
        f'{MODULE} required username="a" password="hush"; {MODULE} required;',
    ],
)
def test_jaas_that_java_refuses_is_refused(text: str) -> None:
    """The error says where, and shows no value."""
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config: ") as refused:
        parse_jaas(text)
    assert "hush" not in str(refused.value)
