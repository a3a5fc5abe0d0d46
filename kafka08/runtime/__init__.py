"""The one door to the world: time, chance, tasks, sockets, disks and native threads.

Brokers and clients take a Runtime and reach nothing of this but through it. There are two real
ones: `greenlets.GeventRuntime` for brokers and `threads.ThreadRuntime` for clients. A test or a
simulation passes its own, with a clock that it moves. Start reading in `interface.py`.
"""

from kafka08.runtime.disk import Disk, DiskLock, File, OpenMode, Syncable
from kafka08.runtime.interface import (
    WAIT_SECONDS_MAX,
    BrokerRuntime,
    Cancellable,
    ClientRuntime,
    Condition,
    Event,
    Greenlet,
    Lock,
    Queue,
    Runtime,
    Task,
)
from kafka08.runtime.transport import Connecting, IoWatch, Listener, Poller, Readiness, Stream

__all__ = [
    "WAIT_SECONDS_MAX",
    "BrokerRuntime",
    "Cancellable",
    "ClientRuntime",
    "Condition",
    "Connecting",
    "Disk",
    "DiskLock",
    "Event",
    "File",
    "Greenlet",
    "IoWatch",
    "Listener",
    "Lock",
    "OpenMode",
    "Poller",
    "Queue",
    "Readiness",
    "Runtime",
    "Stream",
    "Syncable",
    "Task",
]
