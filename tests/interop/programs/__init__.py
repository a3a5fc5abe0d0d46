"""Programs of clients that others wrote; see foreign_clients.py."""
