"""Objects that hold threads or connections: who owns them, and what they do in a forked process."""

from __future__ import annotations

import ast
import copy
import importlib
import logging
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import kafka08
from kafka08 import lifecycle
from kafka08.lifecycle import Closeable, ProcessBound, unusable
from kafka08.runtime.threads import THREADS
from tests.forking import in_child

SOURCE = Path(kafka08.__file__).parent
PACKAGES = ("admin", "client", "consumer", "exporter", "groups", "migration", "mirror", "network",
            "producer", "zk", "arrow", "doctor", "embedded", "pages")  # fmt: skip
HOLDING = frozenset(
    {
        *("spawn", "connect", "start_connect", "poller", "zookeeper", "Thread", "Popen", "adapter"),
        *("Connection", "ConnectionPool", "ClusterClient"),
        *("ZkClient", "AdminClient", "KafkaProducer", "ConsumerConnector", "KafkaConsumer"),
    }
)
"""The calls that start a thread or a process, open a socket, or make an object that does."""
PARTS = {
    "consumer/fetching/fetcher.py PartitionFetcher": "of a FetcherManager",
    "consumer/fetching/fetcher_manager.py FetcherManager": "of a connector or a KafkaConsumer",
    "consumer/zookeeper/rebalancer.py Rebalancer": "of a ConsumerConnector",
    "consumer/zookeeper/unread_streams.py UnreadStreams": "of a ConsumerConnector",
    "consumer/group/async_consumer.py AsyncKafkaConsumer": "all that it holds is a KafkaConsumer's",
    "consumer/group/broker_queries.py BrokerQueries": "of a KafkaConsumer",
    "consumer/group/committer.py Committer": "of a KafkaConsumer",
    "consumer/group/group_member.py GroupMember": "of a KafkaConsumer",
    "consumer/group/poller.py Poller": "of a KafkaConsumer",
    "consumer/group/start_finder.py StartFinder": "of a KafkaConsumer",
    "mirror/move.py Move": "closed before the call returns",
    "pages/console.py Console": "closed before the call returns",
    "producer/old/async_queue.py AsyncQueue": "of a Producer",
    "producer/async_producer.py AsyncKafkaProducer": "all that it holds is a KafkaProducer's",
    "producer/broker_channel.py BrokerChannel": "of a KafkaProducer",
    "producer/network_client.py NetworkClient": "of a KafkaProducer",
    "zk/server/wire_server.py WireServer": "no thread, no socket",
}
"""Classes whose owner refuses to work in a forked process, so that nothing there reaches them, and
those that hold nothing between calls."""


def module_of(path: Path) -> ModuleType:
    return importlib.import_module(
        "kafka08." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    )


def holders() -> Iterator[tuple[Path, str, str]]:
    """(file, class, call) of each call of HOLDING in a class of the clients and their tools."""
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
                        named = getattr(call.func, "attr", getattr(call.func, "id", ""))
                        if named in HOLDING:
                            yield path, node.name, named


def is_concrete(kind: type) -> bool:
    return kind is not ProcessBound and not getattr(kind, "__abstractmethods__", ())


class Owner(Closeable):
    def __init__(self) -> None:
        self.is_closed = False

    def work(self) -> str:
        return "done"

    def close(self) -> None:
        self.is_closed = True


def test_a_forked_process_can_only_end_an_object() -> None:
    """There each use is an error that says what to do; the ways to end it do nothing."""
    owner = Owner()
    assert in_child(lambda: str(owner.work())).startswith(
        "RuntimeError: the threads and connections of this Owner belong to the process that made it"
    )
    assert "make a Owner in each process" in in_child(lambda: owner.__enter__().work())
    assert in_child(owner.close) == "None"
    assert not owner.is_closed
    assert in_child(lambda: owner) == "<Owner of the process that forked this one>"
    assert owner.work() == "done"


def test_one_made_in_the_forked_process_works_there() -> None:
    """Only inherited objects are refused, also where the process forks again."""
    assert in_child(lambda: Owner().work()) == "done"
    owner = Owner()
    assert "RuntimeError" in in_child(lambda: in_child(lambda: str(owner.work())))


def test_it_is_no_value() -> None:
    """Copying and pickling say what to pass instead."""
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="pass its configuration"):
            attempt(Owner())


def test_whoever_holds_a_thread_or_a_socket_is_bound_to_its_process() -> None:
    """Every class of the clients that makes one is ProcessBound, or a part of one that is."""
    found = set()
    for path, name, call in holders():
        if not issubclass(getattr(module_of(path), name), ProcessBound):
            part = f"{path.relative_to(SOURCE)} {name}"
            found.add(part)
            assert part in PARTS, f"{part} calls {call}: it, or its owner, must be ProcessBound"
    assert found == set(PARTS), "a part holds nothing"


def test_every_bound_class_can_be_given_up() -> None:
    """A forked process can change its class: Python refuses that for some layouts."""
    for path in (path for package in PACKAGES for path in (SOURCE / package).rglob("*.py")):
        if "kafka08.lifecycle" in path.read_text():
            for kind in vars(module_of(path)).values():
                if isinstance(kind, type) and issubclass(kind, ProcessBound) and is_concrete(kind):
                    one = kind.__new__(kind)
                    one.__class__ = unusable(kind)


class Unfinished(ProcessBound):
    """Whose `_abandon` fails, as that of an object that another thread is making."""

    def _abandon(self) -> None:
        self._part  # type: ignore[attr-defined]  # noqa: B018

    def work(self) -> None:
        pass


def test_an_object_that_is_being_made_keeps_no_other_one_usable() -> None:
    """A fork while another thread makes a client: all are given up, that one too."""
    objects = [Unfinished() if number % 2 else Owner() for number in range(8)]
    refused = in_child(lambda: [in_child_text(one) for one in objects])
    assert refused.count("RuntimeError") == 8


def in_child_text(one: Owner | Unfinished) -> str:
    try:
        return str(one.work())
    except RuntimeError as error:
        return f"RuntimeError: {error}"


def test_objects_made_meanwhile_do_not_end_the_end() -> None:
    """Threads go on at the end of a program, and make connections."""
    kept = [Owner() for _ in range(200)]
    is_over = threading.Event()

    def make() -> None:
        while not is_over.is_set():
            kept.append(Owner())
            kept.pop()

    making = threading.Thread(target=make)
    making.start()
    try:
        for _ in range(300):
            assert len(lifecycle._all_bound()) >= 200
    finally:
        is_over.set()
        making.join()


class Ending(ProcessBound):
    """Notes what is asked of it at the end of the program."""

    def __init__(self, log: list[str], error: Exception | None = None) -> None:
        self._log, self._error = log, error

    def _begin_finish(self) -> None:
        self._log.append("begin")

    def _finish(self, timeout: float) -> None:
        self._log.append("finish")
        if self._error is not None:
            raise self._error


def test_all_begin_to_finish_before_one_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And the error of one is logged: the others finish. (Producers whose brokers were gone took
    the time of all, and the records of the others were lost.)"""
    log: list[str] = []
    ending = [Ending(log, OSError("broken")), Ending(log), Ending(log, OSError("broken"))]
    monkeypatch.setattr(lifecycle, "_bound", ending)
    with caplog.at_level(logging.ERROR):
        lifecycle._finish_all()
    assert log == ["begin"] * 3 + ["finish"] * 3
    assert caplog.text.count("OSError: broken") == 2


def test_forked_processes_draw_different_numbers() -> None:
    """Two members that begin in the same millisecond would have one id."""
    THREADS.random.random()
    drawn = {in_child(lambda: THREADS.random.getrandbits(64)) for _ in range(3)}
    assert len(drawn) == 3
