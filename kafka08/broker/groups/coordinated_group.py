"""CoordinatedGroup: a Group with its timers and its records in the log.

Every event of the group arrives here, and its actions are executed in order: the effects of a
response (the client's next request, maybe for the same group) wait until they are done. Nothing
switches.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from kafka08.broker.groups.group import Group
from kafka08.broker.groups.group_events import (
    Action,
    Actions,
    EndRebalance,
    EndSession,
    Join,
    JoinReply,
    RemoveGroup,
    RespondToJoin,
    RespondToSync,
    StartRebalance,
    StartSession,
    StoreGroup,
    SyncReply,
)
from kafka08.broker.groups.group_state import GroupState
from kafka08.log_limit import caused_by
from kafka08.protocol.group_records import StoredGroup
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.timer import Timer, TimerTask
from kafka08.runtime.uncaught import uncaught

logger = logging.getLogger(__name__)

AppendGroup = Callable[[int, str, StoredGroup, Callable[[int], object]], object]

LOGGED_EVERY_MS: Final = 1000
"""A group that rebalances more often logs one generation in this time: members that join again and
again must not fill a disk."""


class CoordinatedGroup:
    """One group of this broker.

    group       the state machine; a caller that passes it an event passes its actions to `perform`
    partition   of the offsets topic, which stores the group
    append      appends the group's record; see OffsetManager.append_group
    remove      removes the group after its last member has left (0.9)
    """

    __slots__ = (
        "_actions",
        "_append",
        "_is_logged",
        "_is_performing",
        "_logged_ms",
        "_monotonic",
        "_rebalance",
        "_remove",
        "_runtime",
        "_sessions",
        "_timer",
        "group",
        "partition",
    )

    def __init__(
        self,
        group: Group,
        partition: int,
        *,
        runtime: BrokerRuntime,
        timer: Timer,
        append: AppendGroup,
        remove: Callable[[CoordinatedGroup], object],
    ) -> None:
        self.group = group
        self.partition = partition
        self._monotonic = runtime.monotonic
        self._runtime = runtime
        self._timer = timer
        self._append = append
        self._remove = remove
        self._sessions: dict[str, TimerTask] = {}
        self._rebalance: TimerTask | None = None
        self._actions: deque[Action] = deque()
        self._is_performing = False
        self._is_logged = True
        """Whether the current rebalance is logged."""
        self._logged_ms = -math.inf

    # Requests

    def join(self, request: Join) -> None:
        """See Group.join."""
        self.perform(self.group.join(request, self._monotonic() * 1000))

    def abandon_join(self, reply: JoinReply) -> None:
        """See Group.abandon_join."""
        self.perform(self.group.abandon_join(reply, self._monotonic() * 1000))

    def sync(
        self, member_id: str, generation: int, assignments: Mapping[str, bytes], reply: SyncReply
    ) -> None:
        """See Group.sync."""
        now_ms = self._monotonic() * 1000
        self.perform(self.group.sync(member_id, generation, assignments, reply, now_ms))

    def heartbeat(self, member_id: str, generation: int) -> int:
        """See Group.heartbeat."""
        return self.group.heartbeat(member_id, generation, self._monotonic() * 1000)

    def leave(self, member_id: str) -> int:
        """See Group.leave."""
        error_code, actions = self.group.leave(member_id, self._monotonic() * 1000)
        self.perform(actions)
        return error_code

    def check_commit(self, member_id: str, generation: int) -> int:
        """See Group.check_commit."""
        return self.group.check_commit(member_id, generation, self._monotonic() * 1000)

    @property
    def _cause(self) -> dict[str, str]:
        """`extra` for a log line: clients may make any number of groups, with long names."""
        return caused_by(self.group.name)

    # Actions

    def perform(self, actions: Actions) -> None:
        """Execute the actions of an event, after those in progress."""
        waiting = self._actions
        waiting.extend(actions)
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while waiting:
                action = waiting.popleft()
                try:
                    self._execute(action)
                except Exception as error:  # noqa: BLE001 - other members wait for the next ones
                    text = "Uncaught exception in %s of group %s"
                    kind, cause = type(action).__name__, self._cause
                    uncaught(self._runtime, error, logger, text, kind, self.group.name, extra=cause)
        finally:
            self._is_performing = False

    def _execute(self, action: Action) -> None:
        match action:
            case RespondToJoin():
                action.reply(action.result)
            case RespondToSync():
                action.reply(action.assignment, action.error_code)
            case StoreGroup():
                self._store(action)
            case StartRebalance():
                self._start_rebalance(action.delay_ms)
            case EndRebalance():
                self._end_rebalance()
            case StartSession():
                self._start_session(action.member_id, action.delay_ms)
            case EndSession():
                self._end_session(action.member_id)
            case RemoveGroup():
                self._remove(self)

    def _start_session(self, member_id: str, delay_ms: float) -> None:
        def over() -> None:
            self._sessions.pop(member_id, None)
            self.perform(self.group.session_timer(member_id, self._monotonic() * 1000))

        self._sessions[member_id] = self._timer.add(delay_ms, over)

    def _end_session(self, member_id: str) -> None:
        task = self._sessions.pop(member_id, None)
        if task is not None:
            task.cancel()

    def _start_rebalance(self, delay_ms: float) -> None:
        self._log_rebalance(self.group.generation)
        self._rebalance = self._timer.add(delay_ms, self._rebalance_is_over)

    def _log_rebalance(self, old_generation: int) -> None:
        now_ms = self._monotonic() * 1000
        self._is_logged = now_ms >= self._logged_ms + LOGGED_EVERY_MS
        if self._is_logged:
            self._logged_ms = now_ms
            text = "Preparing to restabilize group %s with old generation %d"
            logger.info(text, self.group.name, old_generation, extra=self._cause)

    def _rebalance_is_over(self) -> None:
        self.perform(self.group.rebalance_timer(self._monotonic() * 1000))

    def _end_rebalance(self) -> None:
        group = self.group
        if self._rebalance is not None:
            self._rebalance.cancel()
            self._rebalance = None
        else:
            # All had joined when it began, which is therefore not logged yet. The generation has
            # risen since, unless the group has ended.
            self._log_rebalance(group.generation - (group.state is not GroupState.DEAD))
        if self._is_logged and group.state is GroupState.AWAITING_SYNC:
            text = "Stabilized group %s generation %d"
            logger.info(text, group.name, group.generation, extra=self._cause)

    def _store(self, action: StoreGroup) -> None:
        group = self.group
        if self._is_logged:
            text = "Assignment received from leader for group %s for generation %d"
            if not action.record.members:
                text = "Group %s with generation %d is now empty"
            logger.info(text, group.name, action.generation, extra=self._cause)

        def stored(error_code: int) -> None:
            if error_code:
                logger.warning(
                    "The record of group %s generation %d was not stored: error code %d",
                    group.name,
                    action.generation,
                    error_code,
                    extra=self._cause,
                )
            self.perform(group.stored(action, error_code, self._monotonic() * 1000))

        self._append(self.partition, group.name, action.record, stored)
