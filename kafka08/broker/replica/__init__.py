"""The replicas of one broker: role, epochs, ISR (`partition`), the rules that every request asks
(`replica_state`: HW, acks, positions), and what they count (`traffic`).

Nothing here does I/O but to the local log, and nothing switches. `replica_state` runs from its
source, or compiled from it.
"""

from kafka08.kernel.choice import use_build

use_build("kafka08.broker.replica.replica_state")
