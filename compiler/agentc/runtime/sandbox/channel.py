"""One-way channels between a sandboxed process and its host.

They are sockets: a process that may look into another one's `/proc/PID/fd` can open a pipe there,
for reading and for writing, but no socket (ENXIO).
"""

from __future__ import annotations

import socket


def one_way() -> tuple[int, int]:
    """The descriptor to read from, and the one to write to. Neither is inherited."""
    reader, writer = socket.socketpair()
    reader.shutdown(socket.SHUT_WR)
    writer.shutdown(socket.SHUT_RD)
    return reader.detach(), writer.detach()
