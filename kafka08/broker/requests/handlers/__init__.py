"""The broker's handling of each request: one module per API, named after it.

Every module has two functions, listed in kafka08/broker/requests/dispatcher.py:

    handle(broker: BrokerContext, request: SomeRequest, call: Call)
        -> Response | ResponseFrame | NoResponse
    refuse(request: SomeRequest, code: int) -> Response

`handle` runs in the hub and must not switch: it reads and changes memory, appends to logs, and
returns the response (a Response, or a frame in pieces, as Fetch does), or

    NoResponse.PARKED    `call.respond(response)` follows later, from the hub or a greenlet
                    (`call.when_closed(abandon)` is called if the client goes away)
    NoResponse.SILENT    there is no response

A handler that waits for ZooKeeper, other brokers or many files does so in a greenlet, and so does
one that has more than PARTITIONS_AT_ONCE partitions or groups to handle:

    return call.run_in_greenlet("Metadata", create)
    return call.run_by_count("ListGroups", len(groups), respond)

Expected errors of one partition become its code in the response. An exception from `handle` (or
from the function given to run_in_greenlet) becomes `refuse(request, code)`, with -1 for every
exception that is not an ApiError; only ProtocolError closes the connection. Source:
kafka.server.KafkaApis 0.8.2.2.
"""
