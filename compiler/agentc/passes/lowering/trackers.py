"""What a stranger's `track:` may not do unseen: name secrets, and files outside of its folder.

Neighbours: `secrets.py`, which lists the secrets of stages and servers; `front/resolve_track.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentc.backend_api import installed_trackers
from agentc.diagnostics.sink import Sink
from agentc.ir.module import Module
from agentc.kinds.field import SECRET
from agentc.passes.lowering.secrets import SecretUse
from agentc.source.boundary import VARIABLE, Boundary, OutsideError


def secrets_of_trackers(module: Module) -> Iterator[SecretUse]:
    """Every secret that a tracker is given; no stage is."""
    known = installed_trackers() if module.track else {}
    for each in module.track:
        tracker = known[each.tracker]
        for setting in tracker.secrets:
            reference = each.settings.get(setting)
            if isinstance(reference, dict):
                yield SecretUse(
                    name=str(reference[SECRET]),
                    setting=setting,
                    owner=f"tracker `{tracker.id}`",
                    stages=frozenset(),
                    url=tracker.sent_to(each.settings),
                    span=each.span,
                )


def report_places(module: Module, boundary: Boundary, sink: Sink) -> None:
    """AGC123 for each file or folder that a tracker would write to and the spec may not name."""
    known = installed_trackers() if module.track else {}
    for each in module.track:
        for setting, written in known[each.tracker].written_to(each.settings).items():
            try:
                boundary.find(written)
            except OutsideError as outside:
                sink.error(
                    "AGC123",
                    f"`track.{each.tracker}.{setting}` names a place outside of the spec's folder:"
                    f" {outside.place}",
                    each.span,
                    fix=f"if this spec may write there: `--allow-path {Path(outside.place)}`, "
                    f"or put the directory into {VARIABLE}",
                )
