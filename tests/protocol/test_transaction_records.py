"""Records of `__transaction_state` as brokers of 4.4.0 wrote them, read by tools."""

from __future__ import annotations

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol.transaction_records import (
    TransactionRecord,
    TransactionState,
    decode_transaction,
)
from kafka08.structs import TopicPartition

OF_4_4 = {
    "0001000000000000000000000000ea600000000001a22c51d35cffffffffffffffff0100080000000000000000": (
        TransactionRecord(0, 0, 60_000, TransactionState.EMPTY, frozenset(), 1796039889756)
    ),
    "0001000000000000000000000000ea600102037478020000000000000001a22c51d3fb000001a22c51d3fb0100080000"
    "000000000000": TransactionRecord(
        *(0, 0, 60_000, TransactionState.ONGOING, frozenset({TopicPartition("tx", 0)})),
        *(1796039889915, 1796039889915),
    ),
    "0001000000000000000000000000ea600401000001a22c5235cf000001a22c51d3fb0100080000000000000000": (
        TransactionRecord(
            *(0, 0, 60_000, TransactionState.COMPLETE_COMMIT, frozenset()),
            *(1796039914959, 1796039889915),
        )
    ),
}


@pytest.mark.parametrize("text", OF_4_4)
def test_records_of_4_4(text: str) -> None:
    """Tools read version 1, which is flexible and has tagged fields; a broker, which would lose
    them, does not. No cut record is read."""
    data = bytes.fromhex(text)
    assert decode_transaction(data, of_any_broker=True) == OF_4_4[text]
    for cut in range(len(data)):
        with pytest.raises(ProtocolError):
            decode_transaction(data[:cut], of_any_broker=True)
    with pytest.raises(ProtocolError):
        decode_transaction(data)
