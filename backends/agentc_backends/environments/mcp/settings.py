"""What a spec may write of an MCP server, and what ours in front of it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.server.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    # What a server is told are the rows themselves; its identity has their digest.
    tasks: Mapping[str, Any] = setting(
        "What agents are to do: `{rows: [...]}`, or `{file: path}` with a row of JSON a line. A "
        "row has an `instruction`, and what its success is: an `answer`, or a `pattern` (and its "
        "`tool`).", rule=False)
    # What a server is told are the numbers, however they are written.
    splits: Mapping[str, Any] = setting(
        "Places in `tasks`, from 0, of each split: `{range: [first, end]}` (the end is left out), "
        "`{ids: [...]}` or `{file: path}`, each with `except: [other split]`. Splits that share a "
        "task are refused.")
    success: Mapping[str, Any] | None = setting(
        "The success of tasks that say none themselves: a result of a tool.", None, rule=False)
    tools: tuple[str, ...] = setting(
        "Tools that agents are told of and may call. Unset: all that the server has.", ())
    instruction: str | None = setting(
        "What each task's first text begins with.", None, blank=True)
    max_turns: int = setting("Turns of an episode, where the stage does not say.", 20, minimum=1)
    launch: Mapping[str, Any] | None = setting(
        "Start a server for each episode and speak with it over stdio. Commands of a spec run only "
        "where AGENTC_ALLOW_LAUNCH is 1. Command, folder and variables enter the key.", None,
        rule=False)
    url: str | None = setting(
        "Address of a server that runs already and speaks streamable HTTP.", None,
        pattern="^https?://", identity="placement")
    fingerprint: str | None = setting(
        "What the server's fingerprint must be (its log has it; a digest of its tools); another "
        "server is refused. Unset: any.", None, pattern="^[0-9a-f]{32}$", served=False)
    release: str | None = setting(
        "What is served, in words, such as a commit: results of another release get keys of their "
        "own.", None)
    timeout_s: float = setting(
        "How long a session may take to open, and one call.", 120.0, above=0, identity="placement")
    sessions: int = setting(
        "Episodes at a time; each has a process of its own under `launch`.", 8, minimum=1,
        identity="placement")

    @property
    def reward(self) -> Mapping[str, Any]:
        """An episode's is 1 where it succeeds, else 0 (`foreign/score.py`)."""
        return {}
