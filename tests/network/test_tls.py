"""TLS and logins: what goes through them, and what is said where they fail."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from kafka08.client import ClusterClient
from kafka08.client.sasl import login
from kafka08.consumer import KafkaConsumerConfig
from kafka08.errors import AuthenticationFailed, ConnectionFailed
from kafka08.network.connection import Connection
from kafka08.network.session import PLAINTEXT, Security
from kafka08.network.tls import RECEIVE_BYTES, SEND_BYTES, TlsStream
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.producer.broker_channel import ClientResponse
from kafka08.producer.network_client import LostRequests, NetworkClient
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.runtime import Buffers
from kafka08.runtime.sockets import SocketStream
from kafka08.runtime.threads import THREADS, ThreadRuntime
from tests.mock_clock import MockClock
from tests.network.secured import DATA, SecuredPort, server_context
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until

SECONDS = 20.0
Ask = Callable[[tuple[str, int], Security], None]
LONG = bytes(range(256)) * 20_000
"""More than any buffer on the way."""
assert len(LONG) > 8 * RECEIVE_BYTES > 8 * SEND_BYTES


def client_context(*, ca: str = "ca", certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(DATA / f"{ca}.pem")
    if certificate:
        context.load_cert_chain(DATA / "client.pem", DATA / "client.key")
    return context


@pytest.fixture
def echo() -> Iterator[socket.socket]:
    """The client's side of a connection whose server sends back what it gets, with TLS."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with (
            contextlib.suppress(OSError),  # the client does not trust it
            server_context().wrap_socket(theirs, server_side=True) as secured,
        ):
            while data := secured.recv(1 << 16):
                secured.sendall(data)

    server = threading.Thread(target=serve)
    server.start()
    yield ours
    ours.close()
    server.join(SECONDS)


def test_bytes_come_through_in_order(echo: socket.socket) -> None:
    """Also while both directions are full, and where a look ahead took the first of them."""
    stream = TlsStream(SocketStream(echo), client_context(), "localhost")
    stream.settimeout(SECONDS)
    stream.handshake()
    sending = threading.Thread(target=stream.sendall, args=(LONG[: SEND_BYTES // 2],))
    sending.start()
    sending.join(SECONDS)
    assert stream.peek()
    found = bytearray(SEND_BYTES // 2)
    room = memoryview(found)
    while room:
        room = room[stream.recv_into(room[:30_000]) :]
    assert found == LONG[: SEND_BYTES // 2]
    stream.settimeout(0.01)
    with pytest.raises(TimeoutError):
        stream.peek()
    stream.settimeout(0)
    with pytest.raises(BlockingIOError):
        stream.recv_into(bytearray(1))


def test_an_alert_between_messages_is_a_lost_connection(echo: socket.socket) -> None:
    """Once bytes have come the peer has accepted this client, so a new connection may go well: what
    was damaged on the way is no refused login."""
    stream = TlsStream(SocketStream(echo), client_context(), "localhost")
    stream.settimeout(SECONDS)
    stream.handshake()
    stream.sendall(b"once")
    assert stream.recv_into(bytearray(4)) == 4
    echo.sendall(bytes.fromhex("1703030020") + bytes(32))  # a record of no key
    with pytest.raises(ssl.SSLError, match="ALERT"):
        stream.recv_into(bytearray(1))


def test_a_stream_that_never_waits_loses_nothing(echo: socket.socket) -> None:
    """`send` counts bytes once they are on their way, and a read that is not full leaves none."""
    stream = TlsStream(SocketStream(echo), client_context(), "127.0.0.1")
    stream.settimeout(0)
    poller = THREADS.poller()
    wants_write = True
    rest, found = memoryview(LONG), bytearray()
    is_open = False
    blocked = 0
    try:
        while len(found) < len(LONG):
            poller.watch(SocketStream(echo), "it", read=True, write=wants_write)
            assert poller.poll(SECONDS), "neither bytes nor room"
            try:
                if not is_open:
                    stream.handshake()
                    is_open = True
                while rest:
                    rest = rest[stream.send(rest) :]
            except BlockingIOError:
                blocked += 1
            wants_write = bool(rest) if is_open else stream.wants_write
            room = bytearray(10_000)
            count = len(room) if is_open else 0
            try:
                while count == len(room):
                    count = stream.recv_into(room)
                    found += room[:count]
            except BlockingIOError:
                pass
        assert found == LONG
        assert blocked > 1
    finally:
        poller.close()


@pytest.fixture
def broker() -> Iterator[TcpCluster]:
    with TcpCluster({"t": {0: 1}}, brokers=(1,)) as cluster:
        yield cluster


def target(broker: TcpCluster) -> tuple[str, int]:
    host, _, port = broker.servers.partition(":")
    return host, int(port)


def by_connection(address: tuple[str, int], security: Security) -> None:
    """A request in a thread."""
    with Connection(*address, timeout_ms=20_000, security=security) as connection:
        assert isinstance(connection.send(MetadataRequest(["t"])), MetadataResponse)


def by_poller(address: tuple[str, int], security: Security) -> None:
    """A request of the new producer's sender."""
    with closing(network_client(security)) as client:
        lost: list[LostRequests] = []

        def is_ready() -> bool:
            events = client.poll(0.05)
            lost.extend(event for event in events if isinstance(event, LostRequests))
            return bool(lost) or client.is_ready(address, THREADS.monotonic())

        until(is_ready, "a connection")
        if lost:
            raise lost[0].error
        until_at = THREADS.monotonic() + SECONDS
        send(client, address)
        events = client.poll(0)
        while not events and THREADS.monotonic() < until_at:
            events = client.poll(1.0)
        if isinstance(events[0], LostRequests):
            raise events[0].error
        assert isinstance(events[0], ClientResponse)


def network_client(security: Security) -> NetworkClient:
    return NetworkClient(
        client_id="",
        max_in_flight=5,
        reconnect_s=0.01,
        max_idle_s=0.0,
        buffers=Buffers(-1, -1),
        security=security,
        runtime=THREADS,
    )


def send(client: NetworkClient, address: tuple[str, int]) -> None:
    now = THREADS.monotonic()
    request = MetadataRequest(["t"])
    client.send(address, request, None, now=now, deadline=now + SECONDS, expects_response=True)


drivers = pytest.mark.parametrize("ask", [by_connection, by_poller])
PLAIN = login("PLAIN", "alice", "alice-secret")


@drivers
@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize("has_login", [False, True])
def test_requests_come_through(
    ask: Ask, has_tls: bool, has_login: bool, broker: TcpCluster
) -> None:
    """TLS, a login and both, for each driver of a session."""
    security = Security(
        "for a test", client_context if has_tls else None, PLAIN if has_login else None
    )
    port = SecuredPort(
        target(broker),
        tls=server_context() if has_tls else None,
        mechanisms=["PLAIN"] if has_login else None,
    )
    with port:
        ask(port.address, security)


def test_a_connection_logs_in_again_in_time(broker: TcpCluster) -> None:
    """Before a request, once nothing is in flight."""
    security, clock = Security("SASL_PLAINTEXT", log_in=PLAIN), MockClock()
    with (
        SecuredPort(target(broker), mechanisms=["PLAIN"], login_ms=3_600_000) as port,
        Connection(
            *port.address, security=security, runtime=ThreadRuntime(clock=clock)
        ) as connection,
    ):
        connection.write(MetadataRequest(["t"]))
        clock.advance(3600)
        connection.write(MetadataRequest(["t"]))
        assert connection.in_flight == 2
        connection.read_response()
        connection.read_response()
        assert port.logins == 1
        for _ in range(2):
            connection.send(MetadataRequest(["t"]))
            assert port.logins == 2


def test_a_poller_logs_in_again_with_nothing_in_flight(broker: TcpCluster) -> None:
    """What is in flight is awaited first, and nothing is sent meanwhile."""
    security = Security("SASL_PLAINTEXT", log_in=PLAIN)
    with (
        SecuredPort(target(broker), mechanisms=["PLAIN"], login_ms=3_600_000) as port,
        closing(network_client(security)) as client,
    ):
        later_s = THREADS.monotonic() + 3600

        def is_ready() -> bool:
            client.poll(0.05)
            return client.is_ready(port.address, THREADS.monotonic())

        until(is_ready, "a connection")
        send(client, port.address)
        assert not client.is_ready(port.address, later_s)
        until(lambda: client.poll(0.05), "the response")
        assert port.logins == 1
        assert not client.is_ready(port.address, later_s)
        until(is_ready, "the second login")
        assert port.logins == 2
        send(client, port.address)
        (response,) = until(lambda: client.poll(0.05), "the response")
        assert isinstance(response, ClientResponse)


@drivers
def test_a_broker_before_1_0_takes_the_bare_tokens(ask: Ask, broker: TcpCluster) -> None:
    """Its last one may be empty. After a wrong password it only closes the connection."""
    right = Security("SASL_PLAINTEXT", log_in=PLAIN)
    wrong = Security("SASL_PLAINTEXT", log_in=login("PLAIN", "alice", "guess"))
    with SecuredPort(target(broker), mechanisms=["PLAIN"], is_bare=True) as port:
        ask(port.address, right)
        with pytest.raises(ConnectionFailed, match="after a wrong password"):
            ask(port.address, wrong)


@drivers
@pytest.mark.parametrize(
    ("server", "client", "what"),
    [
        ({}, {"ca": "client"}, "not signed by an authority of ssl.truststore.location"),
        ({"wants_certificate": True}, {}, "refuses this client's certificate, or that there is"),
    ],
)
def test_a_certificate_that_is_refused_is_named(
    ask: Ask, server: dict[str, Any], client: dict[str, Any], what: str, broker: TcpCluster
) -> None:
    """Whose it was, and the key to change."""
    with (
        SecuredPort(target(broker), tls=server_context(**server)) as port,
        pytest.raises(AuthenticationFailed, match=what),
    ):
        ask(port.address, Security("SSL", lambda: client_context(**client)))


def test_a_client_certificate_opens_a_port_that_wants_one(broker: TcpCluster) -> None:
    """Of the same authority."""
    tls = server_context(wants_certificate=True)
    with SecuredPort(target(broker), tls=tls) as port:
        by_connection(port.address, Security("SSL", lambda: client_context(certificate=True)))


def test_a_certificate_of_another_name_is_refused(echo: socket.socket) -> None:
    """A server that has a certificate of the authority may still be another one."""
    stream = TlsStream(SocketStream(echo), client_context(), "elsewhere.example")
    stream.settimeout(SECONDS)
    with pytest.raises(AuthenticationFailed, match="for another name"):
        stream.handshake()


@drivers
@pytest.mark.parametrize(
    ("port", "security", "kind", "what"),
    [
        ({"tls": server_context()}, PLAINTEXT, AuthenticationFailed, "speaks TLS"),
        ({}, Security("SSL", client_context), ConnectionFailed, "the port of a PLAINTEXT"),
        (
            {"mechanisms": ["SCRAM-SHA-512"]},
            Security("SASL_PLAINTEXT", log_in=PLAIN),
            AuthenticationFailed,
            "does not have sasl.mechanism PLAIN, but SCRAM-SHA-512",
        ),
        (
            {"mechanisms": ["PLAIN"]},
            Security("SASL_PLAINTEXT", log_in=login("PLAIN", "alice", "guess")),
            AuthenticationFailed,
            "Invalid username or password",
        ),
    ],
    ids=["plain on TLS", "TLS on plain", "mechanism", "password"],
)
def test_a_wrong_protocol_mechanism_or_password_is_named(
    ask: Ask,
    port: dict[str, Any],
    security: Security,
    kind: type[Exception],
    what: str,
    broker: TcpCluster,
) -> None:
    """What may pass, such as a broker that is stopping, is an error that is retried."""
    with SecuredPort(target(broker), **port) as secured, pytest.raises(kind, match=what) as failed:
        ask(secured.address, security)
    assert "guess" not in str(failed.value) + repr(security)


def test_a_wrong_password_is_said_at_once(broker: TcpCluster) -> None:
    """Clients do not try it for as long as they would wait for a broker."""
    with SecuredPort(target(broker), mechanisms=["PLAIN"]) as port:
        host, number = port.address
        keys = {
            "bootstrap.servers": f"{host}:{number}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="alice" password="guess";',
        }
        security = KafkaConsumerConfig(keys).security
        with (
            closing(ClusterClient([port.address], negotiates=True, security=security)) as cluster,
            pytest.raises(AuthenticationFailed, match="Invalid username or password"),
        ):
            cluster.refresh()
        with KafkaProducer(KafkaProducerConfig({**keys, "max.block.ms": "3600000"})) as producer:
            refused = producer.send(ProducerRecord("t", b"v"))
            with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
                refused.result(0)


@pytest.mark.parametrize(
    ("port", "protocol", "what"),
    [
        ({"mechanisms": ["PLAIN"]}, "PLAINTEXT", "does its listener want a login"),
        ({"tls": server_context()}, "PLAINTEXT", "speaks TLS"),
        ({}, "SSL", "the port of a PLAINTEXT or SASL_PLAINTEXT listener"),
    ],
    ids=["plain on SASL", "plain on TLS", "TLS on plain"],
)
def test_a_record_that_cannot_be_sent_says_why(
    port: dict[str, Any], protocol: str, what: str, broker: TcpCluster
) -> None:
    """Also where the producer tries it again until max.block.ms: its log has it, and the error."""
    with SecuredPort(target(broker), **port) as secured:
        host, number = secured.address
        keys = {"bootstrap.servers": f"{host}:{number}", "security.protocol": protocol}
        with KafkaProducer(KafkaProducerConfig({**keys, "max.block.ms": "400"})) as producer:
            assert re.search(what, str(producer.send(ProducerRecord("t", b"v")).exception(5)))
