"""Completion by Tab: names of the cluster, or nothing if it does not respond."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pytest

from kafka08.cli import completion_source
from kafka08.cli.completion_source import complete, keys_of, source_of, within
from kafka08.embedded.broker_state import BrokerState
from kafka08.embedded.detached import ClusterDirectory
from kafka08.structs import TopicPartition
from kafka08.zk.group_store import GroupStore
from tests.cli.conftest import COMMAND, Commands, Inspector
from tests.waiting import until


def offered(words: str, environ: dict[str, str]) -> set[str]:
    """The words that bash gets for a line, whose last word is completed."""
    done = subprocess.run(
        COMMAND,
        env={
            **environ,
            "_KAFKA08_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "" == done.stderr
    return {line.partition(",")[2] for line in done.stdout.split()}


def is_offered(words: str, name: str, environ: dict[str, str]) -> bool:
    """Checks that exactly this is offered."""
    return {name} == offered(words, environ)


def test_names_come_from_the_cluster(kafka08: Commands, inspect: Inspector) -> None:
    """ZooKeeper has the names of topics, groups and brokers. For `produce` the brokers have those
    of topics."""
    topic = group = inspect.create_topic("tab-by-cli")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    environ = kafka08.environ
    for words, expected in (
        ("kafka08 topic describe tab-by", topic),
        ("kafka08 topics describe tab-by", topic),
        ("kafka08 produce tab-by", topic),
        ("kafka08 group describe tab-by", group),
        ("kafka08 consume t --group tab-by", group),
        ("kafka08 partition reassign --brokers 0,1", "0,1"),
    ):
        # A busy machine may answer too late for the first Tab.
        until(partial(is_offered, words, expected, environ), f"an offer for {words}")
    assert set() == offered("kafka08 topic create tab-by", environ)


def test_brokers_of_the_local_cluster_are_offered(tmp_path: Path) -> None:
    """`up kill`, `stop` and `restart` find the brokers by the cluster's directory."""
    directory = ClusterDirectory(tmp_path)
    assert directory.claim()
    brokers = tuple(
        BrokerState(n, f"h:{n}", "running", 1, None, 0.0, "server.log") for n in range(2)
    )
    directory.announce("h:1", "h:0", brokers)
    for environ, words in (
        ({"KAFKA08_DATA_DIR": str(tmp_path)}, "kafka08 up kill "),
        ({}, f"kafka08 up restart --data-dir {tmp_path} "),
    ):
        assert {"0", "1"} == offered(words, {**os.environ, **environ})
    directory.release()


def test_a_value_follows_its_key_without_a_blank() -> None:
    """bash puts a blank behind other words, but not behind a key and its equals sign."""
    script = """
        source <("$KAFKA08" completion bash)
        compopt() { echo "$@"; }
        for last in auto.offset.res nothing; do
            COMP_WORDS=(kafka08 consume t --override $last) COMP_CWORD=4 COMPREPLY=()
            _kafka08_completion "$KAFKA08"
            echo "${COMPREPLY[@]}"
        done"""
    command = str(Path(sys.executable).with_name("kafka08"))
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "KAFKA08": command},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ["-o nospace", "auto.offset.reset=", ""] == done.stdout.splitlines()


def test_keys_come_with_their_equals_sign() -> None:
    """A command offers the keys of its own configuration, with an equals sign; --delete-config
    offers the bare keys."""
    assert {"retention.ms=", "retention.bytes="} == offered(
        "kafka08 topic create t --config retention.", dict(os.environ)
    )
    assert "retention.ms" in offered(
        "kafka08 topic alter t --delete-config retention", dict(os.environ)
    )
    assert {"zookeeper.sync.time.ms="} == offered(
        "kafka08 consume t --override zookeeper.sync", dict(os.environ)
    )


def test_a_cluster_that_is_not_there_offers_nothing() -> None:
    """Without a cluster nothing is offered, and no error is printed into the line."""
    dead = {**os.environ, "KAFKA08_ZOOKEEPER": "127.0.0.1:1", "KAFKA08_BOOTSTRAP": "127.0.0.1:1"}
    assert set() == offered("kafka08 topic describe t", dead)


@pytest.mark.parametrize("source", ["topics", "groups", "brokers"])
def test_the_libraries_are_imported_outside_the_limit(source: str) -> None:
    """Asking the cluster imports nothing large: that took longer than the limit on a busy machine,
    so a Tab there offered nothing."""
    script = f"""
import sys, click
from kafka08.cli import completion_source
context = click.Context(click.Command("c"))
context.params.update(zookeeper="127.0.0.1:1", bootstrap="127.0.0.1:1")
completion_source.{source}(context)
print("kazoo.client" in sys.modules, "kafka08.admin" in sys.modules or "{source}" == "groups")"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert "True True" == done.stdout.strip()


def test_keys_are_offered_however_long_their_imports_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a cluster may not respond. (On a busy machine Tab offered no keys.)"""

    def keys_in_a_while(_: str) -> list[str]:
        time.sleep(0.2)
        return ["retention.ms"]

    monkeypatch.setattr(completion_source, "keys_of", keys_in_a_while)
    monkeypatch.setattr(completion_source, "TIMEOUT_S", 0.01)
    context = click.Context(click.Command("create"))
    [item] = completion_source.complete(completion_source.config_keys, context, "retention")
    assert "retention.ms=" == item.value


def test_the_wait_has_a_bound() -> None:
    """A ZooKeeper that does not respond delays the completion by its limit at most."""
    never = threading.Event()
    assert () == within(0.01, lambda: lambda: [str(never.wait(60))])
    never.set()
    assert ["a"] == within(60, lambda: lambda: ["a"])


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("kafka08 broker start", "log.dirs"),
        ("kafka08 up", "log.dirs"),
        ("kafka08 perf consume", "group.id"),
        ("kafka08 produce", "linger.ms"),
        ("kafka08 produce", "producer.type"),
    ],
)
def test_each_command_has_its_own_keys(path: str, key: str) -> None:
    """A command offers the keys of the class that reads them."""
    assert key in keys_of(path)


def test_a_count_is_not_a_broker() -> None:
    """The value of `up --brokers` is a number, so no broker ids are offered."""
    assert source_of(click.Option(["--brokers"], type=int)) is None


def test_only_plain_names_are_offered() -> None:
    """Anybody can make a group with a name that a shell executes."""
    plain = ["group-1", "a.b_c", "KEY=", "1"]
    hostile = [
        "a$(id)",
        "a`id`",
        "a;id",
        "a b",
        "a*",
        "--delete",
        "a\nb",
        "~",
        "a'",
        "a|b",
        "a&b",
        "ä",
    ]

    def source(_: click.Context) -> Callable[[], list[str]]:
        return lambda: plain + hostile

    context = click.Context(click.Command("c"))
    assert sorted(plain) == [item.value for item in complete(source, context, "")]
