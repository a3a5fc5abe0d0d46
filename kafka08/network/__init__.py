"""Frames over streams. `connection` is the client's side, which blocks. `server` accepts
connections on a broker's event loop; an `accepted_connection` is the stream around a
`server_connection`, which uses none. This file imports neither side."""
