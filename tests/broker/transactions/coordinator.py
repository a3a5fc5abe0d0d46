"""A broker that coordinates transactions: a World whose requests the level does not list yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka08.broker.requests.dispatcher import Dispatcher
from kafka08.broker.requests.request_metrics import RequestMetrics
from kafka08.levels import Level
from kafka08.log.log import Log
from kafka08.protocol import message_set
from kafka08.protocol.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    TxnTopic,
    partitions_of,
)
from kafka08.protocol.end_txn import EndTxnRequest
from kafka08.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.served import Served
from kafka08.protocol.transaction_records import decode_key, decode_transaction
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from tests.broker.world import Client, World

SERVED = Served(Level.V0_11_0)
PARTITION = TopicPartition(TRANSACTIONS_TOPIC, 0)


class Coordinator(World):
    """A broker that leads the only partition of `__transaction_state`, and [d,0] and [d,1]."""

    def __init__(self, directory: Path, *, isr: tuple[int, ...] = (1,), **keys: Any) -> None:
        super().__init__(
            directory,
            api_level="0.11.0",
            transaction_state_log_num_partitions=1,
            offsets_topic_num_partitions=1,
            inter_broker_protocol_version="0.11.0",
            log_message_format_version="0.11.0",
            **keys,
        )
        requests = RequestMetrics(self.runtime, self.config.level)
        self.client = Client(self, Dispatcher(self.context, SERVED, requests))
        self.lead("d", 2)
        self.lead(OFFSETS_TOPIC)
        self.lead(TRANSACTIONS_TOPIC, isr=isr, replicas=(1, 2))

    def init(self, transactional_id: str | None = "t", timeout_ms: int = 60_000) -> Any:
        response = self.client.call(InitProducerIdRequest(transactional_id, timeout_ms))
        assert isinstance(response, InitProducerIdResponse)
        return (response.error_code, response.producer_id, response.producer_epoch)

    def add(self, *partitions: int, epoch: int = 0, topic: str = "d") -> list[int]:
        request = AddPartitionsToTxnRequest("t", 0, epoch, [TxnTopic(topic, list(partitions))])
        response = self.client.call(request)
        assert len(partitions_of(request.topics)) == len(response.topics[0].partitions)
        return [one.error_code for one in response.topics[0].partitions]

    def end(self, *, commits: bool = True, epoch: int = 0) -> int:
        return int(self.client.call(EndTxnRequest("t", 0, epoch, commits)).error_code)

    def log(self) -> Log:
        found = self.log_manager.get(PARTITION)
        assert found is not None
        return found

    def states(self) -> list[str]:
        """The states in the log, in order."""
        data = bytes(self.log().read(0, 1 << 20).bytes())
        return [
            "tombstone" if m.value is None else decode_transaction(m.value).state.name
            for m in message_set.decode(data)
            if m.key is not None and decode_key(m.key) == "t"
        ]

    def move_away_and_back(self) -> None:
        self.lead(TRANSACTIONS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
        self.lead(TRANSACTIONS_TOPIC, replicas=(1, 2))
