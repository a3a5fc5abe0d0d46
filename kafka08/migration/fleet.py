"""Many groups at once: found by name or pattern, planned in pipelines, migrated side by side.

A limit of groups a second protects the cluster from too many requests. An error of one group does
not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import GroupFacts, read_many
from kafka08.errors import KafkaError, MigrationError
from kafka08.migration.commit_times import with_commit_times
from kafka08.migration.journal import Entry, read_journals
from kafka08.migration.offset_migration import MOVEMENT_PAUSE_S, OffsetMigration
from kafka08.migration.plan import Plan, Terms
from kafka08.migration.reading import with_movement
from kafka08.migration.starting import Starting, preview_start
from kafka08.migration.verification import Verification, Watching, watch_many
from kafka08.observe.commit_times import CommitTimes
from kafka08.rate_limiter import RateLimiter
from kafka08.zk import paths
from kafka08.zk.group_store import GroupStore
from kafka08.zk.migration_protocol import OffsetStorage

T = TypeVar("T")

BATCH: Final = 200
"""Groups that go through a stage together, unless a limited rate allows fewer in a second."""
WORKERS: Final = 8
"""Groups that take another step side by side: it waits for live members most of the time."""
WILD: Final = "*?["


class Fleet(NamedTuple):
    """Groups, and what reaches them. named: those that are not passed over without any offset."""

    connections: Connections
    groups: Sequence[str]
    limiter: RateLimiter
    named: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The outcome of a step for one group: its result or its error."""

    group: str
    result: T | None
    error: KafkaError | None = None


def find_groups(
    connections: Connections,
    names: Sequence[str],
    patterns: Sequence[str] = (),
    *,
    every: bool = False,
) -> list[str]:
    """`choose_groups` of those in ZooKeeper, in its order; `every`: all of them. ConfigError for a
    name that none of them can have."""
    for name in names:
        paths.check_group(name)
    if not every and not patterns and not any(map(may_be_pattern, names)):
        return choose_groups(names, (), [], "in ZooKeeper")
    known = GroupStore(connections.zk).groups()
    chosen = choose_groups(names, patterns, known, "in ZooKeeper")
    return list(dict.fromkeys([*chosen, *known])) if every else chosen


def choose_groups(
    names: Sequence[str], patterns: Sequence[str], known: Sequence[str], place: str
) -> list[str]:
    """The groups of these names, known or not, and the `known` ones that shell patterns match.
    MigrationError with `place` for a pattern that nothing matches, and for a name that no known
    group has but that is a pattern of some."""
    for name in names:
        if may_be_pattern(name) and name not in known and _matching([name], known):
            raise MigrationError(
                f"no group {place} is called {name}; groups match it as a pattern: --match '{name}'"
            )
    for pattern in patterns:
        if not _matching([pattern], known):
            raise MigrationError(f"no group {place} matches {pattern}")
    return list(dict.fromkeys([*names, *_matching(patterns, known)]))


def _matching(patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    return [group for group in known if any(fnmatchcase(group, p) for p in patterns)]


def may_be_pattern(name: str) -> bool:
    return any(c in name for c in WILD)


def read_groups(fleet: Fleet) -> Iterator[list[GroupFacts]]:
    """The facts of all groups, some at a time."""
    size = fleet.limiter.slice_of(BATCH)
    for first in range(0, len(fleet.groups), size):
        batch = fleet.groups[first : first + size]
        fleet.connections.runtime.sleep(fleet.limiter.wait_s(len(batch)))
        yield read_many(batch, fleet.connections)


def watch_groups(fleet: Fleet) -> Iterator[list[GroupFacts]]:
    """Like `read_groups`, with a second look at offsets that should not move."""
    for facts in read_groups(fleet):
        # A full batch takes long enough by itself.
        pause_s = MOVEMENT_PAUSE_S if len(facts) < BATCH else 0.0
        yield with_movement(facts, fleet.connections, pause_s)


def plan_groups(fleet: Fleet, terms: Terms = Terms()) -> Iterator[Plan]:
    """A plan for each group, in order, with the known expiry of its offsets in Kafka. A group
    without any offset is skipped, with an empty plan, unless it was named itself."""
    connections = fleet.connections
    times = CommitTimes(connections.cluster, connections.runtime)
    for batch in watch_groups(fleet):
        journals = read_journals(connections.zk, [facts.group for facts in batch])
        for facts in batch:
            if _is_passed_over(facts, fleet):
                yield Plan(facts.group, (), ())
                continue
            yield preview_start(with_commit_times(facts, times), journals[facts.group], terms)


def start_groups(
    fleet: Fleet, terms: Terms = Terms(), *, confirmation_timeout_s: float
) -> Iterator[Outcome[Plan]]:
    """`start` of each group; those that were read together are started together. Groups without any
    offset are passed over as in `plan_groups`."""
    for facts in watch_groups(fleet):
        batch = [f for f in facts if not _is_passed_over(f, fleet)]
        yield from (
            Outcome(f.group, Plan(f.group, (), ())) for f in facts if _is_passed_over(f, fleet)
        )
        try:
            results = Starting(fleet.connections, batch, terms, confirmation_timeout_s).run()
        except KafkaError as error:
            results = {f.group: error for f in batch}
        for group, result in results.items():
            if isinstance(result, KafkaError):
                yield Outcome(group, None, result)
            else:
                yield Outcome(group, result)


def _is_passed_over(facts: GroupFacts, fleet: Fleet) -> bool:
    return facts.is_empty and facts.group not in fleet.named


def each_group(
    fleet: Fleet, step: Callable[[OffsetMigration], T], *, confirmation_timeout_s: float
) -> Iterator[Outcome[T]]:
    """Any other step of each group, in order."""
    connections = fleet.connections
    times = CommitTimes(connections.cluster, connections.runtime)

    def carry_out(group: str) -> T:
        connections.runtime.sleep(fleet.limiter.wait_s())
        with OffsetMigration(
            group=group,
            connections=connections,
            times=times,
            confirmation_timeout_s=confirmation_timeout_s,
        ) as migration:
            return step(migration)

    pool = ThreadPoolExecutor(WORKERS, "migration")
    try:
        yield from pool.map(lambda g: _outcome(g, lambda: carry_out(g)), fleet.groups)
    except BaseException:
        connections.interrupt()  # otherwise the threads would go on, and enter states
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _watched(
    storage: OffsetStorage,
    begin: Callable[[OffsetMigration], Entry],
    end: Callable[[OffsetMigration, Entry, Verification], Verification],
    fleet: Fleet,
    watching: Watching,
    *,
    confirmation_timeout_s: float,
) -> Iterator[Outcome[Verification]]:
    """A step in two parts, between which the groups of a batch are watched together."""
    connections = fleet.connections
    times = CommitTimes(connections.cluster, connections.runtime)
    for first in range(0, len(fleet.groups), BATCH):
        batch = fleet._replace(groups=fleet.groups[first : first + BATCH])
        begun = list(each_group(batch, begin, confirmation_timeout_s=confirmation_timeout_s))
        entries = {one.group: one.result for one in begun if one.result is not None}
        found = watch_many(connections, entries, storage, watching, times=times)
        for one in begun:
            watched = one.error or found[one.group]
            if isinstance(watched, KafkaError):
                yield Outcome(one.group, None, watched)
                continue
            with OffsetMigration(group=one.group, connections=connections) as migration:
                act = partial(end, migration, entries[one.group], watched)
                yield _outcome(one.group, act)


verify_groups = partial(
    _watched, OffsetStorage.DUAL, OffsetMigration.begin_verify, OffsetMigration.end_verify
)
"""`verify` of each group, in order; those of a batch are watched together."""
finish_groups = partial(
    _watched, OffsetStorage.KAFKA, OffsetMigration.begin_finish, OffsetMigration.end_finish
)
"""`finish` of each group, likewise."""


def _outcome(group: str, act: Callable[[], T]) -> Outcome[T]:
    try:
        return Outcome(group, act())
    except KafkaError as error:
        return Outcome(group, None, error)
