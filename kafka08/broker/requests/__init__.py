"""The way from the bytes of a request to its response. Start reading at `dispatcher`.

dispatcher          which handler a request belongs to; `call` is one request on its way
handlers            one module per API
fast_path           answers the frequent requests without message objects: Fetch by fetch_call,
                    others by fast_produce and fast_groups; `fallback` is what they leave to
                    the handlers
converted_set       messages for consumers of an older format, made while they are sent
fetch_call          one Fetch on its way, however it was decoded
fetch_reads         what a Fetch finds, and the encoders of its response
context             the parts of the broker that a handler may use
request_metrics     counts and times by API
"""
