"""Why a server cannot listen at an address, and what to do about it."""

from __future__ import annotations

import errno
from typing import Final

from kafka08.listing import reason_of

_ADVICE: Final = {
    errno.EADDRINUSE: "stop the program there, or use another port",
    errno.EACCES: "use a port from 1024 on, or a user who may listen there",
}
_OTHER_ADVICE: Final = "use an address of this machine, such as 127.0.0.1"


def listen_error_text(error: OSError) -> str:
    """The reason, and what to do: "address already in use: stop the program there, or …"."""
    return f"{reason_of(error)}: {_ADVICE.get(error.errno or 0, _OTHER_ADVICE)}"
