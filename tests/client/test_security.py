"""The keys for TLS and SASL: which are needed, what is wrong with them, and that none is shown."""

from __future__ import annotations

import logging
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka08.client.key_stores import BEGIN, JKS, STORE_BYTES_MAX, read_store
from kafka08.client.security import OF_LIBRDKAFKA
from kafka08.consumer import KafkaConsumerConfig
from kafka08.errors import ConfigError
from kafka08.network.session import PLAINTEXT, Security, Session
from kafka08.producer import KafkaProducerConfig
from kafka08.protocol import codec
from kafka08.protocol.api_versions import ApiVersionRange
from kafka08.protocol.frame import SIZE
from kafka08.protocol.sasl_handshake import SaslHandshakeResponse
from kafka08.protocol.version_ranges import VersionRanges
from tests.network.secured import BROKER_KEY, CA, CLIENT, CLIENT_KEY, DATA, ENCRYPTED_KEY

configs = pytest.mark.parametrize("config", [KafkaProducerConfig, KafkaConsumerConfig])
JAAS = (
    "org.apache.kafka.common.security.{}LoginModule required "
    'username="alice" password="alice-secret";'
)
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": JAAS.format("scram.Scram"),
}
OAUTH = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": JAAS.format("oauthbearer.OAuthBearer").replace("user", ""),
}
SSL = {"security.protocol": "SSL", "ssl.truststore.certificates": CA}
IDENTITY = {"ssl.keystore.key": CLIENT_KEY, "ssl.keystore.certificate.chain": CLIENT}


def made(config: Any, given: dict[str, str]) -> Any:
    return config({"bootstrap.servers": "h:1", **given})


@configs
def test_the_protocol_decides_what_connections_need(config: Any) -> None:
    """With PLAINTEXT no other key has an effect, as in Kafka."""
    ignored = made(config, {**SASL, **SSL, "security.protocol": "PLAINTEXT"}).security
    assert ignored is PLAINTEXT
    login = made(config, SASL).security
    assert login.tls is None
    assert login.log_in is not None
    both = made(config, {**SSL, **SASL, "security.protocol": "SASL_SSL"}).security
    assert both.tls is not None
    assert both.log_in is not None


def test_names_are_checked_unless_that_is_turned_off() -> None:
    """By Kafka's key for it. The certificate itself is checked in any case."""
    for value, checks in (("https", True), ("", False)):
        given = {**SSL, "ssl.endpoint.identification.algorithm": value}
        context = made(KafkaProducerConfig, given).security.tls()
        assert context.check_hostname is checks
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_keys_and_certificates_come_from_files_or_values(tmp_path: Path) -> None:
    """A file has the key and the chain in any order; a key may be encrypted."""
    (tmp_path / "both.pem").write_text(CLIENT_KEY + CLIENT)
    files = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(DATA / "ca.pem"),
        "ssl.truststore.type": "PEM",
    }
    for identity in (
        {"ssl.keystore.location": str(tmp_path / "both.pem")},
        IDENTITY,
        {**IDENTITY, "ssl.keystore.key": ENCRYPTED_KEY, "ssl.key.password": "key-secret"},
    ):
        made(KafkaConsumerConfig, {**files, **identity})


def test_comments_between_certificates_may_be_in_any_language(tmp_path: Path) -> None:
    """As in the bundles of certifi and of Fedora, which name each authority."""
    comment = "# Főtanúsítvány\n"
    (tmp_path / "bundle.pem").write_text(comment + CA + comment, encoding="utf-8")
    (tmp_path / "own.pem").write_text(comment + CLIENT_KEY + CLIENT, encoding="utf-8")
    files = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(tmp_path / "bundle.pem"),
        "ssl.keystore.location": str(tmp_path / "own.pem"),
    }
    for given in (files, {**SSL, "ssl.truststore.certificates": comment + CA}):
        context = made(KafkaConsumerConfig, given).security.tls()
        assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({**SASL, "sasl.mechanism": "GSSAPI"}, r"GSSAPI \(Kerberos\) is not here.* one of PLAIN"),
        ({**SASL, "sasl.mechanism": "SCRAM-SHA-1"}, "'SCRAM-SHA-1' is not one of PLAIN"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "not the login module of OAUTHBEARER"),
        ({**OAUTH, "sasl.jaas.config": ""}, "OAUTHBEARER needs sasl.oauthbearer.token.endpoint"),
        (
            {**OAUTH, "sasl.oauthbearer.token.endpoint.url": "https://h/t"},
            "client.credentials.client.id: it is missing, and sasl.jaas.config has no clientId",
        ),
        (
            {
                **OAUTH,
                "sasl.oauthbearer.token.endpoint.url": "h/t",
                "sasl.oauthbearer.client.credentials.client.id": "me",
                "sasl.oauthbearer.client.credentials.client.secret": "alice-secret",
            },
            "'h/t' does not begin with https://",
        ),
        ({**OAUTH, "sasl.login.callback.handler.class": "no.Such"}, "the form module:callable"),
        ({**SASL, "sasl.mechanism": ""}, "sasl.mechanism: must be one of PLAIN"),
        ({**SASL, "sasl.jaas.config": ""}, "must have the user name and the password"),
        ({**SASL, "sasl.jaas.config": JAAS.format("plain.Plain")}, "not the login module of SCRAM"),
        (
            {**SASL, "sasl.jaas.config": JAAS.format("scram.Scram").replace("password", "p")},
            "no pa",
        ),
        ({**SSL, "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "TLSv1.2 and TLSv1.3"),
        ({**SSL, "ssl.cipher.suites": "TLS_RSA_WITH_NULL_MD5"}, "ssl.cipher.suites"),
        ({**SSL, "ssl.truststore.certificates": "alice-secret"}, "no certificate in PEM"),
        ({**SSL, "ssl.truststore.location": "/nowhere"}, "ssl.truststore.location: .*nowhere"),
        ({**SSL, "ssl.keystore.key": CLIENT_KEY}, "go together"),
        ({**SSL, **IDENTITY, "ssl.keystore.key": BROKER_KEY}, "the key of that certificate"),
        ({**SSL, **IDENTITY, "ssl.keystore.key": ENCRYPTED_KEY}, "ssl.key.password may be missing"),
        (
            {
                **SSL,
                **IDENTITY,
                "ssl.keystore.key": ENCRYPTED_KEY,
                "ssl.key.password": "alice-secret",
            },
            "ssl.key.password may be wrong",
        ),
        *(({**SSL, name: "x"}, f"{name} is a key of librdkafka") for name in OF_LIBRDKAFKA),
    ],
)
def test_each_mistake_is_named(given: dict[str, str], what: str) -> None:
    """The key and what to do, and no secret."""
    with pytest.raises(ConfigError, match=what) as refused:
        made(KafkaProducerConfig, given)
    text = str(refused.value)
    assert "alice-secret" not in text
    assert CLIENT_KEY.splitlines()[1] not in text


def pkcs12(tmp_path: Path, name: str, *arguments: str) -> dict[str, str]:
    """A store made by OpenSSL, as values of ssl.*.location and ssl.*.password."""
    store = tmp_path / f"{name}.p12"
    done = subprocess.run(
        [
            "openssl",
            "pkcs12",
            "-export",
            *arguments,
            "-passout",
            "pass:store-secret",
            "-out",
            store,
        ],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"needs openssl: {done.stderr.decode()}")
    return {f"ssl.{name}.location": str(store), f"ssl.{name}.password": "store-secret"}


def test_pkcs12_stores_are_read(tmp_path: Path) -> None:
    """A key with its certificate, and authorities alone. The key is written nowhere in clear."""
    pytest.importorskip("cryptography")
    key = "-in", str(DATA / "client.pem"), "-inkey", str(DATA / "client.key")
    stores = {
        **pkcs12(tmp_path, "keystore", *key),
        **pkcs12(tmp_path, "truststore", "-nokeys", "-in", str(DATA / "ca.pem")),
    }
    config = made(KafkaConsumerConfig, {"security.protocol": "SSL", **stores})
    assert len(config.security.tls().get_ca_certs()) == 1
    found = read_store(stores["ssl.keystore.location"], "ssl.keystore.location", "store-secret")
    assert "BEGIN ENCRYPTED PRIVATE KEY" in found.text
    for password, state in (("guess", "wrong"), ("", "missing")):
        with pytest.raises(ConfigError, match=rf"ssl\.keystore\.password may be {state}"):
            made(KafkaConsumerConfig, {**SSL, **stores, "ssl.keystore.password": password})


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            JKS[0] + bytes(50),
            "keytool -importkeystore -srckeystore .*store -destkeystore store.p12",
        ),
        (JKS[1] + bytes(50), "keytool -importkeystore"),
        (b"\0" * 50, "neither PEM nor a PKCS12 store"),
        (b"", "neither PEM nor a PKCS12 store"),
        (BEGIN + bytes(STORE_BYTES_MAX), "no such store"),
    ],
    ids=["JKS", "JCEKS", "zeros", "empty", "large"],
)
def test_other_stores_are_refused(content: bytes, what: str, tmp_path: Path) -> None:
    """With the command that converts them, if there is one."""
    store = tmp_path / "store"
    store.write_bytes(content)
    with pytest.raises(ConfigError, match=what):
        made(KafkaProducerConfig, {**SSL, "ssl.truststore.location": str(store)})


def test_pkcs12_without_its_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the command that makes PEM of the store, for which no library is needed."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    store = tmp_path / "store.p12"
    store.write_bytes(b"0\x82" + bytes(50))
    with pytest.raises(ConfigError, match=r"kafka08\[tls\].*openssl pkcs12 -in .*store.p12"):
        made(KafkaProducerConfig, {**SSL, "ssl.truststore.location": str(store)})


def token() -> str:
    return "of.this.function"


def test_a_function_gives_the_tokens() -> None:
    """One of the user's, named as other plugins are."""
    given = {**OAUTH, "sasl.login.callback.handler.class": f"{__name__}:token"}
    login: Any = made(KafkaConsumerConfig, given).security.log_in
    session = Session("me", asks_versions=True, security=Security("", log_in=login))
    session.versions = VersionRanges([ApiVersionRange(17, 0, 1), ApiVersionRange(36, 0, 0)])
    exchange = login(session)
    next(exchange)
    enabled = SaslHandshakeResponse(0, ["OAUTHBEARER"])
    asked = exchange.send(codec.encode_response(enabled, 0, 1)[SIZE.size :])
    assert b"auth=Bearer of.this.function\x01" in asked


def test_renewed_certificates_are_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By connections that are opened after their files have changed. Of a file that is half written
    the former content is used, with one warning."""
    trusted = tmp_path / "ca.pem"
    trusted.write_text(CA)
    given = {"security.protocol": "SSL", "ssl.truststore.location": str(trusted)}
    tls = made(KafkaConsumerConfig, given).security.tls
    before = tls()
    assert tls() is before
    trusted.write_text(CA[: len(CA) // 2])
    assert tls() is before
    assert tls() is before
    trusted.unlink()
    assert tls() is before
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    trusted.write_text(CA + CLIENT)
    renewed = tls()
    assert renewed is not before
    assert tls() is renewed


@configs
def test_no_secret_is_shown(config: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Neither of the configuration, nor of what is made of it, nor in a log."""
    secrets = {
        "sasl.jaas.config": JAAS.format("scram.Scram") + " ",
        "ssl.key.password": "key-secret ",
        "ssl.keystore.password": "store-secret",
        "ssl.truststore.password": "store-secret",
    }
    given = {**SSL, **SASL, **IDENTITY, **secrets, "ssl.keystore.key": ENCRYPTED_KEY}
    given["security.protocol"] = "SASL_SSL"
    made_of_it = made(config, given)
    with caplog.at_level(logging.DEBUG):
        made_of_it.log_notes()
    shown = f"{made_of_it!r} {made_of_it.security!r} {caplog.text}"
    assert "[hidden]" in shown
    for secret in ("alice-secret", "key-secret", "store-secret", ENCRYPTED_KEY.splitlines()[1]):
        assert secret not in shown
