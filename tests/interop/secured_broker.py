"""A JVM broker with a listener for each security protocol, and clients of ours for them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kafka08.embedded.ports import free_ports
from tests.interop.jvm import (
    POM_0_10_2,
    JvmBroker,
    JvmMissing,
    java,
    knows_brokers,
    new_zookeeper,
    run_tool,
)
from tests.network.secured import DATA
from tests.waiting import until

USER, PASSWORD, STORE_PASSWORD = "alice", "alice-secret", "store-secret"
LISTENERS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "MTLS")
"""MTLS wants a client certificate."""
MODULE: Final = "org.apache.kafka.common.security.{}LoginModule"
PLAIN, SCRAM = MODULE.format("plain.Plain"), MODULE.format("scram.Scram")
OF_SERVER: Final = {
    "plain": f'{PLAIN} required user_{USER}="{PASSWORD}";',
    "scram-sha-256": f"{SCRAM} required;",
    "scram-sha-512": f"{SCRAM} required;",
}
"""Mechanism → its JAAS text."""
SERVER: Final = "broker"
LOGIN_MS: Final = 1500
"""How long a login by SCRAM-SHA-512 counts at the listener SASL_PLAINTEXT, from 2.2 on."""


def unsecured(user: str) -> str:
    """The JAAS text for tokens that nobody has signed."""
    module = MODULE.format("oauthbearer.OAuthBearer")
    return f'{module} required unsecuredLoginStringClaim_sub="{user}";'


class Secured:
    """The ports of a broker, for clients.

    address                listener → its host:port
    truststore, keystore   PKCS12 stores of a client, written by keytool
    """

    def __init__(self, address: Mapping[str, str], stores: Mapping[str, Path]) -> None:
        self.address = address
        self.truststore, self.keystore = stores["trust"], stores["client"]

    def keys(self, listener: str, **more: str) -> dict[str, str]:
        """Those of a client of ours; `more` has "_" in place of dots."""
        protocol = "SSL" if listener == "MTLS" else listener
        found = {"bootstrap.servers": self.address[listener], "security.protocol": protocol}
        if protocol.endswith("SSL"):
            found["ssl.truststore.location"] = str(DATA / "ca.pem")
        return {**found, **{name.replace("_", "."): value for name, value in more.items()}}


def listener_keys(
    address: Mapping[str, str], stores: Mapping[str, Path], *, has_jaas: bool = True
) -> dict[str, str]:
    """The broker's keys for these listeners. `has_jaas`: with JAAS texts, from 1.0 on."""
    protocols = {"MTLS": "SSL", "PROXIED": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    keys = {
        "listeners": ",".join(f"{name}://{at}" for name, at in address.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocols.get(name, name)}" for name in address
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.mtls.ssl.client.auth": "required",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(stores["broker"]),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(stores["trust"]),
        "ssl.truststore.password": STORE_PASSWORD,
        "sasl.enabled.mechanisms": ",".join(name.upper() for name in OF_SERVER),
        "group.initial.rebalance.delay.ms": "0",
    }
    if has_jaas:
        keys["sasl.enabled.mechanisms"] += ",OAUTHBEARER"
        for listener in ("sasl_plaintext", "sasl_ssl"):
            for name, text in {**OF_SERVER, "oauthbearer": unsecured(SERVER)}.items():
                keys[f"listener.name.{listener}.{name}.sasl.jaas.config"] = text
        scram = "listener.name.sasl_plaintext.scram-sha-512"
        keys[f"{scram}.connections.max.reauth.ms"] = str(LOGIN_MS)
    return keys


class SecuredBroker(Secured):
    """One with ZooKeeper, of a release before 4.0."""

    def __init__(
        self, directory: Path, zookeeper: str, pom: Path, flags: Sequence[str] = ()
    ) -> None:
        stores = make_stores(directory)
        ports = free_ports(len(LISTENERS))
        address = {name: f"127.0.0.1:{port}" for name, port in zip(LISTENERS, ports, strict=True)}
        super().__init__(address, stores)
        has_jaas = pom != POM_0_10_2
        flags = [*flags, "-Dzookeeper.sasl.client=false"]
        if not has_jaas:
            jaas = directory / "jaas.conf"
            modules = dict.fromkeys(OF_SERVER.values())
            jaas.write_text("KafkaServer {\n" + "\n".join(modules) + "\n};\n")
            flags.append(f"-Djava.security.auth.login.config={jaas}")
        keys = {"port": str(ports[0]), **listener_keys(address, stores, has_jaas=has_jaas)}
        self.broker = JvmBroker(directory, 1, zookeeper, keys, flags, pom=pom)


@contextmanager
def secured_broker(
    directory: Path, pom: Path, flags: Sequence[str] = ()
) -> Iterator[SecuredBroker]:
    """Started, with the user in its ZooKeeper."""
    with new_zookeeper(directory) as zookeeper:
        where = zookeeper.connect_string
        scram = ",".join(f"SCRAM-SHA-{bits}=[password={PASSWORD}]" for bits in (256, 512))
        options = ("--entity-type", "users", "--entity-name", USER, "--alter", "--add-config")
        tool = "kafka.admin.ConfigCommand"
        done = run_tool(tool, "--zookeeper", where, *options, scram, pom=pom)
        assert done.rc == 0, done
        secured = SecuredBroker(directory, where, pom, flags)
        with secured.broker:
            until(lambda: knows_brokers(secured.broker), "the broker to know itself")
            yield secured


def make_stores(directory: Path) -> Mapping[str, Path]:
    """PKCS12 stores of Java: `broker` and `client` with their keys, `trust` with the authority."""
    stores = {name: directory / f"{name}.p12" for name in ("broker", "client", "trust")}
    for name in ("broker", "client"):
        openssl = directory / f"{name}.openssl.p12"
        key = "-inkey", str(DATA / f"{name}.key"), "-in", str(DATA / f"{name}.pem")
        passwords = "-passout", f"pass:{STORE_PASSWORD}"
        run("openssl", "pkcs12", "-export", "-name", name, *key, *passwords, "-out", str(openssl))
        keytool(
            *("-importkeystore", "-srckeystore", str(openssl), "-srcstorepass", STORE_PASSWORD),
            *("-destkeystore", str(stores[name]), "-deststoretype", "PKCS12"),
            *("-deststorepass", STORE_PASSWORD),
        )
    keytool(
        *("-importcert", "-noprompt", "-alias", "ca", "-file", str(DATA / "ca.pem")),
        *("-keystore", str(stores["trust"]), "-storetype", "PKCS12"),
        *("-storepass", STORE_PASSWORD),
    )
    return stores


def keytool(*arguments: str) -> None:
    run(str(Path(java()).with_name("keytool")), *arguments)


def run(*command: str) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise JvmMissing(str(error)) from error
