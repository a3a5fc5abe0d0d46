"""A program that ends without closing its producers stores what they accepted, or says what not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.producer.producers import T0
from tests.producer.tcp_cluster import TcpCluster

NEW = """
from kafka08.producer import KafkaProducer, ProducerRecord
producer = KafkaProducer(bootstrap_servers={servers!r}, api_version_request=False, linger_ms=60_000)
for n in range(100):
    producer.send(ProducerRecord("t", b"%d" % n, partition=0))
"""
OLD = """
from kafka08.producer import KeyedMessage, Producer, ProducerConfig
producer = Producer(ProducerConfig(
    metadata_broker_list={servers!r}, producer_type="async", request_required_acks=1,
))
for n in range(100):
    producer.send(KeyedMessage("t", b"%d" % n, partition_key=0))
"""
IN_A_CHILD = """
import multiprocessing
def work():
{indented}
multiprocessing.get_context("fork").Process(target=work).start()
"""


def run(program: str) -> str:
    """What it printed; it must end with code 0."""
    command = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert not ended.returncode, ended.stderr.decode()
    return ended.stderr.decode()


def in_a_child(program: str) -> str:
    return IN_A_CHILD.format(indented="".join(f"    {line}\n" for line in program.splitlines()))


@pytest.mark.parametrize("program", [NEW, OLD, in_a_child(NEW)])
def test_what_was_accepted_is_stored(cluster: TcpCluster, program: str) -> None:
    """Also in a process of multiprocessing, which does not run the program's end."""
    assert run(program.replace("{servers!r}", repr(cluster.servers))) == ""
    assert cluster.log_end(T0) == 100


@pytest.mark.parametrize("program", [NEW, OLD])
def test_what_could_not_be_stored_is_said(cluster: TcpCluster, program: str) -> None:
    """Within the bound: the brokers do not respond."""
    cluster.pause(1)
    begin = "import kafka08.lifecycle\nkafka08.lifecycle.EXIT_S = 0.2\n"
    text = run(begin + program.replace("{servers!r}", repr(cluster.servers)))
    assert "The program ended without closing its" in text
    assert "100" in text
    cluster.resume(1)
