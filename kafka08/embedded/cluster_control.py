"""ClusterControl: what other programs may ask of a running cluster, as one table of verbs.

A verb is a method with its HTTP method and path. The HTTP server (control_app.py), its OpenAPI
description and the commands (control.py) are made from this table: parameters and their types are
those of the method, in the path or, all others, in a JSON object that is the request's body.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_type_hints

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.fault_rules import FaultRule
from kafka08.errors import ConfigError, KafkaError
from kafka08.faults.rule import Rule
from kafka08.nearest import did_you_mean
from kafka08.structs import TopicPartition

WAIT_S_MAX: Final = 600.0
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Verb:
    """One thing to ask for.

    name         of the method, and for commands
    method       GET, POST or DELETE
    path         with the parameters in braces that it has
    parameters   name → (type, default); `inspect.Parameter.empty` for a required one
    is_checked   whether the types of its arguments are checked here; a rule checks its own
    """

    name: str
    method: str
    path: str
    summary: str
    parameters: Mapping[str, tuple[type, Any]]
    is_checked: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[0-9]{1,9})", self.path))

    @property
    def in_path(self) -> set[str]:
        return set(re.findall(r"{(\w+)}", self.path))

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the method. ConfigError for an unknown, missing or illegal one."""
        for name in given:
            if name not in self.parameters:
                suggestion = did_you_mean(name, self.parameters)
                raise ConfigError(f"{name}: {self.name} has no such parameter{suggestion}")
        for name, (of, default) in self.parameters.items():
            if name not in given and default is inspect.Parameter.empty:
                raise ConfigError(f"{name}: {self.name} needs it")
            if name in given and self.is_checked and not _is_of(given[name], of):
                raise ConfigError(f"{name}: {given[name]!r:.100} is not of type {of.__name__}")
        return dict(given)


def _is_of(value: object, of: type) -> bool:
    if of is float:
        return type(value) in (int, float)
    return type(value) is of


def verb(method: str, path: str) -> Callable[[F], F]:
    """Make a method a verb."""

    def mark(call: F) -> F:
        call.__dict__["verb"] = method, path
        return call

    return mark


class ClusterControl:
    """The verbs of one cluster. Any thread may call them; those that change it wait for each other,
    and `changed` is called after each."""

    def __init__(
        self, cluster: EmbeddedCluster, changed: Callable[[], object] = lambda: None
    ) -> None:
        self._cluster = cluster
        self._changed = changed
        self._lock = threading.RLock()

    def execute(self, name: str, parameters: Mapping[str, Any]) -> Any:
        """Do it; the result is JSON. ConfigError for an unknown verb or wrong parameters,
        KafkaError if it cannot be done."""
        found = VERBS.get(name)
        if found is None:
            raise ConfigError(f"there is no verb {name!r:.100}{did_you_mean(name, VERBS)}")
        arguments = found.checked(parameters)
        if found.method == "GET" or name.startswith("wait_"):
            return self._done(name, arguments)
        with self._lock:
            try:
                return self._done(name, arguments)
            finally:
                self._changed()

    def _done(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The result of a verb; of one that has none the state of its broker."""
        result = getattr(self, name)(**arguments)
        return self._state(arguments["broker"]) if result is None else result

    # The cluster

    @verb("GET", "/cluster")
    def cluster(self) -> Any:
        """Addresses, level, and the state of each broker."""
        cluster = self._cluster
        return {
            "zookeeper": cluster.zookeeper.connect_string,
            "bootstrap": cluster.bootstrap,
            "level": cluster.level,
            "brokers": [self._state(broker) for broker in cluster.brokers],
        }

    @verb("POST", "/heal")
    def heal(self) -> Any:
        """Undo every fault, and wait until all brokers are ready. Rules go too."""
        self._cluster.heal()
        return self.cluster()

    @verb("POST", "/reset")
    def reset(self) -> Any:
        """Heal the cluster, and delete all topics, groups and offsets."""
        self._cluster.reset()
        return self.cluster()

    @verb("POST", "/topics")
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: dict[str, Any] = {},  # noqa: B006 - never changed
    ) -> Any:
        """Create a topic, and wait until every broker knows it."""
        self._cluster.create_topic(name, partitions, replication_factor, config)
        return {"name": name}

    # Brokers

    @verb("POST", "/brokers/{broker}/kill")
    def kill(self, broker: int, expire: bool = False) -> None:
        """SIGKILL, as a crash. `expire`: end its ZooKeeper session too, so that the cluster notices
        at once."""
        found = self._cluster.find(broker)
        if found.running:
            self._cluster.kill(found, expire=expire)

    @verb("POST", "/brokers/{broker}/stop")
    def stop(self, broker: int) -> None:
        """Stop a broker cleanly: its leaders move to others first."""
        found = self._cluster.find(broker)
        if found.running:
            found.stop()

    @verb("POST", "/brokers/{broker}/restart")
    def restart(self, broker: int) -> None:
        """Stop a broker cleanly, if it runs, and start it again."""
        found = self._cluster.find(broker)
        if not found.running:
            # It registers again when its old session has expired, which may take some seconds.
            self._cluster.expire_session(found)
        try:
            self._cluster.restart(found)
        except KafkaError:
            # The requester gets the error; the cluster continues, even without any broker.
            found.note_death()
            raise

    @verb("POST", "/brokers/{broker}/pause")
    def pause(self, broker: int) -> None:
        """SIGSTOP: connections stay open, and the broker does not respond."""
        self._cluster.pause(broker)

    @verb("POST", "/brokers/{broker}/resume")
    def resume(self, broker: int) -> None:
        """Let a paused broker go on."""
        self._cluster.resume(broker)

    @verb("POST", "/brokers/{broker}/cut")
    def cut(self, broker: int) -> None:
        """Cut a broker's network; needs `up --cuttable`."""
        self._cluster.cut(broker)

    @verb("POST", "/brokers/{broker}/restore")
    def restore(self, broker: int) -> None:
        """Restore a broker's network."""
        self._cluster.restore(broker)

    @verb("POST", "/brokers/{broker}/reset-connections")
    def reset_connections(self, broker: int) -> None:
        """Reset every connection that others have to a broker; needs `up --cuttable`."""
        self._cluster.reset_connections(broker)

    @verb("POST", "/brokers/{broker}/expire")
    def expire(self, broker: int) -> None:
        """Expire a broker's ZooKeeper session."""
        self._cluster.expire_session(broker)

    @verb("POST", "/brokers/{broker}/corrupt")
    def corrupt(self, broker: int, topic: str, partition: int = 0, size: int = 16) -> Any:
        """Flip the last bytes of a broker's log of a partition."""
        return {"file": str(self._cluster.corrupt_tail(broker, topic, partition, size))}

    @verb("POST", "/brokers/{broker}/break-disk")
    def break_disk(
        self, broker: int, full: bool = False, failing_fsync: bool = False, delay_ms: int = 0
    ) -> None:
        """Let a broker's disk be full, fail to sync, or be slow. A broker that meets one of the
        first two halts."""
        self._cluster.break_disk(broker, full=full, failing_fsync=failing_fsync, delay_ms=delay_ms)

    @verb("POST", "/brokers/{broker}/repair-disk")
    def repair_disk(self, broker: int) -> None:
        """End the fault of a broker's disk. One that has halted is started by `restart`."""
        self._cluster.repair_disk(broker)

    # Fault rules

    @verb("POST", "/faults")
    def add_fault(self, **rule: Any) -> Any:
        """Add a fault rule; the body is the rule."""
        return described(self._cluster.faults.add(**rule))

    @verb("GET", "/faults")
    def faults(self) -> Any:
        """All rules."""
        return [described(rule) for rule in self._cluster.faults]

    @verb("GET", "/faults/{number}")
    def fault(self, number: int) -> Any:
        """A rule and its hits."""
        return described(self._cluster.faults.find(number))

    @verb("POST", "/faults/{number}/wait")
    def wait_fault(self, number: int, hits: int = 1, timeout: float = 30.0) -> Any:
        """Wait until a rule has hit so many requests."""
        rule = self._cluster.faults.find(number)
        rule.wait(hits, _timeout(timeout))
        return described(rule)

    @verb("DELETE", "/faults/{number}")
    def remove_fault(self, number: int) -> Any:
        """Remove a rule; returns its hits."""
        rule = self._cluster.faults.find(number)
        rule.remove()
        return described(rule)

    @verb("DELETE", "/faults")
    def remove_faults(self) -> Any:
        """Remove all rules."""
        removed = self.faults()
        self._cluster.faults.clear()
        return removed

    # Waits

    @verb("POST", "/wait/topic")
    def wait_topic(self, name: str, timeout: float = 30.0) -> Any:
        """Wait until every running broker knows a topic and its leaders."""
        self._cluster.wait.topic(name, _timeout(timeout))
        return {}

    @verb("POST", "/wait/isr")
    def wait_isr(self, topic: str, timeout: float = 30.0) -> Any:
        """Wait until all replicas of a topic are in sync."""
        self._cluster.wait.isr(topic, _timeout(timeout))
        return {}

    @verb("POST", "/wait/leader")
    def wait_leader(
        self, topic: str, partition: int = 0, other_than: int = -1, timeout: float = 30.0
    ) -> Any:
        """Wait until a partition has a leader other than that broker."""
        former = None if other_than < 0 else other_than
        leader = self._cluster.wait.leader(
            topic, partition, other_than=former, timeout=_timeout(timeout)
        )
        return {"leader": leader.id}

    @verb("POST", "/wait/group")
    def wait_group(self, name: str, members: int, timeout: float = 30.0) -> Any:
        """Wait until a group is stable with so many members; returns what each owns."""
        owned = self._cluster.wait.group(name, members, _timeout(timeout))
        return {member: [[*partition] for partition in sorted(of)] for member, of in owned.items()}

    @verb("POST", "/wait/committed")
    def wait_committed(
        self, group: str, topic: str, partition: int, offset: int, timeout: float = 30.0
    ) -> Any:
        """Wait until a group has committed an offset, or a later one; returns it."""
        tp = TopicPartition(topic, partition)
        return {"offset": self._cluster.wait.committed(group, tp, offset, _timeout(timeout))}

    @verb("POST", "/wait/lag")
    def wait_lag(self, group: str, at_most: int = 0, timeout: float = 30.0) -> Any:
        """Wait until a group has read and committed all but so many messages."""
        return {"lag": self._cluster.wait.lag(group, at_most, timeout=_timeout(timeout))}

    def _state(self, broker: EmbeddedBroker | int) -> dict[str, Any]:
        broker = self._cluster.find(broker)
        state = broker.state
        condition = "paused" if broker.is_paused else state.condition
        return {"id": broker.id, "address": state.address, "condition": condition,
                "pid": state.pid, "text": str(state)}  # fmt: skip


def described(rule: FaultRule) -> dict[str, Any]:
    """A rule for JSON."""
    return {
        "number": rule.number, "rule": rule.rule.to_json(),
        "matches": rule.matches, "hits": rule.hits,
    }  # fmt: skip


def _timeout(seconds: float) -> float:
    if not 0 <= seconds <= WAIT_S_MAX:
        raise ConfigError(f"timeout: {seconds} is not from 0 to {WAIT_S_MAX:g} seconds")
    return seconds


def _verb(name: str, call: Callable[..., Any]) -> Verb:
    method, path = call.__dict__["verb"]
    summary = (inspect.getdoc(call) or "").partition("\n\n")[0]
    of_rule = get_type_hints(Rule)
    rule = {of.name: (_plain(of_rule[of.name]), None) for of in fields(Rule)}
    hints = get_type_hints(call)
    signature = list(inspect.signature(call).parameters.values())[1:]
    is_of_rule = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature)
    own = {of.name: (_plain(hints[of.name]), of.default) for of in signature}
    return Verb(name, method, path, summary, rule if is_of_rule else own, not is_of_rule)


def _plain(hint: Any) -> type:
    """The type of JSON values of a hint: `str` of `str | None`, `dict` of `Mapping[...]`."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    plain = kinds[0] if NoneType in get_args(hint) else hint
    return plain if plain in (int, str, float, bool) else dict


VERBS: Final[Mapping[str, Verb]] = {
    name: _verb(name, call) for name, call in vars(ClusterControl).items() if hasattr(call, "verb")
}
"""All verbs, by name."""
