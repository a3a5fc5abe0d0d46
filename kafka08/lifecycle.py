"""Context managers for objects with `close`, or with `start` and `stop`. ConsumerConnector, with
`shutdown`, and ZkClient, with `start` and `close`, have their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closeable(ABC):
    """Usable from its construction on; closed at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Release its resources. Closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Startable(ABC):
    """Started by a `with` block and stopped at its end; a failed start leaves nothing running."""

    @abstractmethod
    def start(self) -> None:
        """Returns when it is ready to serve."""

    @abstractmethod
    def stop(self) -> None:
        """Stop every running part. Stopping twice does nothing."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
