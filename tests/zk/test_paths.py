"""kafka08.zk.paths: which zookeeper.connect is legal, and which children are numbers."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.zk.paths import numbers, split_connect


@pytest.mark.parametrize(
    ("connect", "hosts", "chroot"),
    [
        ("a:1", "a:1", ""),
        ("a:1/", "a:1", ""),
        ("a:1, b:2/kafka/eu/", "a:1,b:2", "/kafka/eu"),
        ("a,b:2", "a:2181,b:2", ""),
        ("[::1]:2/x", "[::1]:2", "/x"),
        ("[::1]", "[::1]:2181", ""),
    ],
)
def test_hosts_and_chroot_come_apart(connect: str, hosts: str, chroot: str) -> None:
    """Blanks are removed, a missing port is 2181, and one chroot at the end applies to all
    hosts."""
    assert (hosts, chroot) == split_connect(connect)


@pytest.mark.parametrize(
    "connect",
    [
        "",
        "/x",
        " , ",
        "a:",
        "a:b",
        "a:0",
        "a:65536",
        "::1",
        ":1",
        "a..b:1",
        "a:1/x//y",
        "a:1/../x",
        "a:1/\udcff",
    ],
)
def test_an_impossible_address_is_refused(connect: str) -> None:
    """A missing or impossible host, an illegal port and a chroot that is no path are errors with
    the key."""
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        split_connect(connect)


def test_other_children_than_numbers_are_left_out() -> None:
    """Children that are numbers are returned in numeric order. Text that only int() would accept is
    not one."""
    names = ["10", "9", "0", "old", "0.lock", "-1", "+1", "01", " 2", "", "1" * 5000, "\u0663"]
    assert [0, 9, 10] == numbers(names)


def test_a_chroot_behind_each_address_is_refused() -> None:
    """Else everything behind the first slash is the chroot, in which a broker is alone."""
    with pytest.raises(ConfigError, match="give the chroot once, behind the last address"):
        split_connect("h:1/kafka,i:2/kafka")
    assert split_connect("h:1/odd,name") == ("h:1", "/odd,name")
