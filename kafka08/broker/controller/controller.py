"""Controller: one event queue and one greenlet that handles the events one after the other.

Every broker has a Controller. It competes for /controller, and while it holds that znode, a `Term`
does the work. Any failure in the middle of an event (a lost session, a bug) ends the term, since
the context may be half-changed: the broker resigns, and the next controller starts from ZooKeeper.
Source: kafka.controller.KafkaController 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.leadership import ControllerMoved
from kafka08.broker.controller.term import Term
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import (
    BadVersion,
    BrokerNotAvailable,
    KafkaError,
    NodeExists,
    RequestTimedOut,
    StaleControllerEpoch,
    UnknownError,
)
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.runtime.uncaught import uncaught
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.election import ControllerElection
from kafka08.zk.session import SessionEvent, SessionState
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

FIRST_EPOCH: Final = 1
RETRY_S: Final = 1.0
"""Pause after a failure, before the next election."""


class ControllerEvent(NamedTuple):
    """An event with its handler. A `name` is queued at most once at a time; None: always queued."""

    name: str | None
    act: Callable[[], None]


class Controller:
    """A broker's participation in controller elections, and its terms as controller."""

    term_type: type[Term] = Term
    """Another one has other habits, in a simulation."""

    def __init__(self, runtime: BrokerRuntime, config: BrokerConfig, store: ClusterStore) -> None:
        self._runtime = runtime
        self._config = config
        self._store = store
        self._prefix = f"[Controller {config.broker_id}]"
        self._events = runtime.queue()
        self._waiting: set[str] = set()
        self._term: Term | None = None
        self._task: Greenlet | None = None
        self._stopping = False
        self._pausing = False
        self._former_elections = self._former_unclean = 0
        self._election = ControllerElection(
            store.zk,
            config.broker_id,
            post=lambda: self._post(paths.CONTROLLER, self._refresh),
            on_elected=self._begin_term,
            on_resigned=self._end_term,
            clock=runtime,
        )

    def startup(self) -> None:
        """Take part in elections. Returns at once; they run in the controller's greenlet."""
        self._store.zk.add_session_listener(self._on_session_event)
        self._task = self._runtime.spawn(
            self._run, name=f"controller-event-loop-{self._config.broker_id}"
        )
        self._post(paths.CONTROLLER, self._refresh)

    def shutdown(self) -> None:
        """Stop taking part, and resign if active. Switches; safe if startup never ran."""
        if self._task is None or self._stopping:
            return
        self._post(None, self._stop)
        # Without ZooKeeper it cannot resign; the znode expires with the session.
        if self._store.zk.state is SessionState.CONNECTED:
            self._task.join(self._config.zookeeper_session_timeout_ms / 1000)
        self._task.kill(block=False)
        self._end_term()

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller and has initialized the cluster's state."""
        return self._term is not None and self._term.ready

    @property
    def epoch(self) -> int | None:
        """The controller epoch of the current term; None outside of one."""
        return self._term.context.epoch if self._term is not None and self._term.ready else None

    @property
    def context(self) -> ControllerContext | None:
        """The context of the current term; None outside of one. Read it without switching."""
        return self._term.context if self._term is not None and self._term.ready else None

    @property
    def elections(self) -> tuple[int, int]:
        """The number of leaders that this broker has elected since it started, and of unclean
        elections among them."""
        if self._term is None:
            return self._former_elections, self._former_unclean
        context = self._term.context
        return (
            self._former_elections + context.elections,
            self._former_unclean + context.unclean,
        )

    def controlled_shutdown(
        self, broker_id: int, is_abandoned: Callable[[], bool] = lambda: False
    ) -> set[TopicPartition]:
        """Move the leadership of a broker that shuts down; returns the partitions with several
        replicas that it still leads. StaleControllerEpoch if this broker is not the controller,
        BrokerNotAvailable for an unknown broker, for one that registers again while the request
        waits in the event queue, and if the request `is_abandoned` when its turn comes;
        RequestTimedOut if the controller is too busy, UnknownError after an unexpected failure."""
        finished = self._runtime.event()
        registered = self._registration(broker_id)
        outcome: set[TopicPartition] | Exception = StaleControllerEpoch(
            "The controller was stopped"
        )

        def act() -> None:
            nonlocal outcome
            try:
                now = self._registration(broker_id)
                if registered is not None and now not in (None, registered):
                    raise BrokerNotAvailable(f"Broker id {broker_id} has registered again.")
                if is_abandoned():
                    raise BrokerNotAvailable(f"Broker id {broker_id} waits for no response.")
                outcome = self._shut_down(broker_id)
            except (BrokerNotAvailable, StaleControllerEpoch) as refusal:
                outcome = refusal
            except Exception as error:
                # The caller gets UnknownError; raised on, it also ends the term (`_run`).
                outcome = error
                raise
            finally:
                finished.set()

        self._post(None, act)
        if not finished.wait(self._config.controller_socket_timeout_ms / 1000):
            raise RequestTimedOut(f"controlled shutdown of broker {broker_id}")
        if isinstance(outcome, KafkaError):
            raise outcome
        if isinstance(outcome, Exception):
            raise UnknownError(f"controlled shutdown of broker {broker_id}: {outcome!r}")
        return outcome

    def _registration(self, broker_id: int) -> nodes.BrokerRegistration | None:
        return None if self._term is None else self._term.registration(broker_id)

    def _shut_down(self, broker_id: int) -> set[TopicPartition]:
        if self._term is None:
            # The code of 0.9's ControllerMovedException.
            raise StaleControllerEpoch(
                "Controller moved to another broker. Aborting controlled shutdown"
            )
        logger.info("%s Shutting down broker %d", self._prefix, broker_id)
        return self._term.shut_down(broker_id)

    # The greenlet

    def _post(self, name: str | None, act: Callable[[], None]) -> None:
        """Queue an event. Never switches; watches and listeners may call it."""
        if name is not None:
            if name in self._waiting:
                return
            self._waiting.add(name)
        self._events.put(ControllerEvent(name, act))

    def _run(self) -> None:
        while not self._stopping:
            event: ControllerEvent = self._events.get()
            # Before the handler runs: a change that comes during it must be queued again.
            if event.name is not None:
                self._waiting.discard(event.name)
            try:
                event.act()
            except ControllerMoved as moved:
                logger.info("%s %s", self._prefix, moved)
                self._give_up()
            except KafkaError as error:
                logger.error("%s Error while handling %s: %s", self._prefix, event.name, error)
                self._give_up()
            except Exception as error:  # noqa: BLE001 - the context may be half-changed: end the term
                text = "%s Uncaught error while handling %s"
                uncaught(self._runtime, error, logger, text, self._prefix, event.name)
                self._give_up()

    def _give_up(self) -> None:
        """Resign, and skip elections for a while: without the pause a permanent failure would keep
        the whole cluster busy with elections."""
        if self._term is not None:
            story = self._term.context.history.story()
            logger.error(
                "%s resigns after an error. The last events were:\n%s", self._prefix, story
            )
        self._end_term()
        self._pausing = True
        self._runtime.call_later(RETRY_S, self._post, None, self._recover)
        try:
            self._election.resign()
        except KafkaError as error:
            logger.warning("%s cannot resign now: %s", self._prefix, error)
        except Exception as error:  # noqa: BLE001 - the greenlet must survive to recover
            text = "%s Uncaught error while resigning"
            uncaught(self._runtime, error, logger, text, self._prefix)

    def _recover(self) -> None:
        """After the pause: remove our znode if it still exists, then take part again."""
        self._pausing = False
        self._election.resign()
        self._election.refresh()

    def _stop(self) -> None:
        self._stopping = True
        self._end_term()
        self._election.resign()

    def _on_znode_change(self, path: str) -> None:
        """The callback of the watches of all terms: since it is always the same, watching twice is
        harmless."""
        if self._term is not None:
            self._term.znode_changed(path)

    # Election

    def _refresh(self) -> None:
        if not self._pausing:
            self._election.refresh()

    def _on_session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self._post("session expired", self._on_expired)

    def _on_expired(self) -> None:
        logger.info("%s ZK expired; shut down all controller components and re-elect", self._prefix)
        if not self._pausing:
            self._election.session_expired()

    def _begin_term(self) -> None:
        logger.info("%s starting become controller state transition", self._prefix)
        epoch, zk_version = self._raise_epoch()
        term = self.term_type(
            self._runtime,
            self._config,
            self._store,
            epoch=epoch,
            epoch_zk_version=zk_version,
            post=self._post,
            on_znode_change=self._on_znode_change,
        )
        self._term = term
        try:
            term.begin()
        except KafkaError:
            self._end_term()
            self._runtime.sleep(RETRY_S)
            raise

    def _end_term(self) -> None:
        if self._term is not None:
            self._former_elections, self._former_unclean = self.elections
            self._term.close()
            self._term = None
            logger.info("%s resigned", self._prefix)

    def _raise_epoch(self) -> tuple[int, int]:
        """Write the next controller epoch, which fences every controller before us; returns (epoch,
        version of its znode). ControllerMoved if another broker has written one meanwhile, or is
        controller: the session in which we were elected may have ended since, and an epoch of ours
        would fence our successor, which nobody would replace (as in 0.8.2.2)."""
        zk = self._store.zk
        found = self._store.controller_epoch()
        # Only now: a successor that is elected later finds our epoch, or raises this one first.
        if not self._election.holds_znode():
            raise ControllerMoved("Another session holds /controller by now")
        try:
            if found is None:
                zk.create(paths.CONTROLLER_EPOCH, nodes.encode_controller_epoch(FIRST_EPOCH))
                return FIRST_EPOCH, 0
            epoch = found[0] + 1
            text = nodes.encode_controller_epoch(epoch)
            return epoch, zk.set(paths.CONTROLLER_EPOCH, text, found[1])
        except (NodeExists, BadVersion) as error:
            raise ControllerMoved(
                "Controller moved to another broker. Aborting controller startup procedure"
            ) from error
