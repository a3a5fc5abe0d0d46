"""Every error of kafka08, and the one table of the protocol's error codes.

    KafkaError
    ├── ApiError                    an error code of the protocol; one class per code, see CODES
    │   ├── OffsetOutOfRange (1), InvalidMessage (2), UnknownTopicOrPartition (3), …
    │   │   └── FileRefused (6)     a name, a permission, a descriptor limit: refuses a partition
    │   └── UnknownError (-1)       also stands for a code that this table does not know
    ├── ProtocolError               bytes that are not the protocol; the connection is closed
    ├── ConfigError                 a configuration value: names key, value and range
    ├── CorruptLog                  a log directory that cannot be opened as it is
    ├── StorageError                the disk failed; a broker that meets it stops
    ├── ClientError                 raised by clients, never sent on the wire
    │   ├── ConnectionFailed        a broker cannot be reached, or a connection was lost
    │   ├── RequestTimeout          no response within the timeout
    │   ├── SilentBroker            a broker that did not respond just before is not asked now
    │   ├── NoBrokersAvailable      no bootstrap broker responded
    │   ├── MessageTooLarge         one message is larger than the largest fetch or request allowed
    │   │   └── RecordTooLarge      the request: a producer's own limits
    │   ├── ConsumerTimeout         nothing arrived within consumer.timeout.ms
    │   ├── CommitFailed            the member is no longer in the group; nothing was stored
    │   ├── PollIntervalExceeded    a member did not poll for max.poll.interval.ms
    │   ├── NoOffsetForPartition    nothing is committed, and auto.offset.reset is none
    │   ├── FetchFailed             a partition could not be fetched for long
    │   ├── DeserializationFailed   a deserializer raised; names topic, partition and offset
    │   ├── WokenUp                 KafkaConsumer.wakeup was called
    │   ├── ConsumerRebalanceFailed
    │   ├── MessageStreamsExist     create_message_streams was called twice
    │   ├── ProducerClosed
    │   ├── BufferExhausted         buffer.memory stayed full for max.block.ms
    │   ├── QueueFull               the asynchronous producer's queue had no room in time
    │   ├── FailedToSend            messages that were not acknowledged after all retries
    │   └── Closed                  a connector or connection is used after its end
    ├── ZooKeeperError              ZooKeeper refused a request or did not respond
    │   ├── NodeExists, NoNode, BadVersion
    │   ├── NoChroot                nothing is at the path behind the servers' addresses
    │   ├── ZooKeeperUnreachable    no session within zookeeper.connection.timeout.ms
    │   ├── SessionLost             the session ended (or is suspended) while it was needed
    │   └── BrokerIdTaken           /brokers/ids/<id> belongs to another live broker
    ├── AdminError                  a topic command that cannot be done; nothing was changed
    │   ├── NoSuchTopicOrPartition  it names a topic or partition that does not exist
    │   └── TopicExists, TooFewBrokers, PartitionsOnlyGrow
    └── MigrationError              a step of an offset migration that refused, with its reasons

A code becomes a class through `error_for(code)`, a class becomes a code by its `code`; no other
module knows the numbers. Source: kafka.common.ErrorMapping 0.8.2.2,
org.apache.kafka.common.protocol.Errors 0.10.2.2.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

from kafka08.levels import Level
from kafka08.structs import TopicPartition

NO_ERROR: Final = 0


class KafkaError(Exception):
    """Base of every error that kafka08 raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        # Python would call the class with `args` alone, which an `__init__` with more refuses: a
        # process pool then breaks, or waits for ever.
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(
    kind: type[KafkaError], args: tuple[object, ...], attributes: dict[str, object]
) -> KafkaError:
    """An error as it was pickled or copied."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class ApiError(KafkaError):
    """An error code of the protocol.

    `retriable`: the same request may succeed later. `refresh_metadata`: the leader is probably
    somewhere else by now, so ask for metadata before the next attempt. `since`: the lowest level
    whose brokers send the code; None: later ones alone.
    """

    code: ClassVar[int]
    since: ClassVar[Level | None] = Level.V0_8_2
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        *,
        code: int | None = None,
        since: Level | None = Level.V0_8_2,
        retriable: bool = False,
        refresh_metadata: bool = False,
    ) -> None:
        """A direct subclass has a code of its own; others have that of their base."""
        if code is not None:
            cls.code, cls.retriable, cls.refresh_metadata = code, retriable, refresh_metadata
            cls.since = since

    @classmethod
    def is_of(cls, level: Level) -> bool:
        """Whether brokers of a level send the code."""
        return cls.since is not None and cls.since <= level

    def __str__(self) -> str:
        return f"{type(self).__name__} ({self.code}): {self.detail}"

    @property
    def detail(self) -> str:
        """The text without name and code."""
        return super().__str__() or (type(self).__doc__ or "").split("\n", maxsplit=1)[0]


class UnknownError(ApiError, code=-1):
    """The broker met an error that has no code of its own."""


class UnpacksTooLarge(UnknownError):
    """A compressed message set unpacks to more bytes than are allowed."""


class OffsetOutOfRange(ApiError, code=1):
    """The offset is below the log's start or above its end."""


class InvalidMessage(ApiError, code=2):
    """A message failed its CRC check or is shorter than a message can be."""


class UnknownTopicOrPartition(ApiError, code=3, retriable=True, refresh_metadata=True):
    """This broker does not have the partition."""


class InvalidFetchSize(ApiError, code=4):
    """The fetch size is not valid."""


class LeaderNotAvailable(ApiError, code=5, retriable=True, refresh_metadata=True):
    """The partition has no leader right now (an election is under way, or the topic is new)."""


class NotLeaderForPartition(ApiError, code=6, retriable=True, refresh_metadata=True):
    """This broker has the partition but does not lead it."""


class RequestTimedOut(ApiError, code=7, retriable=True):
    """Not enough replicas had the messages in time; the leader did append them."""


class BrokerNotAvailable(ApiError, code=8, retriable=True, refresh_metadata=True):
    """The broker is not available."""


class ReplicaNotAvailable(ApiError, code=9):
    """A replica is not alive; in a Metadata response the leader can still be used."""


class MessageSizeTooLarge(ApiError, code=10):
    """A message, its 12-byte header included, is larger than max.message.bytes."""


class StaleControllerEpoch(ApiError, code=11):
    """The request comes from a controller that has been replaced."""


class OffsetMetadataTooLarge(ApiError, code=12):
    """The metadata of a committed offset is longer than offset.metadata.max.bytes."""


class StaleLeaderEpoch(ApiError, code=13):
    """The leader epoch of the request is not above the one already known.

    Sent by 0.8.2 alone: from 0.9 on the code means a lost connection, and no broker sends it.
    """


class OffsetsLoadInProgress(ApiError, code=14, retriable=True):
    """The offset manager is still reading its partition of __consumer_offsets."""


class ConsumerCoordinatorNotAvailable(ApiError, code=15, retriable=True):
    """The offsets topic does not exist yet or has no leader."""


class NotCoordinatorForConsumer(ApiError, code=16, retriable=True):
    """This broker does not lead the group's partition of __consumer_offsets."""


class InvalidTopic(ApiError, code=17):
    """The topic name is illegal, or the topic is internal and must not be written."""


class MessageSetSizeTooLarge(ApiError, code=18):
    """The whole message set is larger than one segment of the log."""


class NotEnoughReplicas(ApiError, code=19, retriable=True):
    """Fewer replicas are in sync than min.insync.replicas; nothing was appended."""


class NotEnoughReplicasAfterAppend(ApiError, code=20, retriable=True):
    """The messages were appended, but then fewer replicas were in sync than required."""


class InvalidRequiredAcks(ApiError, code=21, since=Level.V0_9_0):
    """The acks of a Produce request are not -1, 0 or 1."""


class IllegalGeneration(ApiError, code=22, since=Level.V0_9_0):
    """The generation is not that of the group."""


class InconsistentGroupProtocol(ApiError, code=23, since=Level.V0_9_0):
    """The member supports no protocol that all members of the group support."""


class InvalidGroupId(ApiError, code=24, since=Level.V0_9_0):
    """The name of the group is not valid."""


class UnknownMemberId(ApiError, code=25, since=Level.V0_9_0):
    """The group has no such member."""


class InvalidSessionTimeout(ApiError, code=26, since=Level.V0_9_0):
    """The session timeout is outside group.min.session.timeout.ms and
    group.max.session.timeout.ms."""


class RebalanceInProgress(ApiError, code=27, since=Level.V0_9_0):
    """The group rebalances; the member must join again."""


class InvalidCommitOffsetSize(ApiError, code=28, since=Level.V0_9_0):
    """The record of a committed offset is too large for the offsets topic."""


class TopicAuthorizationFailed(ApiError, code=29, since=Level.V0_9_0):
    """The client is not allowed to use the topic."""


class GroupAuthorizationFailed(ApiError, code=30, since=Level.V0_9_0):
    """The client is not allowed to use the group."""


class ClusterAuthorizationFailed(ApiError, code=31, since=Level.V0_9_0):
    """The client is not allowed to do this to the cluster."""


class InvalidTimestamp(ApiError, code=32, since=Level.V0_10_2):
    """The timestamp of a message is further from now than message.timestamp.difference.max.ms."""


class UnsupportedSaslMechanism(ApiError, code=33, since=Level.V0_10_2):
    """The broker does not have this SASL mechanism."""


class IllegalSaslState(ApiError, code=34, since=Level.V0_10_2):
    """The request does not fit the state of the SASL exchange."""


class UnsupportedVersion(ApiError, code=35, since=Level.V0_10_2):
    """The broker does not serve this version of the API."""


class TopicAlreadyExists(ApiError, code=36, since=Level.V0_10_2):
    """There is a topic of that name."""


class InvalidPartitions(ApiError, code=37, since=Level.V0_10_2):
    """The number of partitions is below 1."""


class InvalidReplicationFactor(ApiError, code=38, since=Level.V0_10_2):
    """The replication factor is below 1 or above the number of live brokers."""


class InvalidReplicaAssignment(ApiError, code=39, since=Level.V0_10_2):
    """The replica assignment of a new topic is not valid."""


class InvalidConfig(ApiError, code=40, since=Level.V0_10_2):
    """A configuration of a new topic is not valid."""


class NotController(ApiError, code=41, since=Level.V0_10_2, retriable=True):
    """This broker is not the controller."""


class InvalidRequest(ApiError, code=42, since=Level.V0_10_2):
    """The request contradicts itself."""


class UnsupportedForMessageFormat(ApiError, code=43, since=Level.V0_10_2):
    """The message format of the topic does not carry what the request needs."""


class PolicyViolation(ApiError, code=44, since=Level.V0_10_2):
    """The request violates a policy of the cluster."""


class OutOfOrderSequence(ApiError, code=45, since=Level.V0_11_0):
    """The sequence number of the batch does not follow the producer's last one."""


class DuplicateSequence(ApiError, code=46, since=Level.V0_11_0):
    """The broker has this batch already."""


class InvalidProducerEpoch(ApiError, code=47, since=Level.V0_11_0):
    """Another producer with this transactional id, or the coordinator, has fenced this one."""


class InvalidTxnState(ApiError, code=48, since=Level.V0_11_0):
    """The producer's transaction is in a state in which this request is illegal."""


class InvalidProducerIdMapping(ApiError, code=49, since=Level.V0_11_0):
    """The transactional id has another producer id, or is unknown."""


class InvalidTransactionTimeout(ApiError, code=50, since=Level.V0_11_0):
    """The transaction timeout is above transaction.max.timeout.ms, or not above 0."""


class ConcurrentTransactions(ApiError, code=51, since=Level.V0_11_0, retriable=True):
    """The last transaction of this producer is not completed yet."""


class TransactionCoordinatorFenced(ApiError, code=52, since=Level.V0_11_0):
    """A later coordinator has written to this partition."""


class TransactionalIdAuthorizationFailed(ApiError, code=53, since=Level.V0_11_0):
    """The client is not allowed to use this transactional id."""


class SecurityDisabled(ApiError, code=54, since=Level.V0_11_0):
    """The broker has no authorizer."""


class OperationNotAttempted(ApiError, code=55, since=Level.V0_11_0):
    """Another part of the request failed."""


class KafkaStorageError(ApiError, code=56, since=None, retriable=True, refresh_metadata=True):
    """The broker cannot use the disk of the partition."""


class UnknownProducerId(ApiError, code=59, since=None):
    """The broker knows nothing of the producer: its records were deleted."""


class FencedLeaderEpoch(ApiError, code=74, since=None, retriable=True, refresh_metadata=True):
    """The client knows an older leader than the broker."""


class UnknownLeaderEpoch(ApiError, code=75, since=None, retriable=True, refresh_metadata=True):
    """The client knows a newer leader than the broker."""


class UnsupportedCompressionType(ApiError, code=76, since=None):
    """The version of the request has no zstd."""


class OffsetNotAvailable(ApiError, code=78, since=None, retriable=True):
    """A new leader does not know its high watermark yet."""


class MemberIdRequired(ApiError, code=79, since=None):
    """The response has the id with which the member must join again."""


class FencedInstanceId(ApiError, code=82, since=None):
    """Another member has taken the place of this one: it has the same group.instance.id."""


class InvalidRecord(ApiError, code=87, since=None):
    """A record breaks a rule of its topic, or the batch is malformed."""


class UnstableOffsetCommit(ApiError, code=88, since=None, retriable=True):
    """A transaction that is open has committed offsets."""


class ProducerFenced(ApiError, code=90, since=None):
    """Another producer with this transactional id has fenced this one."""


CODES: Final[dict[int, type[ApiError]]] = {cls.code: cls for cls in ApiError.__subclasses__()}


def error_for(code: int) -> type[ApiError] | None:
    """The class of a code: None for 0 (no error), UnknownError for a code not in the table."""
    return None if code == NO_ERROR else CODES.get(code, UnknownError)


def error_of(code: int, detail: str = "") -> ApiError | None:
    """The error of `code` with `detail` (broker, topic-partition) in its text; None for 0."""
    error = error_for(code)
    if error is None:
        return None
    if error is UnknownError and code != UnknownError.code:
        detail = f"unknown error code {code}; {detail}"
    return error(detail)


def code_of(error: Exception | None) -> int:
    """The error code of a response with `error`: UnknownError's if it has none, 0 for None."""
    if error is None:
        return NO_ERROR
    return error.code if isinstance(error, ApiError) else UnknownError.code


class Refusal(NamedTuple):
    """An error that is kept: its code, and its text for a log line.

    An exception ends where it is caught. Stored, it would keep every frame of its traceback, and
    with them the request and its bytes; and what stores it is usually in one of these frames, a
    cycle that only the garbage collector ends."""

    code: int
    text: str

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        return cls(code_of(error), str(error))

    def __str__(self) -> str:
        return self.text


def check(code: int, detail: str = "") -> None:
    """Raise the error of `code`, if it is one."""
    error = error_of(code, detail)
    if error is not None:
        raise error


class ProtocolError(KafkaError):
    """Bytes that cannot be the protocol: short, oversize, or with a count that cannot be."""


class ConfigError(KafkaError):
    """A configuration value that cannot be used; names key, value and range."""


class CorruptLog(KafkaError):
    """A file of a log directory that cannot be read as what its name says."""


class StorageError(KafkaError):
    """Reading or writing the log failed in the operating system, as far as is known because of the
    disk: kafka08/log/files.py has the list."""


class FileRefused(NotLeaderForPartition):
    """The operating system refused a file of a partition for a reason that is not the disk's.

    The partition is refused until the reason is gone, with the code that Kafka from 1.0 on sends to
    older clients for a partition whose log directory is offline; nothing else is touched."""

    def __str__(self) -> str:
        return self.detail


class ClientError(KafkaError):
    """Base of the errors of clients, which are never sent on the wire."""


class ConnectionFailed(ClientError):
    """A broker could not be reached, or the connection broke before the response arrived."""


class NoApiVersions(ConnectionFailed):
    """A broker ended the connection when it was asked for its API versions, as those of 0.8 do."""


class AuthenticationFailed(ClientError):
    """TLS or SASL refused a broker or this client; to try again would change nothing."""


class RequestTimeout(ClientError):
    """No response within the timeout; the broker may have executed the request."""


class SilentBroker(ClientError):
    """A broker that did not respond a moment ago, and is asked nothing now; not to be retried."""


class TopicMissing(RequestTimeout):
    """Brokers responded that they have no such topic, as long as a producer waited for it."""


class NoBrokersAvailable(ClientError):
    """No bootstrap broker responded to a Metadata request. addresses: those that were asked."""

    addresses: tuple[tuple[str, int], ...] = ()


class NoBrokerRegistered(NoBrokersAvailable):
    """ZooKeeper has no broker below the path that was given."""


class NoBrokerSaysVersions(NoBrokersAvailable):
    """No bootstrap broker says which API versions it serves: each one gave NoApiVersions."""


class MessageTooLarge(ClientError):
    """One message is larger than the largest size this client may ask for or send."""


class RecordTooLarge(MessageTooLarge):
    """A record is larger than the new producer's max.request.size or buffer.memory."""


class ConsumerTimeout(ClientError):
    """No message arrived within consumer.timeout.ms."""


class CommitFailed(ClientError):
    """The member is no longer in the group, or not in this generation; nothing was stored."""


class PollIntervalExceeded(ClientError):
    """A member did not poll for max.poll.interval.ms, and left its group."""


class NoOffsetForPartition(ClientError):
    """Nothing is committed for a partition, and auto.offset.reset is none."""


class FetchFailed(ClientError):
    """A partition could not be fetched for long."""


class DeserializationFailed(ClientError):
    """A deserializer raised, which is the cause of this. The position stays at the message."""

    def __init__(self, text: str, topic_partition: TopicPartition, offset: int) -> None:
        super().__init__(text)
        self.topic_partition = topic_partition
        self.offset = offset


class WokenUp(ClientError):
    """Another thread or a signal handler called `wakeup`."""


class ConsumerRebalanceFailed(ClientError):
    """The group could not agree within rebalance.max.retries × rebalance.backoff.ms."""


class MessageStreamsExist(ClientError):
    """A connector makes its streams once; make a second connector for more."""


class ProducerClosed(ClientError):
    """The producer was closed."""


class BufferExhausted(ClientError):
    """The new producer's buffer.memory stayed full for max.block.ms; the record is not sent."""


class QueueFull(ClientError):
    """The old producer's queue had no room within queue.enqueue.timeout.ms."""


class FailedToSend(ClientError):
    """Some messages were not acknowledged after all retries; `messages` has them."""

    def __init__(self, text: str, messages: tuple[object, ...] = ()) -> None:
        super().__init__(text)
        self.messages = messages


class FailedTransaction(ClientError):
    """The transaction of the record was aborted, or can only be aborted."""


class Closed(ClientError):
    """The object was closed or shut down before this call."""


class ZooKeeperError(KafkaError):
    """ZooKeeper refused an operation or could not be reached; names the znode.

    path   that znode, when one operation met it; else ""
    """

    path = ""


class ZooKeeperUnreachable(ZooKeeperError):
    """No server accepted a session in time; the text has the reason of each. addresses: those that
    were asked."""

    addresses: tuple[tuple[str, int], ...] = ()


class NodeExists(ZooKeeperError):
    """The znode exists already."""


class NoNode(ZooKeeperError):
    """The znode does not exist."""


class NoChroot(NoNode):
    """The chroot of a connect string does not exist."""


class BadVersion(ZooKeeperError):
    """The znode was changed since it was read; nothing was written."""


class SessionLost(ZooKeeperError):
    """The ZooKeeper session has ended or is suspended; a write in flight may be done."""


class BrokerIdTaken(ZooKeeperError):
    """Another live broker holds this broker.id."""


class AdminError(KafkaError):
    """An administrative request that cannot be done; nothing was changed."""


class NoSuchTopicOrPartition(AdminError):
    """An administrative request about a topic or partition that does not exist."""


class TopicExists(AdminError):
    """A new topic has the name of another one."""


class TooFewBrokers(AdminError):
    """Fewer brokers are live than a partition is to have replicas."""


class PartitionsOnlyGrow(AdminError):
    """A topic was to have fewer partitions, or as many as it has."""


class MigrationError(KafkaError):
    """A migration step that refused to run; the text lists every reason."""
