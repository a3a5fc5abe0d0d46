"""Frames over sockets. `connection` is the client's side: plain blocking sockets, importable
anywhere. `server` is the broker's side, on gevent, around `server_connection`, which uses no
socket. This file imports neither, so that a client never imports gevent."""
