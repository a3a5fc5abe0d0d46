"""Frames over streams. A `session` is a client's side without a stream; `connection` drives it in
threads and greenlets, and blocks them. `server` accepts connections on a broker's event loop; an
`accepted_connection` is the stream around a `server_connection`, which uses none. This file imports
neither side."""
