"""HAProxy as the data plane: its configuration, its sockets, its statistics. Nothing here knows of rows."""
