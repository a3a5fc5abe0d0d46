"""Every place where a greenlet, a thread, a timer, a watch or a native job begins has an answer to
an unexpected exception. Nobody above it can give one: it would be logged, and the work that the
greenlet did would never be done again. In a broker a StorageError halts it, wherever it rises: no
handler on its way takes it for another error."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kafka08

SOURCE = Path(kafka08.__file__).parent
PACKAGES = (
    "broker",
    "network",
    "runtime",
    "client",
    "consumer",
    "producer",
    "migration",
    "mirror",
    "exporter",
)
STARTERS = frozenset(
    {
        "spawn",
        "every",
        "call_later",
        "_call_later",
        "call_soon",
        "run_native_later",
        "run_in_turn_later",
        "when_acceptable",
        "when_readable",
        "when_writable",
    }
)

ROOTS = {
    "consumer/group/async_consumer.py AsyncKafkaConsumer.wakeup spawn": "logged by the runtime",
    "runtime/asyncio_loop.py LoopRuntime.call_later call_later": "starts a task",
    "runtime/asyncio_loop.py LoopRuntime.call_later spawn": "logged by the runtime",
    "runtime/asyncio_loop.py LoopRuntime.spawn call_soon": "a task keeps its error: it is logged",
    "runtime/asyncio_loop.py LoopTask.park call_later": "a task keeps its error",
    "runtime/asyncio_loop.py LoopTicket.wake call_soon": "a task keeps its error",
    "broker/appends/append_queue.py AppendQueue._start run_native_later": "the queue goes on",
    "broker/appends/append_queue.py AppendQueue._finish run_native_later": "the queue goes on",
    "broker/requests/call.py Call.run_in_greenlet spawn": "becomes the response, or closes the "
    "connection",
    "broker/requests/fetch_call.py FetchCall._run_in_greenlet spawn": "closes the connection",
    "broker/controller/broker_channel.py BrokerChannel.__init__ spawn": "the request is sent "
    "again; a response that cannot be handled is logged",
    "broker/controller/controller.py Controller.startup spawn": "ends the term, tries the next",
    "broker/controller/controller.py Controller._give_up call_later": "it only queues an event",
    "broker/controller/term.py Term._post_after call_later": "it only queues an event",
    "broker/requests/converted_set.py ConvertedSet.find_size run_in_turn_later": "the partition's "
    "error",
    "broker/requests/converted_set.py ConvertedSet.make run_in_turn_later": "closes the connection",
    "broker/groups/offset_manager.py OffsetManager.startup every": "expires the next time",
    "broker/groups/offset_loader.py OffsetLoader._start spawn": "loads again later",
    "broker/groups/offset_loader.py OffsetLoader._load call_later": "it only spawns",
    "broker/groups/group_coordinator.py GroupCoordinator.forget_partitions spawn": "the offsets "
    "stay until they expire",
    "broker/transactions/transaction_coordinator.py TransactionCoordinator._append call_later": ""
    "an error is the result of the append",
    "broker/transactions/transaction_coordinator.py TransactionCoordinator._start_load spawn": ""
    "loads again later",
    "broker/transactions/transaction_coordinator.py TransactionCoordinator._load call_later": ""
    "it only spawns",
    "broker/transactions/marker_sender.py MarkerSender.send call_later": "an error is the answer "
    "of a leader",
    "broker/transactions/marker_sender.py MarkerSender._send_now spawn": "sent again later",
    "broker/transactions/marker_sender.py _Channel.send spawn": "sends what waits",
    "broker/replication/isr_changes.py IsrChanges.begin spawn": "writes what is not written again",
    "broker/requests/dispatcher.py Dispatcher._decode run_native_later": "closes the connection",
    "broker/process/event_loop_monitor.py EventLoopMonitor._schedule call_later": "sets the next "
    "timer first",
    "broker/process/log_background.py LogBackground.flush_soon run_native_later": "what is not "
    "flushed is so by the next flush",
    "broker/process/log_background.py LogBackground.close_soon run_native_later": "only close(2) "
    "can fail",
    "broker/process/log_cleaner.py CleanerWorkers.start spawn": "cleans again after the pause",
    "broker/process/main.py run_patched every": "the next interval ends in time",
    "broker/process/missed_restart.py MissedRestart.start spawn": "checks again",
    "broker/purgatory/purgatories.py Purgatories.wake_followers call_soon": "the purgatory guards "
    "each operation",
    "broker/cluster/registration.py RegistrationKeeper.start spawn": "registers again",
    "broker/replication/replica_fetcher.py ReplicaFetcher._abort_when_old call_later": "it only "
    "aborts a request",
    "broker/replication/replica_fetcher_manager.py ReplicaFetcherManager._fetcher spawn": "the "
    "next round begins",
    "broker/process/server.py KafkaServer._every every": "the series goes on",
    "runtime/timer.py Timer._set_alarm call_later": "each task is guarded; the next alarm is set",
    "broker/topics/topic_config_changes.py TopicConfigChanges.start spawn": "reads the changes "
    "again",
    "broker/replication/unconfirmed_leaderships.py UnconfirmedLeaderships._doubt spawn": "asks "
    "again",
    "consumer/zookeeper/member.py ZooKeeperMember._commit_finally call_later": "only closes",
    "client/cluster.py ClusterClient.find_silent spawn": "it counts as silent",
    "client/run_concurrently.py run_concurrently spawn": "raised in the task that waits for all",
    "consumer/zookeeper/member.py ZooKeeperMember._start spawn": "commits the next time",
    "consumer/fetching/fetcher.py PartitionFetcher.start spawn": "its partitions find a leader",
    "consumer/fetching/fetcher_manager.py FetcherManager.add spawn": "the search goes on",
    "consumer/group/committer.py Committer.start spawn": "becomes the error of the commit",
    "consumer/group/group_member.py GroupMember.subscribe spawn": "tried again after a pause",
    "consumer/group/broker_queries.py BrokerQueries._ask spawn": "raised by the call that asks",
    "consumer/group/start_finder.py StartFinder._spawn spawn": "the next poll searches again",
    "consumer/zookeeper/rebalancer.py Rebalancer.start spawn": "the attempt is made again",
    "consumer/zookeeper/unread_streams.py UnreadStreams.start spawn": "no more warnings",
    "exporter/probe.py Probe._follow_partitions spawn": "reads again after a pause",
    "network/accepted_connection.py AcceptedConnection.__init__ when_readable": "ends that "
    "connection",
    "network/accepted_connection.py AcceptedConnection._schedule call_soon": "ends that connection",
    "network/accepted_connection.py AcceptedConnection._flush when_writable": "ends that "
    "connection",
    "network/server.py SocketServer.start when_acceptable": "ends that one, accepts the next",
    "network/server.py SocketServer._pause_accepting _call_later": "it only starts a watcher",
    "network/server.py SocketServer._take _call_later": "the next connection sets the check anew",
    "network/server.py SocketServer._close_idle _call_later": "the next connection sets it anew",
    "network/server.py SocketServer.close_later _call_later": "the idle check closes it",
    "network/server.py SocketServer.look_after _call_later": "the idle check closes it",
    "mirror/mirror.py Mirror._copy spawn": "the mirror ends, and raises it",
    "producer/old/async_queue.py AsyncQueue.__init__ spawn": "the next batch is sent",
    "producer/sender.py Sender.start spawn": "every record that is left is failed",
    "runtime/greenlets.py GeventRuntime.every spawn": "the series goes on",
}
"""Where it begins → what an unexpected exception there comes to. Who adds a place makes sure of its
line, with a test in the package's own tests."""


def starts(node: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[str]:
    """`Class.method starter` of every call in `node` that starts something."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from starts(child, (*scope, child.name))
            continue
        called = child.func if isinstance(child, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in STARTERS:
            yield f"{'.'.join(scope)} {called.attr}"
        yield from starts(child, scope)


def test_every_root_is_listed() -> None:
    """A new one needs a guard, and a line in ROOTS that says what it does."""
    found = {
        f"{file.relative_to(SOURCE)} {start}"
        for package in PACKAGES
        for file in (SOURCE / package).rglob("*.py")
        for start in starts(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert set(ROOTS) == found


HALTING_PACKAGES = ("broker", "network", "runtime")
BROAD = frozenset({"Exception", "BaseException", "KafkaError"})
PASSES_ON = frozenset(
    {"uncaught", "fail", "_failed", "on_error", "refusal", "refused_result", "complete"}
)
"""Calls that end in kafka08.runtime.uncaught, or raise a StorageError again."""

NO_DISK = {
    "broker/process/main.py run_patched": "the process ends",
    "broker/process/server.py KafkaServer._log_errors_of": "the process ends",
    "broker/requests/handlers/metadata_0_9.py create_one": "creates a topic in ZooKeeper",
    "broker/requests/handlers/create_topics.py create": "creates a topic in ZooKeeper",
    "broker/requests/handlers/alter_configs.py alter": "writes ZooKeeper",
    "broker/requests/handlers/describe_configs.py describe": "reads ZooKeeper",
    "broker/process/controlled_shutdown.py request_controlled_shutdown": "asks the controller",
    "broker/controller/controller.py Controller._run": "ZooKeeper and other brokers",
    "broker/controller/controller.py Controller._give_up": "ZooKeeper and other brokers",
    "broker/controller/broker_channel.py BrokerChannel._exchange": "another broker",
    "broker/controller/state_changes.py StateChanges._initialize": "ZooKeeper",
    "broker/replication/follower_truncation.py FollowerTruncation._confirm": "reads ZooKeeper",
    "broker/transactions/marker_sender.py MarkerSender._search": "reads ZooKeeper",
    "network/server.py SocketServer._on_acceptable": "a socket",
    "runtime/threads.py ThreadRuntime.spawn.run": "a client's thread",
    "runtime/asyncio_loop.py LoopTask._run": "a client's task",
    "runtime/greenlets.py NativePool._work": "carried to the hub",
}
"""Where an exception is caught that is no StorageError → what is done there."""


def names(kind: ast.expr | None) -> set[str]:
    """The classes that a handler catches."""
    elements = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return {one.id for one in elements if isinstance(one, ast.Name)} if kind else {"BaseException"}


def swallowing(node: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[str]:
    """The functions with a broad handler that may keep a StorageError to itself."""
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            inner = (*scope, child.name)
        if isinstance(child, ast.Try):
            for handler in child.handlers:
                caught = names(handler.type)
                if "StorageError" in caught:
                    break
                inside = [part for line in handler.body for part in ast.walk(line)]
                passes = any(
                    isinstance(part, ast.Raise)
                    or (
                        isinstance(part, ast.Call)
                        and getattr(part.func, "attr", getattr(part.func, "id", "")) in PASSES_ON
                    )
                    for part in inside
                )
                if caught & BROAD and not passes:
                    yield ".".join(inner)
        yield from swallowing(child, inner)


def test_no_handler_swallows_a_storage_error() -> None:
    """A broad handler passes it on, or nothing below it uses the disk: a broker whose disk failed
    must not answer as if it had not."""
    found = {
        f"{file.relative_to(SOURCE)} {function}"
        for package in HALTING_PACKAGES
        for file in (SOURCE / package).rglob("*.py")
        for function in swallowing(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert set(NO_DISK) == found
