"""Transactional ids of one coordinator: the captured table of states, failures, failover."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.broker.transactions.marker_codes import LONGEST_PAUSE_MS, pause_ms
from kafka08.broker.transactions.transaction import EPOCH_FENCED, EPOCH_MAX
from kafka08.broker.transactions.transactional_ids import (
    Action,
    Actions,
    Append,
    Outcome,
    Respond,
    SendMarkers,
    TransactionalIds,
    refuse_init,
)
from kafka08.errors import ProtocolError
from kafka08.protocol.transaction_records import (
    TransactionState,
    decode_key,
    decode_transaction,
    encode_key,
    encode_transaction,
)
from kafka08.structs import TopicPartition

RECORDING: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "0.11-txn-coordinator.json").read_text(encoding="utf-8")
)
D0, D1, GROUP = (
    TopicPartition("d", 0),
    TopicPartition("d", 1),
    TopicPartition("__consumer_offsets", 3),
)
ID = 41
MINUTE_MS = 60_000


class Coordinator:
    """Executes the actions of a TransactionalIds: a log, leaders and a clock in memory.

    log      key and value of each acknowledged record
    markers  (partition, producer id, epoch, commits, coordinator epoch) of each that was written
    holds    appends stay unacknowledged until `release`
    refuses  code for appends
    answers  partition → codes of its leader, before it writes the marker
    """

    def __init__(self) -> None:
        self.ids = TransactionalIds(0)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers: list[tuple[TopicPartition, int, int, bool, int]] = []
        self.now_ms = 1_000_000
        self.next_id = ID
        self.holds = False
        self.refuses = 0
        self.held: list[Append] = []
        self.keeps_markers = False
        self.kept: list[SendMarkers] = []
        self.answers: dict[TopicPartition, list[int]] = {}
        self.outcomes: list[Outcome] = []
        self.delays: list[int] = []

    def run(self, actions: Actions) -> None:
        for action in actions:
            self._run_one(action)

    def _run_one(self, action: Action) -> None:
        match action:
            case Respond():
                action.reply(action.outcome)
            case Append() if self.holds:
                self.held.append(action)
            case Append():
                self._append(action)
            case SendMarkers() if self.keeps_markers:
                self.kept.append(action)
            case SendMarkers():
                self._send(action)

    def _append(self, append: Append) -> None:
        self.delays.append(append.delay_ms)
        code = self.refuses
        if append.delay_ms:
            self.refuses = 0  # by then the log takes it
            code = 0
        try:
            record = append.key, append.value
        except ProtocolError:
            code = -1
        if not code:
            self.log.append(record)
        self.run(self.ids.appended(append, code, self.now_ms))

    def _send(self, sent: SendMarkers) -> None:
        self.delays.append(sent.delay_ms)
        for partition in sent.partitions:
            codes = self.answers.get(partition) or [0]
            code = codes.pop(0)
            if code == 0:
                self.markers.append((partition, *sent.end))
            self.run(self.ids.marker_result(sent, partition, code, self.now_ms))

    def release(self) -> None:
        self.holds = False
        held, self.held = self.held, []
        self.run(list(held))

    def fail_over(self) -> None:
        """Another broker loads the acknowledged records."""
        self.holds, self.held, self.kept = False, [], []
        self.keeps_markers = False
        self.ids = TransactionalIds.loaded(self.ids.coordinator_epoch + 1, self.log)
        self.run(self.ids.resume(self.now_ms))

    def init(self, transactional_id: str = "t") -> Outcome | None:
        new_id = None
        if self.ids.needs_producer_id(transactional_id):
            new_id, self.next_id = self.next_id, self.next_id + 1
        return self._outcome(
            lambda reply: self.ids.init(transactional_id, MINUTE_MS, self.now_ms, reply, new_id)
        )

    def add(self, *partitions: TopicPartition, producer_id: int = ID, epoch: int = 0) -> int | None:
        outcome = self._outcome(
            lambda reply: self.ids.change(
                "t", reply, lambda one: one.add(producer_id, epoch, partitions, self.now_ms)
            )
        )
        return None if outcome is None else outcome.code

    def end(self, commits: bool, producer_id: int = ID, epoch: int = 0) -> int | None:
        outcome = self._outcome(
            lambda reply: self.ids.change(
                "t", reply, lambda one: one.end(producer_id, epoch, commits, self.now_ms)
            )
        )
        return None if outcome is None else outcome.code

    def _outcome(self, ask: Any) -> Outcome | None:
        found: list[Outcome] = []
        self.run(ask(found.append))
        return found[0] if found else None

    @property
    def states(self) -> list[str]:
        """What the log says of the id, in order."""
        names = []
        for _, value in self.log:
            name = "tombstone" if value is None else decode_transaction(value).state.name
            names.append(name)
        return names

    @property
    def state(self) -> str:
        record = self.ids.record_of("t")
        return "none" if record is None else record.state.name


def in_state(state: str) -> Coordinator:
    """A coordinator whose id is in the state as the recording names it, with epoch 1."""
    found = Coordinator()
    if state == "none":
        return found
    found.init()
    found.init()
    if state == "Empty":
        return found
    found.add(D0, epoch=1)
    if state != "Ongoing":
        found.keeps_markers = state.startswith("Prepare")
        found.end(state.endswith("Commit"), epoch=1)
    return found


CELLS = [
    (row["state"], row["request"], variant, answer)
    for entry in RECORDING
    if entry["name"] == "state-table"
    for row in entry["rows"]
    for variant, answer in row["answers"].items()
]
NAMES = {
    "Empty": "EMPTY",
    "Ongoing": "ONGOING",
    "PrepareCommit": "PREPARE_COMMIT",
    "PrepareAbort": "PREPARE_ABORT",
    "CompleteCommit": "COMPLETE_COMMIT",
    "CompleteAbort": "COMPLETE_ABORT",
}
STUCK = "stuck PrepareCommit"
"""The state of 0.11.0.3 after an EndTxn with a larger epoch, which is refused here."""


def ask(coordinator: Coordinator, request: str, variant: str) -> int | None:
    epoch = 1 + {"epoch-1": -1, "epoch+1": 1}.get(variant, 0)
    producer_id = ID + 100_000 * (variant == "other pid")
    match request:
        case "init":
            outcome = coordinator.init()
            return None if outcome is None else outcome.code
        case "add known partition":
            return coordinator.add(D0, producer_id=producer_id, epoch=epoch)
        case "add new partition":
            return coordinator.add(D1, producer_id=producer_id, epoch=epoch)
        case "add offsets":
            return coordinator.add(GROUP, producer_id=producer_id, epoch=epoch)
        case "commit" | "abort":
            return coordinator.end(request == "commit", producer_id=producer_id, epoch=epoch)
        case _:
            raise AssertionError(request)


def test_the_captured_table_of_states() -> None:
    """Every request in every state has the captured code, and writes the captured states. A larger
    epoch in EndTxn is refused instead (47), and writes nothing."""
    checked = 0
    for state, request, variant, answer in CELLS:
        if state == STUCK or "pending" in state:
            continue
        coordinator = in_state(state)
        before = len(coordinator.log)
        code = ask(coordinator, request, variant)
        expected = answer if isinstance(answer, int) else answer["err"]
        written = [] if isinstance(answer, int) else answer["written"]
        if variant == "epoch+1" and request in {"commit", "abort"}:
            expected, written = 47, []
        found = coordinator.states[before:]
        cell = (state, request, variant)
        assert (code, found) == (expected, [NAMES[name] for name in written]), cell
        checked += 1
    assert checked > 120


def test_while_a_record_is_not_acknowledged_every_request_is_51() -> None:
    """As captured, in each pending change but a fence: there the epoch has risen in 0.11.0.3."""
    checked = 0
    for state, request, variant, answer in CELLS:
        if "pending" not in state or "fence" in state or variant != "right":
            continue
        before, _, after = state.removeprefix("pending ").partition("->")
        coordinator = in_state(before)
        coordinator.holds = True
        if after == "Empty":
            coordinator.init()
        elif after == "Ongoing":
            coordinator.add(D1, epoch=1)
        elif after.startswith("Prepare"):
            coordinator.end(after == "PrepareCommit", epoch=1)
        else:
            coordinator.run(
                coordinator.ids.marker_result(coordinator.kept[0], D0, 0, coordinator.now_ms)
            )
        assert len(coordinator.held) == 1, state
        expected = answer if isinstance(answer, int) else answer["err"]
        assert ask(coordinator, request, variant) == expected, (state, request)
        checked += 1
    assert checked >= 6


def test_captured_records_are_read_and_written() -> None:
    """Each record of the recording has its stated values, and is encoded back to its bytes unless a
    hash table ordered its partitions."""
    checked = 0
    for entry in RECORDING:
        if not entry.get("value_hex") or not entry.get("txid"):
            continue
        key, value = bytes.fromhex(entry["key_hex"]), bytes.fromhex(entry["value_hex"])
        stated, record = entry["value"], decode_transaction(value)
        assert entry["txid"] == decode_key(key)
        assert key == encode_key(entry["txid"])
        assert (stated["pid"], stated["epoch"], stated["timeout"], stated["status"]) == (
            record.producer_id,
            record.producer_epoch,
            record.timeout_ms,
            record.state,
        )
        assert (stated["last_update"], stated["start"]) == (record.last_update_ms, record.start_ms)
        partitions = {
            TopicPartition(one["topic"], number)
            for one in stated["parts"] or ()
            for number in one["parts"]
        }
        assert partitions == record.partitions
        again = encode_transaction(record)
        assert value == again if len(partitions) < 2 else len(value) == len(again)
        checked += 1
    assert checked >= 8


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0",
        b"\0\1" + bytes(40),
        bytes(16) + b"\6" + bytes(30),
        bytes(17) + b"\x7f\xff\xff\xff",
    ],
)
def test_a_damaged_record_is_refused(damage: bytes) -> None:
    """A cut, another version, a state or a count that cannot be: nothing is guessed."""
    with pytest.raises(ProtocolError):
        decode_transaction(damage)
    with pytest.raises(ProtocolError):
        TransactionalIds.loaded(0, [(encode_key("t"), damage)])


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "code"),
    [("", 1, 42), ("t", 900_000, 0), ("t", 900_001, 50), ("t", 0, 50), ("t", -1, 50)],
)
def test_what_no_coordinator_takes(transactional_id: str, timeout_ms: int, code: int) -> None:
    """As captured: an empty id first, then the bounds of the timeout."""
    assert code == refuse_init(transactional_id, timeout_ms, 900_000)


def test_an_id_is_initialized() -> None:
    """The first producer gets a new id and epoch 0, the next one epoch 1."""
    coordinator = Coordinator()
    assert Outcome(0, ID, 0) == coordinator.init()
    assert Outcome(0, ID, 1) == coordinator.init()


def test_an_id_that_is_not_stored_is_not_kept() -> None:
    """Neither without a producer id for it, nor if its name does not fit a record."""
    coordinator = Coordinator()
    outcomes: list[Outcome] = []
    ids = coordinator.ids
    coordinator.run(ids.init("t", MINUTE_MS, 0, outcomes.append))
    coordinator.run(ids.init("t" * 40_000, MINUTE_MS, 0, outcomes.append, ID))
    assert [Outcome(51), Outcome(-1)] == outcomes
    assert 0 == len(ids)


def test_a_producer_with_an_impossible_epoch_is_aborted_too() -> None:
    """A record of another broker may have the epoch that only fences: there is none above it."""
    coordinator = in_state("Ongoing")
    record = coordinator.ids.record_of("t")
    assert record is not None
    last = encode_transaction(record._replace(producer_epoch=EPOCH_MAX + 1))
    coordinator.log.append((encode_key("t"), last))
    coordinator.fail_over()
    coordinator.now_ms += 2 * MINUTE_MS
    coordinator.run(coordinator.ids.abort_timed_out(coordinator.now_ms))
    assert "COMPLETE_ABORT" == coordinator.state


def test_a_second_producer_aborts_the_transaction_of_the_first() -> None:
    """It is 51 once, then gets the epoch behind the fence, which nobody ever has."""
    coordinator = in_state("Ongoing")
    assert Outcome(51) == coordinator.init()
    assert "COMPLETE_ABORT" == coordinator.state
    assert [(D0, ID, 2, False, 0)] == coordinator.markers
    assert 47 == coordinator.end(True, epoch=1)
    assert Outcome(0, ID, 3) == coordinator.init()


def test_the_last_epoch_is_followed_by_a_new_id() -> None:
    """32766 is the last one that is given out; a fence may still use the next."""
    coordinator = Coordinator()
    coordinator.init()
    record = coordinator.ids.record_of("t")
    assert record is not None
    last = encode_transaction(
        type(record)(ID, EPOCH_MAX, MINUTE_MS, TransactionState.EMPTY, frozenset(), 0)
    )
    coordinator.log.append((encode_key("t"), last))
    coordinator.fail_over()
    assert 0 == coordinator.add(D0, epoch=EPOCH_MAX)
    assert Outcome(51) == coordinator.init()
    assert (D0, ID, EPOCH_MAX + 1, False, 1) == coordinator.markers[-1]
    assert Outcome(0, ID + 1, 0) == coordinator.init()


def test_a_transaction_that_is_open_too_long_is_aborted_and_fenced() -> None:
    """After its timeout, not before; later partitions do not extend it, nor a failover."""
    coordinator = in_state("Ongoing")
    coordinator.now_ms += MINUTE_MS // 2
    coordinator.add(D1, epoch=1)
    coordinator.fail_over()
    coordinator.now_ms += MINUTE_MS // 2
    coordinator.run(coordinator.ids.abort_timed_out(coordinator.now_ms))
    assert "ONGOING" == coordinator.state
    coordinator.now_ms += 1
    coordinator.run(coordinator.ids.abort_timed_out(coordinator.now_ms))
    assert "COMPLETE_ABORT" == coordinator.state
    assert 47 == coordinator.add(D1, epoch=1)


@pytest.mark.parametrize("code", [3, 7, 19, 20])
def test_a_log_that_refuses_costs_nothing(code: int) -> None:
    """15, and everything is as before: no epoch is used up, no id stays half known, and a
    transaction is neither stuck nor fenced."""
    coordinator = Coordinator()
    coordinator.refuses = code
    assert Outcome(15) == coordinator.init()
    assert 0 == len(coordinator.ids)
    coordinator.refuses = 0
    coordinator.next_id = ID
    coordinator.init()
    coordinator.add(D0)
    coordinator.refuses = code
    for _ in range(3):
        assert Outcome(15) == coordinator.init()
        assert 15 == coordinator.end(True)
        assert 15 == coordinator.add(D1)
    coordinator.refuses = 0
    assert 0 == coordinator.end(True)
    assert "COMPLETE_COMMIT" == coordinator.state


def test_a_completion_that_is_refused_is_tried_again() -> None:
    """The markers are written: the id must not stay in PREPARE."""
    coordinator = in_state("PrepareCommit")
    coordinator.refuses = 19
    coordinator.run(coordinator.ids.marker_result(coordinator.kept[0], D0, 0, coordinator.now_ms))
    assert "COMPLETE_COMMIT" == coordinator.state
    assert coordinator.delays[-1] > 0


@pytest.mark.parametrize("code", [3, 6, 7, 19, 20, -1, 2, 10, 42])
def test_a_marker_is_sent_until_it_is_written(code: int) -> None:
    """Whatever the leader answers, with growing pauses; each partition gets it once. After codes
    that it does not know 0.11.0.3 leaves the id in PREPARE, and answers 51 for ever."""
    coordinator = in_state("Ongoing")
    coordinator.add(D1, epoch=1)
    coordinator.answers[D0] = [code] * 9
    coordinator.delays.clear()
    assert 0 == coordinator.end(True, epoch=1)
    assert "COMPLETE_COMMIT" == coordinator.state
    assert [D0, D1] == sorted(marker[0] for marker in coordinator.markers)
    pauses = [delay for delay in coordinator.delays if delay]
    assert pauses == sorted(pauses)
    assert 9 == len(pauses)
    assert LONGEST_PAUSE_MS == pauses[-1] == pause_ms(1000)


@pytest.mark.parametrize("code", [47, 52])
@pytest.mark.parametrize("commits", [True, False])
def test_a_leader_that_knows_a_later_epoch_takes_the_last_one(code: int, commits: bool) -> None:
    """It got one that the coordinator never gave. The decision is stored with the last epoch before
    its marker goes out with it, the others keep theirs, and the next producer has another id.
    0.11.0.3 answers 51 for ever, also after a reload."""
    coordinator = in_state("Ongoing")
    coordinator.add(D1, epoch=1)
    coordinator.answers[D0] = [code]
    coordinator.holds = True
    coordinator.end(commits, epoch=1)
    (decision,) = coordinator.held
    coordinator.held = []
    coordinator.run(coordinator.ids.appended(decision, 0, coordinator.now_ms))
    assert [(D1, ID, 1, commits, 0)] == coordinator.markers
    coordinator.release()
    assert (D0, ID, EPOCH_FENCED, commits, 0) == coordinator.markers[-1]
    assert 2 == len(coordinator.markers)
    assert coordinator.state.startswith("COMPLETE")
    assert Outcome(0, coordinator.next_id, 0) == coordinator.init()


def test_a_leader_that_knows_a_later_coordinator_takes_the_last_one() -> None:
    """A marker by hand had an epoch that no coordinator has."""
    coordinator = in_state("Ongoing")
    coordinator.answers[D0] = [52, 52]
    coordinator.end(True, epoch=1)
    assert [(D0, ID, EPOCH_FENCED, True, 2**31 - 1)] == coordinator.markers
    assert "COMPLETE_COMMIT" == coordinator.state


def test_a_coordinator_that_was_replaced_raises_no_epoch() -> None:
    """The log refuses the decision with the last epoch, so no marker goes out with it."""
    coordinator = in_state("Ongoing")
    coordinator.answers[D0] = [52]
    coordinator.holds = True
    coordinator.end(True, epoch=1)
    decision = coordinator.held.pop()
    coordinator.run(coordinator.ids.appended(decision, 0, coordinator.now_ms))
    (raised,) = coordinator.held
    (again,) = coordinator.ids.appended(raised, 6, coordinator.now_ms)
    assert isinstance(again, Append)
    assert [] == coordinator.markers


@pytest.mark.parametrize("code", [35, 43])
def test_a_partition_without_transactions_needs_no_marker(code: int) -> None:
    """Its leader, or its format, is older."""
    coordinator = in_state("Ongoing")
    coordinator.answers[D0] = [code]
    coordinator.end(True, epoch=1)
    assert "COMPLETE_COMMIT" == coordinator.state
    assert [] == coordinator.markers


def test_an_answer_to_an_earlier_marker_counts_for_nothing() -> None:
    """The transaction that it ended is complete, and another one is being ended."""
    coordinator = in_state("PrepareCommit")
    (first,) = coordinator.kept
    coordinator.run(coordinator.ids.marker_result(first, D0, 0, coordinator.now_ms))
    coordinator.kept.clear()
    coordinator.add(D0, epoch=1)
    coordinator.end(False, epoch=1)
    assert [] == coordinator.ids.marker_result(first, D0, 0, coordinator.now_ms)
    assert "PREPARE_ABORT" == coordinator.state


def test_ids_without_a_transaction_expire_one_by_one() -> None:
    """Never an open one; one whose tombstone is refused stays usable."""
    coordinator = in_state("Ongoing")
    coordinator.init("idle")
    coordinator.now_ms += 10 * MINUTE_MS
    coordinator.init("fresh")
    coordinator.refuses = 19
    coordinator.run(coordinator.ids.expire(coordinator.now_ms, MINUTE_MS, 1000))
    assert 3 == len(coordinator.ids)
    coordinator.refuses = 0
    coordinator.run(coordinator.ids.expire(coordinator.now_ms, MINUTE_MS, 1000))
    assert coordinator.ids.record_of("idle") is None
    assert 2 == len(coordinator.ids)
    assert "tombstone" == coordinator.states[-1]


EVENTS = ["init", "add", "commit", "abort", "fail over", "refuse", "hold", "release", "time"]


@given(st.lists(st.sampled_from(EVENTS), max_size=40))
def test_a_transaction_is_committed_or_aborted_everywhere(events: list[str]) -> None:
    """Whatever happens in between, with a failover at every step: each transaction has one end, a
    commit that was acknowledged is never aborted, and at last nothing is left in PREPARE."""
    coordinator = Coordinator()
    producer_id, epoch = -1, -1
    decided = dict[tuple[int, int, int], bool]()
    for event in events:
        coordinator.now_ms += 1
        match event:
            case "init":
                outcome = coordinator.init()
                if outcome is not None and outcome.code == 0:
                    producer_id, epoch = outcome.producer_id, outcome.producer_epoch
            case "add":
                coordinator.add(D0, D1, producer_id=producer_id, epoch=epoch)
            case "commit" | "abort":
                record = coordinator.ids.record_of("t")
                code = coordinator.end(event == "commit", producer_id=producer_id, epoch=epoch)
                if code == 0 and record is not None:
                    key = (producer_id, epoch, record.start_ms)
                    assert decided.setdefault(key, event == "commit") is (event == "commit")
            case "fail over":
                coordinator.fail_over()
            case "refuse":
                coordinator.refuses = 0 if coordinator.refuses else 19
            case "hold":
                coordinator.holds = True
            case "release":
                coordinator.release()
            case "time":
                coordinator.now_ms += 2 * MINUTE_MS
                coordinator.run(coordinator.ids.abort_timed_out(coordinator.now_ms))
    coordinator.refuses = 0
    coordinator.release()
    coordinator.fail_over()
    assert coordinator.state not in {"PREPARE_COMMIT", "PREPARE_ABORT"}
    results = dict[tuple[int, int, int], str]()
    for _, value in coordinator.log:
        assert value is not None
        record = decode_transaction(value)
        if record.state.name.startswith("PREPARE"):
            key = (record.producer_id, record.producer_epoch, record.start_ms)
            assert results.setdefault(key, record.state.name) == record.state.name
    for key, commits in decided.items():
        assert results[key] == ("PREPARE_COMMIT" if commits else "PREPARE_ABORT")
