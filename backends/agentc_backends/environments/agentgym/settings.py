"""What a spec may write of an AgentGym server, and what ours in front of it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGymSettings:
    server: str = setting("Member of the AgentGym family; `other`: `dialect` says how it speaks.")
    # What a server is told are the numbers, however they are written.
    splits: Mapping[str, Any] = setting(
        "Task numbers of each split: `{range: [first, end]}` (the end is left out), `{ids: [...]}` "
        "or `{file: path}` (a list of numbers or of items like textcraft_31), each with `except: "
        "[other split]`, and `repeated: drop` where a list has a task twice. Splits that share a "
        "task are refused.")
    url: str | None = setting(
        "Address of a server that runs already.", None, pattern="^https?://", identity="placement")
    launch: Mapping[str, Any] | None = setting(
        "Start the server for each job instead. Commands of a spec run only where "
        "AGENTC_ALLOW_LAUNCH is 1. Command, folder and variables enter the key.", None, rule=False)
    fingerprint: str | None = setting(
        "What the server's fingerprint must be (`agentc` prints it; a digest of the first texts "
        "of some tasks); another server is refused. Unset: any.", None, pattern="^[0-9a-f]{32}$",
        served=False)
    release: str | None = setting(
        "What is served, in words, such as a commit: results of another release get keys of their "
        "own.", None)
    timeout_s: float = setting(
        "How long one call of the server may take.", 300.0, above=0, identity="placement")
    sessions: int = setting(
        "Sessions open on the server at a time.", 64, minimum=1, identity="placement")
    dialect: Mapping[str, Any] | None = setting(
        "What the server does differently from the family's member as released.", None)
