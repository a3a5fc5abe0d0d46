"""The group coordinator: joins, syncs, heartbeats, leaves, in and out of order."""

from __future__ import annotations

from struct import pack

from kafka08.levels import Level
from kafka08.protocol.codec import decode_response
from kafka08.protocol.join_group import JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.list_groups import ListGroupsRequest
from tests.interop.differences.frames import (
    LIST_GROUPS,
    NULL_ARRAY,
    array,
    commit,
    committed,
    data,
    describe_groups,
    fetch_offsets,
    heartbeat,
    join,
    leave,
    request,
    sync,
    text,
)
from tests.interop.differences.sequence import sequence
from tests.interop.differences.talk import Talk

GHOST = "c-00000000-0000-4000-8000-000000000000"
SINCE = Level.V0_9_0
MINUTE_MS = 30_000
LEVELS_OF = ((0, Level.V0_9_0), (1, Level.V0_10_2))


def joined(payload: bytes, version: int = 0) -> JoinGroupResponse:
    response: JoinGroupResponse = decode_response(JoinGroupRequest, payload, version)[1]
    return response


def one_member(talk: Talk, group: str, *, on: int = 0, syncs: bool = True) -> str:
    """A member alone in a new group; its id."""
    member = joined(talk.ask(join(0, group, session_ms=MINUTE_MS), "joins", on=on)).member_id
    if syncs:
        talk.ask(sync(group, 1, member, (member, b"all")), "syncs", on=on)
    return member


def two_members(talk: Talk, group: str) -> tuple[str, str]:
    """Leader and follower of generation 2, which have joined and not synced."""
    leader = one_member(talk, group)
    talk.send(join(0, group, session_ms=MINUTE_MS), on=1)
    while talk.ask(heartbeat(group, 1, leader))[-2:] == b"\0\0":
        talk.lines.pop()  # the second member has not arrived
    talk.ask(join(0, group, leader, session_ms=MINUTE_MS), "leader joins")
    follower = joined(talk.receive("follower has joined", on=1)).member_id
    return leader, follower


for version, since in LEVELS_OF:

    @sequence(f"JoinGroup {version} that is refused", since=since)
    def _(talk: Talk, version: int = version) -> None:
        for label, frame in {
            "empty group": join(version, ""),
            "null group": join(version, None),
            "null member": join(version, "odd", None),
            "null kind": join(version, "odd", kind=None),
            "null protocol": join(version, "odd", protocols=((None, b""),)),
            "null subscription": join(version, "odd", protocols=(("range", None),)),
            "unknown member": join(version, "odd", GHOST),
            "session of 499": join(version, "odd", session_ms=499),
            "session of 30001": join(version, "odd", session_ms=30_001),
            "session of 0": join(version, "odd", session_ms=0),
            "session of -1": join(version, "odd", session_ms=-1),
            "bad session, empty group": join(version, "", session_ms=0),
            "bad session, unknown member": join(version, "odd", GHOST, session_ms=0),
        }.items():
            talk.ask(frame, label)
        talk.ask(describe_groups("odd"), "no group was made")

    @sequence(f"JoinGroup {version} of odd members", since=since)
    def _(talk: Talk, version: int = version) -> None:
        for number, frame in enumerate(
            (
                join(version, f"odd-{version}-0", client=None if version else ""),
                join(version, f"odd-{version}-1", client=""),
                join(version, f"odd-{version}-2", kind=""),
                join(version, f"odd-{version}-3", protocols=(("", b""),)),
                join(version, f"odd-{version}-4", protocols=(("a", b"1"), ("a", b"2"))),
                join(version, f"odd-{version}-5", rebalance_ms=-1),
                join(version, f"odd-{version}-6", rebalance_ms=0),
                join(version, f"odd-{version}-7", session_ms=500),
            )
        ):
            talk.ask(frame, f"{number}", on=number)
            if number != 7:
                talk.ask(describe_groups(f"odd-{version}-{number}"), "described", on=number)

    @sequence(f"JoinGroup {version}, arrays", since=since)
    def _(talk: Talk, version: int = version) -> None:
        rebalance = pack(">i", 100) if version else b""
        body = text("arrays") + pack(">i", 10_000) + rebalance + text("") + text("consumer")
        talk.ask(request(11, version, body + NULL_ARRAY), "null protocols")
        null_member = array(text("range") + data(None))
        talk.ask(request(11, version, body + null_member), "null metadata")


@sequence("requests of a group that is not there", since=SINCE)
def _(talk: Talk) -> None:
    for group in ("nosuch", ""):
        for member in (GHOST, ""):
            for generation in (-1, 0, 1):
                talk.ask(heartbeat(group, generation, member), f"heartbeat {generation}")
                talk.ask(sync(group, generation, member), f"sync {generation}")
            talk.ask(leave(group, member), "leave")
        talk.ask(describe_groups(group), "describe")
    talk.ask(heartbeat(None, 1, GHOST), "null group")
    talk.ask(heartbeat("nosuch", 1, None), "null member")
    talk.ask(leave(None, GHOST), "null group leaves")
    talk.ask(sync(None, 1, GHOST), "null group syncs")
    talk.ask(request(14, 0, text("nosuch") + pack(">i", 1) + text("") + NULL_ARRAY), "null")


@sequence("DescribeGroups, lists", since=SINCE)
def _(talk: Talk) -> None:
    talk.ask(describe_groups(), "none")
    talk.ask(describe_groups("nosuch", "nosuch"), "twice")
    talk.ask(describe_groups(None), "null name")
    talk.ask(request(15, 0, NULL_ARRAY), "null")


@sequence("a member alone", since=SINCE)
def _(talk: Talk) -> None:
    group = "alone"
    member = one_member(talk, group, syncs=False)
    talk.ask(heartbeat(group, 1, member), "heartbeat before the sync")
    talk.ask(commit(1, group, ("t", [committed(1, 0)]), generation=1, member=member), "commit")
    talk.ask(describe_groups(group), "before the sync")
    talk.ask(sync(group, 0, member), "sync of generation 0")
    talk.ask(sync(group, 2, member), "sync of generation 2")
    talk.ask(sync(group, 1, GHOST), "sync of an unknown member")
    talk.ask(sync(group, 1, member, (member, b"all"), (GHOST, b"none")), "sync")
    talk.ask(sync(group, 1, member, (member, b"other")), "sync again")
    talk.ask(describe_groups(group), "stable")
    for generation in (-1, 0, 1, 2):
        talk.ask(heartbeat(group, generation, member), f"heartbeat {generation}")
        talk.ask(heartbeat(group, generation, GHOST), f"heartbeat {generation} of a ghost")
        for name in (member, GHOST, ""):
            one = commit(2, group, ("t", [committed(2, 0)]), generation=generation, member=name)
            talk.ask(one, f"commit {generation} of {'ghost' if name == GHOST else bool(name)}")
    talk.ask(join(0, group, member, kind="other", session_ms=MINUTE_MS), "another type")
    talk.ask(join(0, group, member, (("other", b""),), session_ms=MINUTE_MS), "another protocol")
    talk.ask(describe_groups(group), "after that")
    talk.ask(leave(group, GHOST), "a ghost leaves")
    talk.ask(leave(group, member), "leaves")
    talk.ask(leave(group, member), "leaves again")
    talk.ask(describe_groups(group), "left")
    talk.ask(heartbeat(group, 2, member), "heartbeat")
    talk.ask(commit(2, group, ("t", [committed(2, 0, 9)])), "commit without a member")
    talk.ask(fetch_offsets(1, group, ("t", [0])), "committed")
    talk.ask(join(0, group, member, session_ms=MINUTE_MS), "the old member")
    one_member(talk, group, on=2)
    talk.ask(describe_groups(group), "again")


@sequence("a leader that joins again", since=SINCE)
def _(talk: Talk) -> None:
    member = one_member(talk, "again")
    talk.ask(join(0, "again", member, session_ms=MINUTE_MS), "joins again")
    talk.ask(join(0, "again", member, session_ms=MINUTE_MS), "joins once more, unsynced")
    talk.ask(join(0, "again", member, (("range", b"2"),), session_ms=MINUTE_MS), "differently")
    talk.ask(heartbeat("again", 1, member), "heartbeat 1")
    talk.ask(describe_groups("again"), "described")


@sequence("a second member", since=SINCE)
def _(talk: Talk) -> None:
    group = "two"
    leader = one_member(talk, group)
    talk.ask(join(0, group, kind="other", session_ms=MINUTE_MS), "of another type", on=1)
    talk.ask(join(0, group, "", (("other", b""),), session_ms=MINUTE_MS), "with another", on=1)
    talk.ask(join(0, group, GHOST, session_ms=MINUTE_MS), "of a ghost", on=1)
    talk.ask(heartbeat(group, 1, leader), "undisturbed")
    leader, follower = two_members(talk, "two-more")
    group = "two-more"
    talk.ask(describe_groups("nosuch"), "", on=2)
    talk.ask(heartbeat(group, 2, leader), "heartbeat")
    talk.ask(heartbeat(group, 2, follower), "heartbeat of the follower", on=1)
    talk.send(sync(group, 2, follower), on=1)
    talk.ask(sync(group, 2, leader, (leader, b"L")), "the leader leaves the follower out")
    talk.receive("synced", on=1)
    talk.ask(join(0, group, follower, session_ms=MINUTE_MS), "unchanged follower joins", on=1)
    talk.ask(sync(group, 2, follower), "follower syncs again", on=1)
    talk.send(join(0, group, follower, (("range", b"new"),), session_ms=MINUTE_MS), on=1)
    while talk.ask(heartbeat(group, 2, leader))[-2:] == b"\0\0":
        talk.lines.pop()
    talk.ask(sync(group, 2, leader, (leader, b"L")), "sync while rebalancing")
    one = commit(2, group, ("t", [committed(2, 0)]), generation=2, member=leader)
    talk.ask(one, "commit while rebalancing")
    talk.ask(heartbeat(group, 1, leader), "old heartbeat while rebalancing")
    talk.ask(leave(group, leader), "the leader leaves")
    talk.receive("the follower leads", on=1)
    talk.ask(heartbeat(group, 2, leader), "heartbeat of who left")
    talk.ask(heartbeat(group, 3, follower), "heartbeat of the new leader")


@sequence("a member that leaves before the sync", since=SINCE)
def _(talk: Talk) -> None:
    leader, follower = two_members(talk, "before")
    talk.send(sync("before", 2, follower), on=1)
    talk.ask(describe_groups("nosuch"), "", on=2)
    talk.ask(leave("before", leader), "the leader leaves")
    talk.receive("the follower's sync", on=1)
    talk.ask(join(0, "before", follower, session_ms=MINUTE_MS), "joins again")
    talk.ask(leave("before", follower), "leaves")
    talk.ask(describe_groups("before"), "nobody")


@sequence("protocols are voted for", since=SINCE)
def _(talk: Talk) -> None:
    group, wanted = "votes", (("a", b"1"), ("b", b"2"))
    leader = joined(talk.ask(join(0, group, "", wanted, session_ms=MINUTE_MS))).member_id
    talk.ask(sync(group, 1, leader, (leader, b"x")), "syncs")
    talk.send(join(0, group, "", (("b", b"3"), ("c", b"4")), session_ms=MINUTE_MS), on=1)
    while talk.ask(heartbeat(group, 1, leader))[-2:] == b"\0\0":
        talk.lines.pop()
    talk.ask(join(0, group, "", (("a", b"5"),), session_ms=MINUTE_MS), "no common one", on=2)
    talk.ask(join(0, group, leader, wanted, session_ms=MINUTE_MS), "b wins")
    talk.receive("the other", on=1)


@sequence("a member that dies", since=SINCE)
def _(talk: Talk) -> None:
    group = "dying"
    member = joined(talk.ask(join(0, group, session_ms=600))).member_id
    talk.ask(sync(group, 1, member, (member, b"x")), "syncs")
    while talk.ask(heartbeat(group, 1, GHOST), on=1) and describes(talk, group, member):
        pass
    talk.ask(heartbeat(group, 1, member), "too late")
    talk.ask(describe_groups(group), "empty")


def describes(talk: Talk, group: str, member: str) -> bool:
    """Whether the group still has the member, without lines in the transcript."""
    found = talk.ask(describe_groups(group), on=1)
    del talk.lines[-2:]
    return member.encode() in found


@sequence("a follower that syncs for a leader that stays away", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    group = "away"
    leader = joined(talk.ask(join(1, group, rebalance_ms=700, session_ms=MINUTE_MS))).member_id
    talk.ask(sync(group, 1, leader, (leader, b"x")), "syncs")
    talk.ask(join(1, group, rebalance_ms=700, session_ms=MINUTE_MS), "after a rebalance", on=1)
    talk.ask(heartbeat(group, 1, leader), "was removed")
    talk.ask(describe_groups(group), "one is left")


@sequence("ListGroups", since=SINCE)
def _(talk: Talk) -> None:
    """Groups of its own alone: members that other sequences left expire while it runs."""
    one_member(talk, "listed", syncs=False)
    talk.ask(commit(2, "listed-offsets", ("t", [committed(2, 0)])))
    response = decode_response(ListGroupsRequest, talk.probe(LIST_GROUPS), 0)[1]
    own = sorted(
        (one.group, one.protocol_type) for one in response.groups if one.group.startswith("listed")
    )
    talk.note("own groups", f"{response.error_code} {own}")


@sequence("JoinGroup without protocols", since=SINCE, departs=(Level.V0_9_0, Level.V0_10_2))
def _(talk: Talk) -> None:
    talk.ask(join(0, "none", protocols=()))
