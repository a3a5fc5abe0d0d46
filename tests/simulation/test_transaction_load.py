"""Clients with transactions in simulated clusters: what a run makes, and that its rules see it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kafka08.profile import SAFE
from kafka08.simulation.plan import Plan, draw_plan, with_faults, with_record_batches
from kafka08.simulation.run import Run
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.trace import Trace
from kafka08.simulation.transaction_history import Entry, Outcome
from kafka08.simulation.transaction_load import (
    GROUP,
    INPUT,
    RESULTS,
    TransactionLoad,
    properties_of,
)
from kafka08.structs import TopicPartition

SEED = 5


def quiet_plan() -> Plan:
    """Of a run without faults."""
    plan = with_faults(with_record_batches(draw_plan(SEED, SAFE)), SEED, [])
    return replace(plan, away="", faults_seconds=20.0, transactions=2, members=0, mirrors=0)


@pytest.fixture(scope="module")
def run() -> Run:
    made = Run(SEED, quiet_plan(), Trace())
    assert made.go() is None
    return made


def test_a_run_has_all_kinds_of_transactions(run: Run) -> None:
    """Committed, aborted and timed out; of writers and of the processor, in several sessions."""
    transactions = run.transactions.history.transactions
    assert Counter(one.outcome for one in transactions).keys() >= {
        Outcome.COMMITTED,
        Outcome.ABORTED,
    }
    assert {"writer-0", "writer-1", GROUP} <= {one.session.transactional_id for one in transactions}
    assert any(one.session.number > 1 for one in transactions)
    processed = [one for one in transactions if one.group == GROUP and one.offsets]
    assert any(one.outcome is Outcome.COMMITTED for one in processed)


def test_its_reader_reads_both_topics(run: Run) -> None:
    """To their ends, while they are written."""
    read = Counter(one.tp.topic for one in run.transactions.history.reads)
    assert read[INPUT] > 10 < read[RESULTS]


def test_a_lost_value_is_a_verdict(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history is judged with what is read in the end."""
    again, read_all = Run(SEED, quiet_plan(), Trace()), TransactionLoad._read_all
    tp = TopicPartition(INPUT, 0)

    def read_less(
        self: TransactionLoad, runtime: SimClientRuntime, isolation: str
    ) -> dict[TopicPartition, list[Entry]]:
        found = read_all(self, runtime, isolation)
        return {**found, tp: found[tp][1:]}

    monkeypatch.setattr(TransactionLoad, "_read_all", read_less)
    assert (again.go() or "").startswith("lost: ")


def test_older_levels_have_none() -> None:
    """Brokers of earlier levels know no transactions: their plans draw them for nothing."""
    plan = replace(draw_plan(SEED, SAFE), transactions=2)
    load = Run(SEED, plan, Trace()).transactions
    assert not load.places
    assert load.has_ended
    assert properties_of(plan) == plan.broker_properties
