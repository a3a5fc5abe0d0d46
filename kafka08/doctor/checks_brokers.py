"""Checks of brokers, the controller, and ZooKeeper itself."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Final

from kafka08.doctor.check import Found, Z, note, problem
from kafka08.doctor.snapshot import BrokerFacts, Snapshot
from kafka08.levels import Level
from kafka08.listing import counted, some_of
from kafka08.structs import host_port
from kafka08.zk import paths

CLOCK_MS_MAX: Final = 30_000
"""A broker may write its registration some seconds after it took the time in it."""
SLOW_S: Final = 1.0
ZOOKEEPER_SLOW_S: Final = 0.5
STARTING_MS: Final = 60_000
"""A broker that registered less than this ago may not have received all metadata."""
LOOPBACK: Final = ("localhost", "127.")
ISR_NOTIFICATIONS_MAX: Final = 1000


def name_of(broker: BrokerFacts) -> str:
    registration = broker.registration
    if registration is None or registration.host is None:
        return f"broker {broker.broker_id}"
    return f"broker {broker.broker_id} ({host_port(registration.host, registration.port)})"


def _is_settled(snapshot: Snapshot, broker: BrokerFacts) -> bool:
    return snapshot.now_ms - broker.created_ms > STARTING_MS


def _none(snapshot: Snapshot) -> Iterator[Found]:
    if not snapshot.brokers:
        there = some_of(snapshot.elsewhere)
        says = f" here, but at {there}: give that address of ZooKeeper" if there else ""
        yield Found(paths.BROKER_IDS, f"no broker is registered{says}")


def _unreadable(snapshot: Snapshot) -> Iterator[Found]:
    for broker in snapshot.brokers.values():
        if broker.registration is None:
            yield Found(paths.broker(broker.broker_id), f"cannot be read: {broker.fault}")


def _unreachable(is_controller: bool, snapshot: Snapshot) -> Iterator[Found]:
    for broker, _ in snapshot.registered():
        if (broker.broker_id == snapshot.view.controller) is not is_controller:
            continue
        if broker.unreachable is not None:
            yield Found(name_of(broker), f"does not respond here: {broker.unreachable}")


def _slow(snapshot: Snapshot) -> Iterator[Found]:
    for broker in snapshot.brokers.values():
        if broker.unreachable is None and broker.seconds > SLOW_S:
            yield Found(
                name_of(broker), f"took {broker.seconds:.1f} s to respond to a Metadata request"
            )


def _loopback(snapshot: Snapshot) -> Iterator[Found]:
    registered = list(snapshot.registered())
    local = [broker for broker, at in registered if (at.host or "").startswith(LOOPBACK)]
    if len(local) < len(registered):
        for broker in local:
            yield Found(name_of(broker), "advertises a loopback address, other brokers do not")


def _same_address(snapshot: Snapshot) -> Iterator[Found]:
    by_address: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for broker, registration in snapshot.registered():
        if registration.host is not None:
            by_address[registration.host, registration.port].append(broker.broker_id)
    for (host, port), ids in by_address.items():
        if len(ids) > 1:
            yield Found(host_port(host, port), f"brokers {', '.join(map(str, ids))} advertise it")


def _left_behind(snapshot: Snapshot) -> Iterator[Found]:
    counts = Counter(
        replica
        for _, partition in snapshot.partitions()
        for replica in partition.replicas
        if replica not in snapshot.brokers
    )
    for broker_id, count in sorted(counts.items()):
        yield Found(
            f"broker {broker_id}",
            f"is not registered: it is down, or cut off from ZooKeeper, with "
            f"{counted(count, 'replica')}",
        )


def _apart(own_ms: int, zookeeper_ms: int) -> str:
    """`31 s behind ZooKeeper's`; empty for clocks that agree well enough."""
    apart = own_ms - zookeeper_ms
    direction = "ahead of" if apart > 0 else "behind"
    return f"{abs(apart) // 1000} s {direction} ZooKeeper's" if abs(apart) > CLOCK_MS_MAX else ""


def _clock(snapshot: Snapshot) -> Iterator[Found]:
    for broker, registration in snapshot.registered():
        own_ms, zookeeper_ms = registration.timestamp_ms, broker.created_ms
        if own_ms > 0 and zookeeper_ms and (apart := _apart(own_ms, zookeeper_ms)):
            yield Found(name_of(broker), f"its clock is {apart}")


def _controller_clock(snapshot: Snapshot) -> Iterator[Found]:
    """The controller's clock at its election, which is often more recent than a registration."""
    if snapshot.controller_clocks is None:
        return
    own_ms, zookeeper_ms = snapshot.controller_clocks
    if own_ms > 0 and (apart := _apart(own_ms, zookeeper_ms)):
        yield Found(
            f"broker {snapshot.view.controller}",
            f"its clock was {apart} when it became controller",
        )


def _local_clock(snapshot: Snapshot) -> Iterator[Found]:
    newest_ms = max(
        [
            *(broker.created_ms for broker in snapshot.brokers.values()),
            *(topic.created_ms for topic in snapshot.topics.values()),
            *([snapshot.controller_clocks[1]] if snapshot.controller_clocks else []),
        ],
        default=0,
    )
    read_ms = snapshot.now_ms if snapshot.clock_read_ms is None else snapshot.clock_read_ms
    ahead_ms = newest_ms - read_ms
    if ahead_ms > CLOCK_MS_MAX:
        yield Found(
            "this machine", f"its clock is at least {ahead_ms // 1000} s behind ZooKeeper's"
        )


def _misses_brokers(snapshot: Snapshot) -> Iterator[Found]:
    for broker in snapshot.brokers.values():
        # 0.8: a broker learns of other brokers together with its first topic.
        if broker.unreachable is None and broker.leaders and _is_settled(snapshot, broker):
            missing = snapshot.live - broker.known_brokers
            if missing:
                names = ", ".join(map(str, sorted(missing)))
                yield Found(name_of(broker), f"does not report broker {names} to clients")


def _stale_leaders(snapshot: Snapshot) -> Iterator[Found]:
    source = "ZooKeeper" if snapshot.place.zookeeper else "another broker"
    leaders = {
        tp: partition.state.leader
        for tp, partition in snapshot.partitions()
        if partition.state is not None
    }
    for broker in snapshot.brokers.values():
        if broker.unreachable is not None or not _is_settled(snapshot, broker):
            continue
        wrong = [tp for tp, leader in broker.leaders.items() if leaders.get(tp, leader) != leader]
        if wrong:
            yield Found(
                name_of(broker),
                f"reports another leader than {source} for {len(wrong)} partitions, such "
                f"as {wrong[0]}",
            )


def _mixed_versions(snapshot: Snapshot) -> Iterator[Found]:
    versions = {registration.version for _, registration in snapshot.registered()}
    if len(versions) > 1:
        yield Found(
            paths.BROKER_IDS,
            f"registrations have the versions {', '.join(map(str, sorted(versions)))} (1 is 0.8, 2 "
            "is 0.9, higher ones are 0.10 or later)",
        )


def _ahead(snapshot: Snapshot) -> Iterator[Found]:
    """A broker of 0.10 that has pinned the protocol of its peers registers as an earlier one. Those
    from 0.10 on register alike, but from 0.11 on they describe their protocol."""
    of_0_8 = [broker.broker_id for broker, at in snapshot.registered() if at.level < Level.V0_9_0]
    of_0_10 = [broker.broker_id for broker, _ in snapshot.registered() if broker.protocol == ""]
    for broker, registration in snapshot.registered():
        if of_0_8 and registration.level > Level.V0_9_0:
            yield _unread(broker, "0.10 or later", of_0_8, "0.8")
        if of_0_10 and _is_after_0_10(broker.protocol):
            yield _unread(broker, f"0.11 or later ({broker.protocol})", of_0_10, "0.10")


def _unread(broker: BrokerFacts, spoken: str, readers: list[int], release: str) -> Found:
    names = ", ".join(map(str, readers))
    return Found(
        name_of(broker),
        f"speaks the protocol of {spoken} to broker {names} of {release}, which cannot read it",
    )


def _is_after_0_10(protocol: str | None) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", protocol or "")
    return numbers is not None and (int(numbers[1]), int(numbers[2])) > (0, 10)


def _no_controller(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.brokers and snapshot.view.controller is None and snapshot.place.zookeeper:
        yield Found(
            paths.CONTROLLER,
            snapshot.view.faults.get(paths.CONTROLLER) or "no broker is controller",
        )


def _dead_controller(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.view.controller is not None and snapshot.view.controller not in snapshot.brokers:
        yield Found(paths.CONTROLLER, f"broker {snapshot.view.controller} is not registered")


def _controller_epoch(snapshot: Snapshot) -> Iterator[Found]:
    epoch = snapshot.controller_epoch or 0
    ahead = [
        tp
        for tp, partition in snapshot.partitions()
        if partition.state is not None and partition.state.controller_epoch > epoch
    ]
    if ahead:
        yield Found(
            paths.CONTROLLER_EPOCH,
            f"is {epoch}, but the states of {len(ahead)} partitions have a higher one, such as "
            f"{ahead[0]}",
        )


def _slow_zookeeper(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.zookeeper_seconds > ZOOKEEPER_SLOW_S:
        yield Found("ZooKeeper", f"took {snapshot.zookeeper_seconds:.1f} s for a single read")


def _isr_notifications(snapshot: Snapshot) -> Iterator[Found]:
    if snapshot.isr_notifications > ISR_NOTIFICATIONS_MAX:
        yield Found(
            "/isr_change_notification", f"has {snapshot.isr_notifications} notifications pending"
        )


CHECKS: Final = (
    problem("no-brokers", "nothing can be produced or consumed",
            "look at the log of a broker that runs, or start one: "
            "kafka08 broker start server.properties", _none),
    problem("broker-unreadable", "the controller treats that broker as dead",
            "restart that broker: it registers again", _unreadable),
    problem("broker-unreachable",
            "clients are sent to that address; from here they cannot connect to it",
            "look at the end of its log ('Too many open files', say), and whether it runs and this "
            "machine reaches that address; if the address is wrong, set advertised.host.name in "
            "its server.properties (advertised.listeners from 0.9 on), and restart it",
            partial(_unreachable, False)),
    problem("broker-slow", "requests of clients wait as long",
            "look at the CPU, the memory and the disks of its machine, and at its log", _slow),
    problem("broker-loopback", "clients on other machines connect to themselves",
            "set advertised.host.name in its server.properties and restart it", _loopback),
    problem("broker-same-address", "clients of one broker reach the other",
            "give one of them another port, or advertised.host.name, in its server.properties, and "
            "restart it", _same_address),
    problem("broker-left-behind", "partitions have fewer copies than they should",
            "start it again (the last CRITICAL line of its log has the reason: a full disk, say), "
            "or move its replicas: kafka08 partition reassign --help", _left_behind),
    problem("broker-clock", "retention, offsets and log lines use clocks that differ",
            "run an NTP client on that machine", _clock),
    problem("controller-clock", "retention, offsets and log lines use clocks that differ",
            "run an NTP client on that machine", _controller_clock),
    problem("local-clock", "ages and lags in time that tools show here are wrong by as much",
            "run an NTP client on this machine", _local_clock),
    problem("broker-misses-brokers", "clients that ask this broker do not find the others",
            "if it stays so for a minute, restart that broker: the controller then sends it all "
            "metadata", _misses_brokers),
    problem("broker-stale-leaders", "clients that ask this broker go to the wrong one",
            "if it stays so for a minute, restart that broker: the controller then sends it all "
            "metadata", _stale_leaders),
    note("broker-versions-mixed", "the cluster is being upgraded: an upgrade that stops half way "
         "keeps the old protocol", f"kafka08 broker list {Z}", _mixed_versions),
    problem("broker-protocol-ahead", "they fetch from it in vain: their replicas never get in sync",
            "set inter.broker.protocol.version and log.message.format.version in its "
            "server.properties to the release of those that cannot read it (0.8.2, 0.10.2), or a "
            "higher api.level in theirs, and restart it, or them",
            _ahead),
    problem("controller-none", "no leader is elected when a broker fails, no topic is created",
            "restart one broker, if it stays so for longer than a minute", _no_controller),
    problem("controller-dead", "no leader is elected until its session ends",
            f"kafka08 broker list {Z}", _dead_controller),
    problem("controller-unreachable", "while it hangs no leader is elected, no topic created, "
            "and clients are sent there",
            "stop that broker if it hangs: another one becomes the controller",
            partial(_unreachable, True)),
    problem("controller-epoch", "brokers reject the controller's requests",
            "find out who wrote /controller_epoch; a restored ZooKeeper does that",
            _controller_epoch),
    problem("zookeeper-slow", "brokers and consumers lose their sessions when it gets slower",
            "look at its disk: the transaction log wants one of its own", _slow_zookeeper),
    problem("isr-notifications", "the controller ignores them, so metadata are stale",
            "restart the broker that is controller", _isr_notifications),
)  # fmt: skip
