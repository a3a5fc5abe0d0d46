"""A broker in its cluster: its registration, and what it knows of the others.

metadata_cache          brokers and leaders, as the controller announced them
registration            the broker's own znode; former_session: one that a crash left behind
inter_broker            the request versions that brokers speak among themselves
controller_connection   refuses what a controller sent before it opened another connection
former_controller       refuses requests of former controllers by their first bytes
"""
