"""The interface to the operating system: time, randomness, tasks, sockets, disks, native threads.

Brokers and clients take a Runtime and use the operating system only through it. Brokers run on
`greenlets.GeventRuntime`, clients on `threads.ThreadRuntime`. A test or a simulation passes a
Runtime of its own, whose clock it moves. Start reading in `interface.py`.
"""

from kafka08.runtime.disk import Disk, DiskLock, File, OpenMode, Syncable
from kafka08.runtime.interface import (
    WAIT_S_MAX,
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
from kafka08.runtime.transport import (
    Buffers,
    Connecting,
    IoWatch,
    Listener,
    Poller,
    Readiness,
    Stream,
)

__all__ = [
    "WAIT_S_MAX",
    "BrokerRuntime",
    "Buffers",
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
