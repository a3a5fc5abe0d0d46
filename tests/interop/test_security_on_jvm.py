"""TLS and logins of our clients at brokers of 0.10.2.2 to 4.4.0: what works, and each mistake."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kafka08.config import escape_property
from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import AuthenticationFailed, KafkaError
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition
from tests.integration.polling_cluster import read
from tests.interop.jvm import POM_0_10_2, POM_2_8, POM_3_9, JvmMissing, classpath
from tests.interop.kraft_broker import POM_4_4, KraftBroker
from tests.interop.secured_broker import (
    LOGIN_MS,
    PASSWORD,
    PLAIN,
    SCRAM,
    STORE_PASSWORD,
    USER,
    Secured,
    secured_broker,
    unsecured,
)
from tests.network.secured import CLIENT, CLIENT_KEY, DATA

RELEASES = {"0.10.2.2": POM_0_10_2, "2.8.2": POM_2_8, "3.9.1": POM_3_9, "4.4.0": POM_4_4}
SENT = [b"%d" % number for number in range(100)]
_names = count()


@pytest.fixture(scope="module", params=list(RELEASES))
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    try:
        pom, directory = RELEASES[request.param], tmp_path_factory.mktemp("jvm")
        classpath(pom)
        if pom == POM_4_4:
            with KraftBroker(directory) as broker:
                yield broker.secured
        else:
            with secured_broker(directory, pom) as running:
                yield running
    except JvmMissing as missing:
        pytest.skip(str(missing))


def login_keys(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    jaas = f'{module} required username="{USER}" password="{password}";'
    return {"sasl_mechanism": mechanism, "sasl_jaas_config": jaas}


def there_and_back(keys: dict[str, str]) -> list[bytes | None]:
    """What a group reads of what was sent."""
    topic = f"t{next(_names)}"
    with KafkaProducer(KafkaProducerConfig({**keys, "acks": "all", "retries": 20})) as producer:
        for future in [producer.send(ProducerRecord(topic, value)) for value in SENT]:
            future.result(30)
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    with KafkaConsumer(KafkaConsumerConfig({**keys, **group})) as consumer:
        consumer.subscribe([topic])
        found = [message.value for message in read(consumer, len(SENT), 30)]
        consumer.commit()
    return found


@pytest.mark.parametrize(
    ("listener", "keys"),
    [
        ("SSL", {}),
        ("SASL_PLAINTEXT", login_keys("PLAIN")),
        ("SASL_SSL", login_keys("PLAIN")),
        ("SASL_SSL", login_keys("SCRAM-SHA-256")),
        ("SASL_SSL", login_keys("SCRAM-SHA-512")),
        (
            "MTLS",
            {"ssl_keystore_key": CLIENT_KEY, "ssl_keystore_certificate_chain": CLIENT},
        ),
    ],
    ids=["SSL", "PLAIN", "SSL PLAIN", "SSL SCRAM 256", "SSL SCRAM 512", "client certificate"],
)
def test_messages_come_through(secured: Secured, listener: str, keys: dict[str, str]) -> None:
    """Those that a KafkaProducer sends, to a group."""
    assert Counter(there_and_back(secured.keys(listener, **keys))) == Counter(SENT)


def later_than_1_0(request: pytest.FixtureRequest) -> None:
    if "0.10.2.2" in request.node.name:
        pytest.skip("0.10.2 has none of it")


def test_a_token_logs_in(secured: Secured, request: pytest.FixtureRequest) -> None:
    """By OAUTHBEARER. One that is refused says why."""
    later_than_1_0(request)
    login = {"sasl_mechanism": "OAUTHBEARER", "sasl_jaas_config": unsecured(USER)}
    assert Counter(there_and_back(secured.keys("SASL_SSL", **login))) == Counter(SENT)
    login["sasl_login_callback_handler_class"] = f"{__name__}:bad_token"
    with pytest.raises(AuthenticationFailed, match=r"invalid_token.*the token of OAUTHBEARER"):
        use_once("consumer", secured.keys("SASL_SSL", **login))


def bad_token() -> str:
    return "a.b.c"


def test_clients_log_in_again(
    secured: Secured, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """While they send and read, without a lost connection: a broker closes one whose login is
    over."""
    later_than_1_0(request)
    keys = secured.keys("SASL_PLAINTEXT", **login_keys("SCRAM-SHA-512"))
    group = {"group.id": "again", "auto.offset.reset": "earliest"}
    caplog.set_level(logging.INFO)
    found = 0
    with (
        KafkaProducer(KafkaProducerConfig({**keys, "retries": 20})) as producer,
        KafkaConsumer(KafkaConsumerConfig({**keys, **group})) as consumer,
    ):
        producer.send(ProducerRecord("again", b"v")).result(30)
        consumer.subscribe(["again"])
        end = time.monotonic() + 3 * LOGIN_MS / 1000
        sent = 1
        while time.monotonic() < end or found < sent:
            if time.monotonic() < end:
                producer.send(ProducerRecord("again", b"v")).result(30)
                sent += 1
            found += len(consumer.poll(0.1))
        assert found == sent
        lost = [text for text in caplog.messages if "lost the connection" in text]
        assert not lost


def test_stores_of_keytool_are_read(secured: Secured) -> None:
    """Java's default: PKCS12, with a password for the authorities too."""
    pytest.importorskip("cryptography")
    stores = {
        "ssl_truststore_location": str(secured.truststore),
        "ssl_truststore_password": STORE_PASSWORD,
        "ssl_keystore_location": str(secured.keystore),
        "ssl_keystore_password": STORE_PASSWORD,
    }
    assert Counter(there_and_back(secured.keys("MTLS", **stores))) == Counter(SENT)


def test_the_commands_take_a_file_of_keys(
    secured: Secured, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With the keys of Kafka's tools, and others for other clients. All that works by --bootstrap
    alone."""
    keys = secured.keys("SASL_SSL", **login_keys("SCRAM-SHA-256"))
    bootstrap = keys.pop("bootstrap.servers")
    file = tmp_path / "client.properties"
    lines = {**keys, "group.id": "words-readers", "consumer.timeout.ms": "3000"}
    file.write_text("".join(f"{name}={escape_property(v)}\n" for name, v in lines.items()))

    def kafka08(*words: str, stdin: str = "") -> str:
        option = "--config" if words[0] in {"produce", "consume"} else "--command-config"
        line = [sys.executable, "-m", "kafka08.cli", *words, "--bootstrap", bootstrap]
        done = subprocess.run(
            [*line, option, str(file)], input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stderr
        return done.stdout

    topic = f"words{next(_names)}"
    kafka08("topic", "create", topic, "--partitions", "2")
    assert topic in kafka08("topic", "list").split()
    assert "PartitionCount:2" in kafka08("topic", "describe", topic)
    kafka08("produce", topic, stdin="a\nb\nc\n")
    kafka08("produce", topic)
    ends = json.loads(kafka08("topic", "offsets", topic, "--json"))
    assert sum(row["messages"] for row in ends) == 3
    read_back = kafka08("consume", topic, "--from-beginning", "--max-messages", "3")
    assert Counter(read_back.split()) == Counter("abc")
    by_partition = [
        kafka08("consume", topic, "--partition", number, "--offset", "earliest", *more)
        for number, more in (("0", ("--no-wait-at-logend",)), ("1", ("--until", "end")))
    ]
    assert Counter("".join(by_partition).split()) == Counter("abc")
    assert Counter(kafka08("consume", topic, "--last", "5").split()) == Counter("abc")
    group = "words-readers"
    assert group in kafka08("group", "list")
    kafka08("group", "describe", group)
    assert "0" in kafka08("offsets", "lag", group)
    kafka08("group", "reset", group, "--topic", topic, "--to", "earliest", "--execute")
    lag = json.loads(kafka08("offsets", "get", group, "--topic", topic, "--json"))
    assert sum(row["lag"] for row in lag) == 3
    if "0.10.2.2" not in request.node.name:
        assert kafka08("group", "delete", group, "--dry-run") == f"Would delete group {group}.\n"
        assert group in kafka08("group", "list")
        kafka08("group", "delete", group)
        assert group not in kafka08("group", "list")
    # Last: with the topic brokers drop its offsets, and then the group, which has no others.
    kafka08("topic", "delete", topic)


def test_a_scan_reads_with_the_same_keys(secured: Secured) -> None:
    """As Arrow data, from each partition."""
    pa = pytest.importorskip("pyarrow")
    from kafka08.arrow import scan

    keys = secured.keys("SASL_SSL", **login_keys("SCRAM-SHA-512"))
    topic = f"scanned{next(_names)}"
    with KafkaProducer(KafkaProducerConfig({**keys, "retries": 20})) as producer:
        for future in [producer.send(ProducerRecord(topic, value)) for value in SENT]:
            future.result(30)
    bootstrap = keys.pop("bootstrap.servers")
    with scan(bootstrap, topic, columns=["value"], security=keys) as found:
        assert Counter(pa.table(found)["value"].to_pylist()) == Counter(SENT)


def test_a_mirror_of_0_8_logs_in_at_its_target(secured: Secured, tmp_path: Path) -> None:
    """By --producer-config: the way from a cluster of 0.8 to one with TLS."""
    topic = f"mirrored{next(_names)}"
    keys = secured.keys("SASL_SSL", **login_keys("SCRAM-SHA-256"))
    from_start = {"auto.offset.reset": "earliest"}
    file = tmp_path / "producer.properties"
    file.write_text("".join(f"{name}={escape_property(v)}\n" for name, v in keys.items()))
    with KafkaProducer(KafkaProducerConfig(keys)) as creating:
        creating.partitions_for(topic)
    with EmbeddedCluster(1, level="0.8.2") as source:
        source.create_topic(topic)
        with KafkaProducer(bootstrap_servers=source.bootstrap) as producer:
            for future in [producer.send(ProducerRecord(topic, value)) for value in SENT]:
                future.result(30)
        line = [sys.executable, "-m", "kafka08.cli", "mirror", "--group", "m", "--whitelist", topic]
        where = ["--source-zookeeper", source.zookeeper.connect_string]
        first = ["--consumer-override", "auto.offset.reset=smallest"]
        mirror = subprocess.Popen([*line, *where, *first, "--producer-config", str(file)])
        try:
            with KafkaConsumer(KafkaConsumerConfig({**keys, **from_start})) as found:
                found.assign([TopicPartition(topic, 0)])
                assert Counter(m.value for m in read(found, len(SENT), 60)) == Counter(SENT)
        finally:
            mirror.terminate()
            assert mirror.wait(30) == 0


CLOSED_BEFORE_1_0 = "brokers before 1.0 close it after a wrong password"


@pytest.mark.parametrize("client", ["producer", "consumer"])
@pytest.mark.parametrize(
    ("listener", "keys", "what"),
    [
        ("SSL", {"security_protocol": "PLAINTEXT"}, "speaks TLS: security.protocol is SSL"),
        ("SASL_PLAINTEXT", {"security_protocol": "PLAINTEXT"}, "want a login"),
        ("PLAINTEXT", {"security_protocol": "SSL"}, "a PLAINTEXT or SASL_PLAINTEXT listener"),
        (
            "PLAINTEXT",
            {"security_protocol": "SASL_PLAINTEXT", **login_keys("PLAIN")},
            "takes no login",
        ),
        (
            "SSL",
            {"ssl_truststore_location": str(DATA / "client.pem")},
            "not signed by an authority",
        ),
        ("MTLS", {}, "refuses this client's certificate, or that there is none"),
        ("SASL_SSL", login_keys("PLAIN", "guess"), "Invalid username or password"),
        ("SASL_SSL", login_keys("SCRAM-SHA-512", "guess"), "invalid credentials|refuses it"),
    ],
    ids=[
        "plain to TLS",
        "plain to SASL",
        "TLS to plain",
        "SASL to plain",
        "authority",
        "no certificate",
        "password",
        "SCRAM password",
    ],
)
def test_each_mistake_is_named(
    secured: Secured,
    request: pytest.FixtureRequest,
    client: str,
    listener: str,
    keys: dict[str, str],
    what: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In the error of either client."""
    if "0.10.2.2" in request.node.name:
        if listener == "MTLS":
            pytest.skip("all its listeners have one ssl.client.auth")
        if listener == "SASL_SSL":
            what = CLOSED_BEFORE_1_0
    with pytest.raises(KafkaError) as failed:
        use_once(client, secured.keys(listener, **keys))
    said = str(failed.value)
    assert re.search(what, said), said
    assert "guess" not in said + caplog.text


def use_once(client: str, keys: dict[str, str]) -> None:
    if client == "producer":
        with KafkaProducer(KafkaProducerConfig({**keys, "max.block.ms": "3000"})) as producer:
            producer.send(ProducerRecord("t", b"v")).result(10)
    else:
        with KafkaConsumer(KafkaConsumerConfig(keys)) as consumer:
            consumer.partitions_for("t")
