"""A probe counts the fate of each message."""

from __future__ import annotations

from kafka08.exporter.probe_ledger import OUTSTANDING_MAX, ProbeLedger
from kafka08.exposition import text_of

TIMEOUT = 5.0
NAMES = {
    "produced": "messages_produced_total",
    "failed": "messages_produced_failed_total",
    "received": "messages_received_total",
    "lost": "messages_lost_total",
    "late": "messages_late_total",
    "in_flight": "messages_produced_in_flight",
    "produce": "produce_latency_seconds_count",
    "roundtrip": "roundtrip_latency_seconds_count",
}


def counted(ledger: ProbeLedger, partition: int = 0) -> dict[str, float]:
    """The counts of a partition that are not 0, by short names."""
    values = dict(line.rsplit(" ", 1) for line in text_of(ledger.families()).splitlines())
    found = {
        short: float(values.get(f'kminion_end_to_end_{name}{{partition_id="{partition}"}}', 0))
        for short, name in NAMES.items()
    }
    return {short: value for short, value in found.items() if value}


def sent(ledger: ProbeLedger, partition: int = 0) -> int:
    number = ledger.send(partition, 0.0)
    assert number is not None
    return number


def test_acknowledgement_and_reading_come_in_either_order() -> None:
    """A consumer may have a message before the producer has its response."""
    for order in ("acknowledge", "receive"), ("receive", "acknowledge"):
        ledger = ProbeLedger(TIMEOUT)
        number = sent(ledger)
        assert {"in_flight": 1} == counted(ledger)
        for step in order:
            getattr(ledger, step)(number, 0.02)
        ledger.expire(100.0)
        assert {"produced": 1, "received": 1, "produce": 1, "roundtrip": 1} == counted(ledger)
        assert 0 == ledger.outstanding


def test_acknowledged_and_unread_is_lost_after_the_timeout() -> None:
    """It is not lost before that, and late if it is read afterwards."""
    ledger = ProbeLedger(TIMEOUT)
    number = sent(ledger)
    ledger.acknowledge(number, 0.1)
    ledger.expire(TIMEOUT)
    assert "lost" not in counted(ledger)
    ledger.expire(TIMEOUT + 0.1)
    assert {"produced": 1, "produce": 1, "lost": 1} == counted(ledger)
    ledger.receive(number, 7.0)
    ledger.receive(number, 8.0)
    assert {"produced": 1, "produce": 1, "lost": 1, "late": 1} == counted(ledger)


def test_a_message_that_is_read_after_the_timeout_was_lost() -> None:
    """Whether or not it was counted so before: with an hour between two messages of the probe, all
    would count as read in time."""
    ledger = ProbeLedger(TIMEOUT)
    number = sent(ledger)
    ledger.acknowledge(number, 0.1)
    ledger.receive(number, TIMEOUT + 0.1)
    assert {"produced": 1, "produce": 1, "lost": 1, "late": 1} == counted(ledger)
    assert 0 == ledger.outstanding


def test_a_message_that_is_read_too_late_may_be_acknowledged_later_still() -> None:
    """The response to a retry may come after the message was read. If it fails, it is not lost."""
    ledger = ProbeLedger(TIMEOUT)
    number, other = sent(ledger), sent(ledger)
    for one in (number, other):
        ledger.receive(one, TIMEOUT + 0.1)
    ledger.expire(TIMEOUT + 0.2)
    assert {"in_flight": 2} == counted(ledger)
    ledger.acknowledge(number, TIMEOUT + 0.3)
    ledger.fail(other)
    assert {"produced": 2, "failed": 1, "produce": 1, "lost": 1, "late": 1} == counted(ledger)
    assert 0 == ledger.outstanding


def test_an_unacknowledged_message_is_failed_and_not_lost() -> None:
    """This holds even if it was stored, and is read after all."""
    ledger = ProbeLedger(TIMEOUT)
    number = sent(ledger)
    ledger.expire(100.0)
    assert {"in_flight": 1} == counted(ledger)
    ledger.fail(number)
    ledger.receive(number, 101.0)
    assert {"produced": 1, "failed": 1} == counted(ledger)


def test_a_message_that_comes_twice_counts_once() -> None:
    """A retry of the producer stores it again."""
    ledger = ProbeLedger(TIMEOUT)
    number = sent(ledger, partition=3)
    for _ in range(2):
        ledger.receive(number, 0.5)
    ledger.acknowledge(number, 1.0)
    ledger.receive(number, 1.5)
    expected = {"produced": 1, "received": 1, "produce": 1, "roundtrip": 1}
    assert expected == counted(ledger, partition=3)


def test_a_cluster_that_does_not_answer_is_not_sent_ever_more() -> None:
    """No more than the bound are remembered."""
    ledger = ProbeLedger(TIMEOUT)
    numbers = [ledger.send(0, 0.0) for _ in range(OUTSTANDING_MAX + 5)]
    assert [None] * 5 == numbers[OUTSTANDING_MAX:]
    assert OUTSTANDING_MAX == ledger.outstanding


def test_latencies_fill_their_buckets() -> None:
    """Each bucket counts what is at most its bound, as Prometheus adds them up."""
    ledger = ProbeLedger(TIMEOUT)
    for seconds in (0.001, 0.02, 40.0):
        ledger.acknowledge(sent(ledger), seconds)
    lines = text_of(ledger.families()).splitlines()
    start = "kminion_end_to_end_produce_latency_seconds_bucket"
    buckets = [line.split()[-1] for line in lines if line.startswith(start)]
    assert ["1.0"] * 4 + ["2.0"] * 10 + ["3.0"] == buckets
