"""The way from the bytes of a request to its response. Start reading at `dispatcher`.

dispatcher          which handler a request belongs to; `call` is one request on its way
handlers            one module per API
fast_path           answers the frequent requests without message objects: fast_produce, fast_fetch
                    and fast_groups; `fallback` is what they leave to the handlers
converted_set       messages for consumers of an older format, made while they are sent
context             the parts of the broker that a handler may use
request_metrics     counts and times by API
"""
