"""Whether a server's replies wait for something other than its work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http.client import HTTPConnection
from urllib.parse import urlsplit

from tests.support.patience import PATIENCE_S

ACKNOWLEDGEMENT_S = 0.04
"""Linux delays an acknowledgement by at least so long. A server that writes a reply in two parts
with Nagle's algorithm on waits for it in every reply after a connection's first."""


def least_wait(url: str, path: str, headers: Mapping[str, str]) -> float:
    """Seconds of the fastest of many replies on one connection, its first ones left out. The least
    of them, for a busy machine delays some, and an acknowledgement that is
    waited for delays all."""
    parts = urlsplit(url)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_S)
    taken: list[float] = []
    for number in range(1000):
        if number > 40 and min(taken[3:]) < ACKNOWLEDGEMENT_S / 2:
            break
        began = time.perf_counter()
        connection.request("GET", path, headers=dict(headers))
        connection.getresponse().read()
        taken.append(time.perf_counter() - began)
    connection.close()
    return min(taken[3:])
