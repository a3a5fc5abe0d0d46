"""The state of a server in a file: sessions and znodes, as they were at the last reply.

A file of frames, each written by one call, so that a kill of the process leaves whole ones (after
a full disk the last one may be torn; it is ignored):

    frame = length (int), CRC-32 of the payload (int), payload
    payload = zxid (long), vector of sessions, vector of znodes, vector of deleted paths
    session = id (long), timeout in ms (int; 0: it has ended)

The first frame is a snapshot; each later one has what has changed since. A start writes a new
snapshot, and so does a file that has grown large. Nothing is synced: a crash of the machine may
lose everything.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kafka08.zk.model.messages import OPEN_ACL, Acl
from kafka08.zk.model.server import Instant, Server
from kafka08.zk.model.tree import Znode
from kafka08.zk.server.jute import (
    Reader,
    write_buffer,
    write_int,
    write_long,
    write_text,
    write_vector,
)

NAME: Final = "journal"
LOCK_NAME: Final = "journal.lock"
"""Locked while a server has the journal open; the file stays."""
GROWTH_BYTES: Final = 64 << 20
"""A new snapshot is due after so many bytes of changes."""
_HEAD_BYTES: Final = 8


class Journal:
    """A `Recorder` of `server`; call `flush` before replies are sent. GROWTH_BYTES is the default
    of `growth_bytes`."""

    def __init__(self, server: Server, directory: Path, growth_bytes: int = GROWTH_BYTES) -> None:
        self._server = server
        self._directory = directory
        self._path = directory / NAME
        self._growth_bytes = growth_bytes
        self._sessions: set[int] = set()
        self._paths: set[str] = set()
        self._written = 0
        self._file = self._lock = -1

    def open(self, now: Instant) -> None:
        """Load the state of an earlier server of this directory, if there is one, and record from
        now on. BlockingIOError if another server does: of two, one would lose all that it has
        acknowledged."""
        self._lock = os.open(self._directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise
        if self._path.exists():
            self._load(self._path.read_bytes(), now)
        self._write_snapshot()
        self._server.recorder = self

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)

    def session_changed(self, session_id: int) -> None:
        self._sessions.add(session_id)

    def znodes_changed(self, paths: Iterable[str]) -> None:
        self._paths.update(paths)

    def flush(self) -> None:
        """Write what has changed since the last flush. OSError if the disk is full, say."""
        if not self._sessions and not self._paths:
            return
        self._append(_frame(self._payload(self._sessions, self._paths)))
        self._sessions.clear()
        self._paths.clear()
        if self._written > self._growth_bytes:
            os.close(self._file)
            self._write_snapshot()

    def _write_snapshot(self) -> None:
        sessions = [session.id for session in self._server.sessions()]
        beside = self._path.with_suffix(".new")
        self._file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._append(_frame(self._payload(sessions, self._server.paths())))
        beside.replace(self._path)
        self._written = 0

    def _append(self, data: bytes) -> None:
        while data:
            written = os.write(self._file, data)
            self._written += written
            data = data[written:]

    def _payload(self, session_ids: Iterable[int], paths: Iterable[str]) -> bytes:
        """These sessions and znodes as they are now."""
        sessions, znodes, deleted = [], [], []
        for session_id in session_ids:
            session = self._server.find_session(session_id)
            timeout_ms = 0 if session is None else session.timeout_ms
            sessions.append(write_long(session_id) + write_int(timeout_ms))
        for path in paths:
            znode = self._server.find(path)
            if znode is None:
                deleted.append(write_text(path))
            else:
                znodes.append(_write_znode(path, znode))
        return (
            write_long(self._server.zxid)
            + write_vector(sessions)
            + write_vector(znodes)
            + write_vector(deleted)
        )

    def _load(self, data: bytes, now: Instant) -> None:
        sessions: dict[int, int] = {}
        znodes: dict[str, Znode] = {}
        zxid = 0
        for payload in _payloads(data):
            reader = Reader(payload)
            zxid = reader.int64()
            sessions.update(reader.vector(lambda r: (r.int64(), r.int32())))
            znodes.update(reader.vector(_read_znode))
            for path in reader.vector(Reader.text):
                znodes.pop(path, None)
        # A refused write has a zxid and changes nothing, so clients may have seen later ones: begin
        # a new epoch, as an ensemble does.
        self._server.zxid = ((zxid >> 32) + 1) << 32
        for path in sorted(znodes):
            self._server.load(path, znodes[path])
        for session_id, timeout_ms in sessions.items():
            if timeout_ms:
                self._server.load_session(session_id, timeout_ms, now)


def _frame(payload: bytes) -> bytes:
    return write_int(len(payload)) + zlib.crc32(payload).to_bytes(4, "big") + payload


def _payloads(data: bytes) -> Iterator[bytes]:
    position = 0
    while position + _HEAD_BYTES <= len(data):
        start = position + _HEAD_BYTES
        length = int.from_bytes(data[position : position + 4], "big")
        payload = data[start : start + length]
        if zlib.crc32(payload).to_bytes(4, "big") != data[position + 4 : start]:
            return
        yield payload
        position = start + length


def _write_znode(path: str, znode: Znode) -> bytes:
    acl = () if znode.acl is OPEN_ACL else znode.acl
    return b"".join(
        (
            write_text(path),
            write_buffer(znode.data),
            *map(write_long, (znode.czxid, znode.mzxid, znode.pzxid, znode.ctime, znode.mtime)),
            *map(write_int, (znode.version, znode.created_children)),
            write_long(znode.ephemeral_owner),
            write_vector(write_int(e.perms) + write_text(e.scheme) + write_text(e.id) for e in acl),
            write_int(znode.aversion),
        )
    )


def _read_znode(reader: Reader) -> tuple[str, Znode]:
    path = reader.text()
    znode = Znode(
        reader.buffer(),
        czxid=reader.int64(),
        mzxid=reader.int64(),
        pzxid=reader.int64(),
        ctime=reader.int64(),
        mtime=reader.int64(),
        version=reader.int32(),
        created_children=reader.int32(),
        ephemeral_owner=reader.int64(),
        acl=reader.vector(lambda r: Acl(r.int32(), r.text(), r.text())) or OPEN_ACL,
        aversion=reader.int32(),
    )
    return path, znode
