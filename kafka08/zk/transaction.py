"""Several writes that ZooKeeper does all or not at all.

Not for partition states: one stale version would fail them all (use `ZkClient.write_all`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from kazoo.exceptions import KazooException

from kafka08.errors import SessionLost
from kafka08.zk.failures import translate
from kafka08.zk.operations import ANY_VERSION, NOT_TRIED, encode

if TYPE_CHECKING:
    from kazoo.client import KazooClient


class Transaction:
    """A builder; nothing is sent before `commit`, which can be called once.

    patience_seconds   longest wait for the answer
    failed_path        the znode of the step that failed, after `commit` has raised for one
    """

    def __init__(self, kazoo: KazooClient, patience_seconds: float) -> None:
        self._request = kazoo.transaction()
        self._patience_seconds = patience_seconds
        self._paths: list[str] = []
        self.failed_path: str | None = None

    def check(self, path: str, version: int) -> Self:
        """Fail unless the znode has this version."""
        self._request.check(path, version)
        self._paths.append(path)
        return self

    def create(self, path: str, data: str | None = "", *, ephemeral: bool = False) -> Self:
        """Make a znode; its parent must be there (or be made earlier in the transaction)."""
        # kazoo takes no null here, and 0.8 writes no data by transactions.
        self._request.create(path, encode(data) or b"", ephemeral=ephemeral)
        self._paths.append(path)
        return self

    def set(self, path: str, data: str, version: int = ANY_VERSION) -> Self:
        self._request.set_data(path, data.encode(), version)
        self._paths.append(path)
        return self

    def delete(self, path: str, version: int = ANY_VERSION) -> Self:
        self._request.delete(path, version)
        self._paths.append(path)
        return self

    def commit(self) -> list[Any]:
        """Do it; one result for each step in order (create: the path; set: the new version).

        When a step fails nothing was done, and its error is raised with its path. SessionLost: the
        connection was lost, or there was no answer, and the outcome is not known; it is by the time
        anything asked later in the same session is answered.
        """
        pending = self._request.commit_async()
        pending.wait(self._patience_seconds)
        if not pending.ready():
            paths = ", ".join(self._paths)
            raise SessionLost(f"{paths}: no answer from ZooKeeper in {self._patience_seconds:g} s")
        try:
            answers = pending.get()
        except KazooException as error:
            raise translate(error, ", ".join(self._paths)) from error
        for path, answer in zip(self._paths, answers, strict=True):
            if isinstance(answer, Exception) and not isinstance(answer, NOT_TRIED):
                self.failed_path = path
                raise translate(answer, path)
        return [getattr(answer, "version", answer) for answer in answers]
