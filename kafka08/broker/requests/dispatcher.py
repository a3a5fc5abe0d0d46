"""Dispatcher: calls the handler of each request, and turns results and errors into responses.

The table of the level (kafka08.protocol.served) has the supported APIs and versions. Produce,
Fetch, repeated Metadata requests and those of group members take the fast path (fast_path). Source:
kafka.server.KafkaApis.handle 0.8.2.2.
"""

from __future__ import annotations

import logging
from functools import partial
from struct import Struct
from typing import Final

from kafka08.broker.cluster.former_controller import decode_former
from kafka08.broker.requests.call import ApiHandler, Call, Refuse, host_of
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.fallback import Fallback
from kafka08.broker.requests.fast_path import API_NUMBER, FastPath
from kafka08.broker.requests.handlers import (
    acls,
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    api_versions,
    consumer_metadata,
    controlled_shutdown,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    end_txn,
    fetch,
    heartbeat,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    metadata_0_9,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    offsets,
    produce,
    sasl_handshake,
    stop_replica,
    stubs,
    sync_group,
    txn_offset_commit,
    update_metadata,
    write_txn_markers,
)
from kafka08.broker.requests.request_metrics import KEY_MASK, RequestMetrics, is_frequent
from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.log_limit import caused_by
from kafka08.network.server_connection import RequestConnection, ResponseFrame
from kafka08.protocol.apis import APIS
from kafka08.protocol.codec import RequestHeader, decode_request
from kafka08.protocol.served import Served, UnknownApi, UnservedVersion
from kafka08.protocol.types import Request

logger = logging.getLogger(__name__)

Handlers = dict[str, tuple[ApiHandler, Refuse]]

HANDLERS: Final[Handlers] = {
    name: (module.handle, module.refuse)
    for name, module in (
        ("Produce", produce),
        ("Fetch", fetch),
        ("Offsets", offsets),
        ("Metadata", metadata),
        ("LeaderAndIsr", leader_and_isr),
        ("StopReplica", stop_replica),
        ("UpdateMetadata", update_metadata),
        ("ControlledShutdown", controlled_shutdown),
        ("OffsetCommit", offset_commit),
        ("OffsetFetch", offset_fetch),
        ("ConsumerMetadata", consumer_metadata),
        ("JoinGroup", stubs),
        ("Heartbeat", stubs),
        ("LeaveGroup", leave_group),
        ("SyncGroup", sync_group),
        ("DescribeGroups", describe_groups),
        ("ListGroups", list_groups),
        ("SaslHandshake", sasl_handshake),
        ("ApiVersions", api_versions),
        ("CreateTopics", create_topics),
        ("DeleteTopics", delete_topics),
        ("DeleteRecords", delete_records),
        ("InitProducerId", init_producer_id),
        ("OffsetForLeaderEpoch", offset_for_leader_epoch),
        ("AddPartitionsToTxn", add_partitions_to_txn),
        ("AddOffsetsToTxn", add_offsets_to_txn),
        ("EndTxn", end_txn),
        ("WriteTxnMarkers", write_txn_markers),
        ("TxnOffsetCommit", txn_offset_commit),
        ("DescribeAcls", acls),
        ("CreateAcls", acls),
        ("DeleteAcls", acls),
        ("DescribeConfigs", describe_configs),
        ("AlterConfigs", alter_configs),
    )
}
"""API → handler and refusal. A handler gets every version of its API in one form."""
HANDLERS_SINCE: Final[dict[Level, Handlers]] = {
    Level.V0_9_0: {
        "Produce": (produce.handle_legal_acks, produce.refuse),
        "Metadata": (metadata_0_9.handle, metadata_0_9.refuse),
        "UpdateMetadata": (update_metadata.handle, update_metadata.refuse_by_code),
        "ControlledShutdown": (controlled_shutdown.handle, controlled_shutdown.refuse_by_code),
        "JoinGroup": (join_group.handle, join_group.refuse),
        "Heartbeat": (heartbeat.handle, heartbeat.refuse),
    },
    Level.V0_10_2: {
        "Offsets": (list_offsets.handle, list_offsets.refuse),
    },
}
"""Handlers that replace others from a level on."""


def handlers_at(level: Level) -> dict[type[Request], tuple[ApiHandler, Refuse]]:
    """The handlers of a broker of that level, by request class."""
    found = dict(HANDLERS)
    for since, handlers in sorted(HANDLERS_SINCE.items()):
        if since <= level:
            found.update(handlers)
    return {api.request: found[api.name] for api in APIS}


CONTROLLER_KEYS: Final = frozenset({4, 5, 6})
"""LeaderAndIsr, StopReplica and UpdateMetadata."""
LARGE_KEYS: Final = frozenset({0, *CONTROLLER_KEYS})
"""Produce has messages; the controller's requests have a broker's partitions."""
REQUEST_BYTES_MAX: Final = 4 << 20
"""The largest size of any other request: 80,000 topics in a Metadata request, or 1,000 offsets with
4 KB of metadata each. A larger one can only be an error, and would block the hub for seconds."""
DECODED_AT_ONCE_BYTES: Final = 256 << 10
"""A larger request is decoded in a native thread: 4 MB of partitions take 0.3 s."""
CONTROLLERS_AT_ONCE_BYTES: Final = 1 << 20
"""A larger request of the controller is decoded in a native thread. One of 10,000 partitions takes
0.03 s, and a thread would halve the loop's speed."""
KEY: Final = Struct(">h")


def key_of(payload: memoryview) -> int:
    """The key of the request's API."""
    key: int = KEY.unpack_from(payload)[0]
    return key


class Dispatcher:
    """The request handler of a SocketServer; `served` is the table of its level. Called in the hub;
    never switches."""

    def __init__(self, broker: BrokerContext, served: Served, requests: RequestMetrics) -> None:
        self._broker = broker
        self._requests = requests
        self._counts = requests.counts
        self._takes_times = requests.takes_times
        self._served = served
        self._handlers = handlers_at(served.level)
        fast_path = FastPath(broker, served)
        self._fast_path = fast_path.methods
        self._group_path = fast_path.group_methods
        requests.counted_by(fast_path.counts)

    def __call__(self, payload: memoryview, link: RequestConnection) -> ResponseFrame | None:
        """The response, or None if the call is parked. ProtocolError, which closes the connection,
        for an unsupported request, bytes that cannot be decoded, or too many of them."""
        if len(payload) > REQUEST_BYTES_MAX:
            key = key_of(payload)
            if key not in LARGE_KEYS:
                raise ProtocolError(
                    f"a request with key {key} of {len(payload)} bytes is larger than the maximum "
                    f"of {REQUEST_BYTES_MAX}"
                )
        if len(payload) < API_NUMBER.size:
            return self._decode(payload, link)  # which raises
        (number,) = API_NUMBER.unpack_from(payload)
        fast_path = self._fast_path.get(number)
        if fast_path is None:
            self._counts[number >> 16 & KEY_MASK] += 1
            if self._takes_times and not is_frequent(payload):
                handle = partial(self._handle, number, payload)
                return self._requests.measure(payload, link, handle)
            fast_path = self._group_path.get(number)
            if fast_path is None:
                return self._decode(payload, link)
        response = fast_path(payload, link)
        return self._decode(payload, link) if isinstance(response, Fallback) else response

    def _handle(
        self, number: int, payload: memoryview, link: RequestConnection
    ) -> ResponseFrame | None:
        """The response to a request whose times are taken."""
        fast_path = self._group_path.get(number)
        if fast_path is not None:
            response = fast_path(payload, link)
            if not isinstance(response, Fallback):
                return response
        return self._decode(payload, link)

    def _decode(self, payload: memoryview, link: RequestConnection) -> ResponseFrame | None:
        """Decode the whole request and call its handler."""
        at_once_bytes = DECODED_AT_ONCE_BYTES
        if len(payload) > at_once_bytes and key_of(payload) in CONTROLLER_KEYS:
            at_once_bytes = CONTROLLERS_AT_ONCE_BYTES
            known_epoch = self._broker.replica_manager.controller_epoch
            former = decode_former(payload, self._served, known_epoch)
            if former is not None:
                return self._respond(*former, link)
        if len(payload) > at_once_bytes:
            # A copy: the receive buffer is reused while the thread decodes.
            own = bytearray(payload)
            done = partial(self._decoded, link)
            self._broker.runtime.run_native_later(done, decode_request, own, self._served)
            return None
        try:
            header, request = decode_request(payload, self._served)
        except (UnknownApi, UnservedVersion) as error:
            if self._served.closes_on_unsupported:
                raise
            return ignored(link, error)
        return self._respond(header, request, link)

    def _decoded(
        self,
        link: RequestConnection,
        decoded: tuple[RequestHeader, Request] | None,
        error: BaseException | None,
    ) -> None:
        """A thread has decoded the request of a parked connection, or failed with `error`."""
        if link.ending:
            return
        response: ResponseFrame | None
        try:
            if decoded is not None:
                response = self._respond(*decoded, link)
            elif (
                isinstance(error, UnknownApi | UnservedVersion)
                and not self._served.closes_on_unsupported
            ):
                response = ignored(link, error)
            else:
                assert isinstance(error, Exception)
                link.fail(error)
                return
        except Exception as failure:  # noqa: BLE001 - root of a callback: ends this connection alone
            link.fail(failure)
            return
        if response is not None:
            link.send_response(response)

    def _respond(
        self, header: RequestHeader, request: Request, link: RequestConnection
    ) -> ResponseFrame | None:
        """Call the handler of a request."""
        handle, refuse = self._handlers[type(request)]
        call = Call(self._broker, link, header, request, refuse)
        return call.answer(lambda: handle(self._broker, request, call))


def ignored(link: RequestConnection, error: UnknownApi | UnservedVersion) -> ResponseFrame:
    """The response to an unsupported request that keeps its connection: none."""
    cause = caused_by(host_of(link))
    logger.error("A request from %s gets no response: %s", link.peer, error, extra=cause)
    return b""
