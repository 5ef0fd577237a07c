"""The program of a tracker: follows a run until its standard input ends, then looks once more.

Its first line of input is the request, JSON: {"store", "plan", "label", "project", "settings",
"folder", "every"}; secrets and other variables are in its environment. Lines that it prints are for
people, its errors for a log. Whoever started it may be killed: its input ends with it.
`agentc.tracking.trackers` is the other end.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.tracking.follow import RunFollower
from agentc.runtime.tracking.sink import Names, TrackerSink

Report = Callable[[str], None]
MakeSink = Callable[[Mapping[str, Any], Path, Report], TrackerSink]
"""From the settings of the spec, a folder for the tracker's files, and what is told where people
will look."""
_AT_ONCE_S = 0.2
_SHARE = 9
"""A look at ten thousand jobs takes a while; nine tenths of the time belong to them."""


def main(make_sink: MakeSink) -> int:
    """Serve one request; the exit status. What the tracker's library raises ends the process."""
    lines, report = _claim_stdout()
    request = json.loads(sys.stdin.readline())
    over = threading.Event()
    # Read beside the work, so that the end is seen while a look is waited for.
    threading.Thread(target=_await_end, args=(over,), daemon=True).start()
    document = _plan(Path(request["plan"]))
    places: list[str] = []
    sink = make_sink(request["settings"], Path(request["folder"]), places.append)
    names = Names(document, request["label"], request["project"])
    follower = RunFollower(StoreLayout(request["store"]), document, names, sink, report)
    where = "; ".join(places)
    # Of a run that is over it is said once, at the end.
    if not over.wait(_AT_ONCE_S):
        report(where)
    while True:
        last = over.is_set()
        began = time.monotonic()
        follower.observe()
        sink.flush()
        if last:
            break
        over.wait(max(float(request["every"]), _SHARE * (time.monotonic() - began)))
    sink.close()
    report(f"{follower.points} values written; {where}")
    lines.close()
    return 0


def _claim_stdout() -> Any:
    """What people are told, on the standard output; what libraries print goes to the errors."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def report(text: str) -> None:
        lines.write(text.replace("\n", " ") + "\n")
        lines.flush()

    return lines, report


def _await_end(over: threading.Event) -> None:
    while sys.stdin.readline():
        pass
    over.set()


def _plan(path: Path) -> Mapping[str, Any]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    document: Mapping[str, Any] = json.loads(text.decode("utf-8"))
    return document
