"""Frames over sockets. `connection` is a client's side: plain blocking sockets, importable
anywhere. `server` is a broker's side, on gevent, around `server_connection`, which knows no socket.
This file imports neither, so that a client never imports gevent.
"""
