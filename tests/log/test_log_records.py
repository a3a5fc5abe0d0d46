"""What a log of level 0.11 keeps of its record batches: producers, transactions, leader epochs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ConfigError, FileRefused, InvalidProducerEpoch, OutOfOrderSequence
from kafka08.format import Batch, Message
from kafka08.format.v2 import V2
from kafka08.levels import Level
from kafka08.log import record_state
from kafka08.log.config import LogConfig
from kafka08.log.coordinator_batches import marker_batch, transactional_batch
from kafka08.log.leader_epochs import EpochStart
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.producer_entries import stored_batches
from kafka08.log.producer_snapshot import decode
from kafka08.log.producers import TransactionEnd
from kafka08.log.slices import AppendInfo
from kafka08.protocol.record_batches import compress
from kafka08.structs import TopicPartition
from tests.format.captures import DATA
from tests.log.conftest import Deferred, ManualClock, OpenLog

FORMAT_2: dict[str, Any] = {"level": Level.V0_11_0, "message_format_version": "0.11.0"}


def sent(sequence: int, count: int = 1, producer_id: int = 7, epoch: int = 0) -> bytearray:
    """A batch as an idempotent producer sends it."""
    records = [
        Message(n, None, memoryview(b"v%d" % (sequence + n)), 1000 + sequence + n, 0)
        for n in range(count)
    ]
    like = Batch(2, 0, 0, 0, count - 1, 0, 0, 1000 + sequence + count - 1, 0)
    like = like._replace(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return bytearray(V2().build(records, 0, compress, like=like))


def end(log: Log, *, commits: bool) -> int:
    """End the transaction of producer 7; returns the marker's offset."""
    marker = marker_batch(TransactionEnd(7, 0, commits, 3), log.log_end_offset, 0, 2000)
    return log.append_prepared(*marker).first_offset


def test_what_coordinators_append_is_noted_as_it_is_read() -> None:
    """A log notes the batches that it is given with their entries as those that it reads."""
    for made, stored in (
        marker_batch(TransactionEnd(7, 2, True, 3), 40, 5, 2000),
        transactional_batch([(b"k", b"v"), (None, b"w")], 7, 2, 40, 5, 2000),
    ):
        assert [stored] == stored_batches(made.data)


def names(log: Log, suffix: str) -> list[str]:
    return sorted(path.name.lstrip("0") for path in log.directory.glob(f"*{suffix}"))


class TestProducers:
    def test_a_repeated_batch_is_not_appended_again(self, open_log: OpenLog) -> None:
        """Of the last five, not only of the last: the result has the offsets of the first time."""
        log = open_log(**FORMAT_2)
        for sequence in range(6):
            log.append(sent(sequence * 2, 2))
        assert AppendInfo(4, 5, 0, 0, 1005) == log.append(sent(4, 2))
        assert 12 == log.log_end_offset
        with pytest.raises(OutOfOrderSequence):
            log.append(sent(0, 2))

    def test_a_gap_appends_nothing(self, open_log: OpenLog) -> None:
        """Nor does an unknown producer that does not begin with 0, nor a lower epoch."""
        log = open_log(**FORMAT_2)
        log.append(sent(0, epoch=1))
        for data, error in (
            (sent(2, epoch=1), OutOfOrderSequence),
            (sent(5, producer_id=8), OutOfOrderSequence),
            (sent(1, epoch=0), InvalidProducerEpoch),
        ):
            with pytest.raises(error):
                log.append(data)
        assert 1 == log.log_end_offset

    def test_batches_of_one_set_follow_each_other(self, open_log: OpenLog) -> None:
        """Produce 2 may have several; a set is repeated as a whole."""
        log = open_log(**FORMAT_2)
        log.append(sent(0) + sent(1, 2))
        assert AppendInfo(0, 2, 0, 0, 1002) == log.append(sent(0) + sent(1, 2))
        for data in (sent(1, 2) + sent(3), sent(3) + sent(5)):
            with pytest.raises(OutOfOrderSequence):
                log.append(data)
        assert 3 == log.log_end_offset

    @pytest.mark.parametrize("clean", [True, False])
    def test_a_restart_recognizes_five_batches(self, open_log: OpenLog, *, clean: bool) -> None:
        """After a clean stop from the snapshot, after a kill from the log."""
        log = open_log(**FORMAT_2)
        for sequence in range(6):
            log.append(sent(sequence))
        if clean:
            log.close()
        log = open_log(**FORMAT_2, clean_shutdown=clean)
        for sequence in range(1, 6):
            assert sequence == log.append(sent(sequence)).first_offset
        assert 6 == log.append(sent(6)).first_offset

    def test_a_follower_knows_the_same(self, open_log: OpenLog) -> None:
        """It takes the batches as they are; when it leads it recognizes them."""
        leader, follower = open_log(**FORMAT_2), open_log("t-1", **FORMAT_2)
        for sequence in range(3):
            leader.append(sent(sequence), leader_epoch=4)
        follower.append_as_follower(leader.read(0, 1 << 20).bytes())
        assert AppendInfo(1, 1, 0, 0, 1001) == follower.append(sent(1))
        assert 3 == follower.append(sent(3)).first_offset

    def test_a_truncation_forgets_what_it_cuts(self, open_log: OpenLog) -> None:
        """The producers are those before the new end: from the snapshot of a roll and behind it."""
        log = open_log(**FORMAT_2)
        for sequence in range(8):
            if sequence == 3:
                log.roll()
            log.append(sent(sequence))
        log.truncate_to(5)
        assert 5 == log.append(sent(5)).first_offset
        assert AppendInfo(1, 1, 0, 0, 1001) == log.append(sent(1))
        log.truncate_fully_and_start_at(20)
        assert 20 == log.append(sent(0)).first_offset

    def test_snapshots_are_written_at_rolls_and_at_a_clean_stop(
        self, open_log: OpenLog, background: Deferred
    ) -> None:
        """A flush leaves those of the last two segments."""
        log = open_log(**FORMAT_2)
        for sequence in range(4):
            log.append(sent(sequence))
            log.roll()
        assert ["1.snapshot", "2.snapshot", "3.snapshot", "4.snapshot"] == names(log, ".snapshot")
        background.run_all()
        assert ["3.snapshot", "4.snapshot"] == names(log, ".snapshot")
        log.append(sent(4))
        log.close()
        assert ["3.snapshot", "4.snapshot", "5.snapshot"] == names(log, ".snapshot")

    def test_a_damaged_snapshot_is_left_out(self, open_log: OpenLog) -> None:
        """The one before it and the log have as much."""
        log = open_log(**FORMAT_2)
        for sequence in range(3):
            log.append(sent(sequence))
        log.close()
        (path,) = log.directory.glob("*.snapshot")
        path.write_bytes(path.read_bytes()[:-3])
        log = open_log(**FORMAT_2)
        assert AppendInfo(2, 2, 0, 0, 1002) == log.append(sent(2))

    def test_a_log_of_the_jvm_has_its_producers(self, open_log: OpenLog, tmp_path: Path) -> None:
        """From its snapshot after a clean stop, and from its batches after a kill, alike."""
        found = []
        for clean in (True, False):
            directory = tmp_path / "t-0"
            directory.mkdir()
            for name, file in DATA["v-idem-0"].items():
                if "hex" in file:
                    (directory / name).write_bytes(bytes.fromhex(file["hex"]))
            if not clean:
                for path in directory.glob("*.snapshot"):
                    path.unlink()
            log = open_log(**FORMAT_2, clean_shutdown=clean)
            found.append(sorted(log.records.producers.entries()))
            shutil.rmtree(directory)
        assert found[0] == found[1] != []

    def test_what_0_11_0_3_reads_of_a_snapshot(self, open_log: OpenLog) -> None:
        """The last batch of the producer; the batches before it lie behind what it reads."""
        log = open_log(**FORMAT_2)
        for sequence in range(3):
            log.append(sent(sequence))
        log.close()
        (path,) = log.directory.glob("*.snapshot")
        ((entry,), batches) = decode(path.read_bytes())
        assert (7, 0, 2, 2) == entry[:4]
        assert [0, 1, 2] == [one.base_sequence for _, one in batches or ()]

    def test_idle_producers_are_forgotten(self, tmp_path: Path) -> None:
        """By the time of arrival; the others of the broker's logs stay."""
        clock = ManualClock()
        manager = LogManager([tmp_path / "logs"], LogConfig(**FORMAT_2), clock=clock)
        manager.load()
        for number in range(2):
            log = manager.get_or_create(TopicPartition("t", number))
            log.append(sent(0))
            clock.sleep(60)
        manager.expire_producers(100_000)
        assert [0, 1] == [len(log.records.producers) for log in manager.logs.values()]

    def test_older_levels_have_no_such_files(self, open_log: OpenLog) -> None:
        """A directory of 0.10.2 is as it was."""
        log = open_log(level=Level.V0_10_2)
        log.append(bytearray())
        log.close()
        kinds = {path.suffix for path in log.directory.iterdir()}
        assert {".log", ".index", ".timeindex"} == kinds


class TestTransactions:
    def begun(self, log: Log) -> None:
        """A transaction of producer 7 with two records, and a plain record of producer 8."""
        pairs = [(b"k", b"1"), (b"k", b"2")]
        batch = transactional_batch(pairs, 7, 0, log.log_end_offset, 0, 1500)
        log.append_prepared(*batch)
        log.append(sent(0, producer_id=8))

    @pytest.mark.parametrize("clean", [True, False])
    def test_an_aborted_transaction_is_in_the_index(
        self, open_log: OpenLog, *, clean: bool
    ) -> None:
        """Until the marker the LSO is the first offset; both survive a restart."""
        log = open_log(**FORMAT_2)
        self.begun(log)
        assert 0 == log.records.producers.last_stable_offset(3, 0)
        assert 3 == end(log, commits=False)
        assert 4 == log.records.producers.last_stable_offset(4, 0)
        if clean:
            log.close()
        else:
            for path in log.directory.glob("*.txnindex"):
                path.unlink()
        log = open_log(**FORMAT_2, clean_shutdown=clean)
        assert log.active_segment.aborted is not None
        assert [(7, 0, 3, 4)] == [tuple(one) for one in log.active_segment.aborted.entries]
        assert 4 == log.records.producers.last_stable_offset(4, 0)

    def test_a_truncation_opens_the_transaction_again(self, open_log: OpenLog) -> None:
        """Its marker is gone, and so is its entry in the index."""
        log = open_log(**FORMAT_2)
        self.begun(log)
        end(log, commits=False)
        log.truncate_to(3)
        assert log.active_segment.aborted is not None
        assert {7: 0} == log.records.producers.open_transactions
        assert [] == list(log.active_segment.aborted.entries)


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_9_0, Level.V0_10_2])
def test_an_older_level_does_not_open_record_batches(tmp_path: Path, level: Level) -> None:
    """It would cut the log at the first of them. One without any may go back."""
    for data, is_refused in ((b"", False), (sent(0), True)):
        directory = tmp_path / str(is_refused)
        manager = LogManager([directory], LogConfig(**FORMAT_2))
        manager.load()
        log = manager.get_or_create(TopicPartition("t", 0))
        log.append(bytearray(data))
        manager.shutdown()
        older = LogManager([directory], LogConfig(level=level))
        if is_refused:
            with pytest.raises(ConfigError, match=r"t-0, which has record batches"):
                older.load()
        else:
            older.load()
            older.shutdown()


class TestEpochs:
    def test_each_epoch_begins_with_its_first_batch(self, open_log: OpenLog) -> None:
        """On disk before that batch; a truncation removes epochs."""
        log = open_log(**FORMAT_2)
        checkpoint = log.directory / "leader-epoch-checkpoint"
        assert "" == checkpoint.read_text()
        for sequence, epoch in enumerate((0, 0, 2, 5)):
            log.append(sent(sequence), leader_epoch=epoch)
        assert "0\n3\n0 0\n2 2\n5 3\n" == checkpoint.read_text()
        log.truncate_to(3)
        assert "0\n2\n0 0\n2 2\n" == checkpoint.read_text()
        log = open_log(**FORMAT_2)
        assert (EpochStart(0, 0), EpochStart(2, 2)) == log.records.epochs.entries
        log.truncate_fully_and_start_at(9)
        assert "0\n0\n" == checkpoint.read_text()

    def test_an_epoch_whose_checkpoint_is_refused_is_noted_by_its_next_batch(
        self, open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither the refused batch nor its epoch is there. A full descriptor table lasts a moment;
        without the epoch on disk the replica would be cut below acknowledged messages later."""
        log = open_log(**FORMAT_2)
        log.append(sent(0), leader_epoch=1)
        with monkeypatch.context() as patch:

            def refuse(*_: object) -> None:
                raise FileRefused("cannot replace leader-epoch-checkpoint: Too many open files")

            patch.setattr(record_state, "replace_file", refuse)
            with pytest.raises(FileRefused):
                log.append(sent(1), leader_epoch=4)
            assert (1, 1) == (log.log_end_offset, log.records.epochs.latest)
        log.append(sent(1), leader_epoch=4)
        checkpoint = log.directory / "leader-epoch-checkpoint"
        assert "0\n2\n1 0\n4 1\n" == checkpoint.read_text()

    def test_a_lost_checkpoint_is_written_again(self, open_log: OpenLog) -> None:
        """From the batches that recovery reads."""
        log = open_log(**FORMAT_2)
        for sequence, epoch in enumerate((1, 4)):
            log.append(sent(sequence), leader_epoch=epoch)
        checkpoint = log.directory / "leader-epoch-checkpoint"
        checkpoint.write_text("nonsense")
        open_log(**FORMAT_2)
        assert "0\n2\n1 0\n4 1\n" == checkpoint.read_text()
