"""What `with` does to what has `close`, or `start` and `stop`. ConsumerConnector, with `shutdown`,
and ZkClient, with `start` and `close`, say it themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closeable(ABC):
    """In use from its construction on; closed at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds. Closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Startable(ABC):
    """Started by a `with` block and stopped at its end; one that cannot start leaves nothing."""

    @abstractmethod
    def start(self) -> None:
        """Returns when it is ready to serve."""

    @abstractmethod
    def stop(self) -> None:
        """Stop whatever part of it runs. Stopping twice does nothing."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
