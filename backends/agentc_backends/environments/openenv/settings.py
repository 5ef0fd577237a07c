"""What a spec may write of an OpenEnv server, and what ours in front of it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc.program.settings import setting, unless


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEnvSettings:
    # What a server is told are the numbers, however they are written.
    splits: Mapping[str, Any] = setting(
        "Task numbers of each split: `{range: [first, end]}` (the end is left out), `{ids: [...]}` "
        "or `{file: path}`, each with `except: [other split]`. Splits that share a task are "
        "refused.")
    task_field: str = setting("Field of a reset that gets the task's number.", "seed")
    reset: Mapping[str, Any] = setting("Further fields of each reset.", {})
    action_form: Literal["text", "json"] = setting(
        "What an agent writes: the `text` of one field, or a `json` object of all fields.", "text")
    action_field: str | None = setting(
        "The field that `text` goes to. Unset: the only one that the server's schema requests.",
        None,
        only_if=unless(
            "action_form", "json", because="`action_form: json` fills all fields"))
    action: Mapping[str, Any] = setting("Further fields of each action.", {})
    observation_fields: tuple[str, ...] = setting(
        "Fields of observations that agents see. Unset: all but reward, done, metadata.", ())
    instruction: str | None = setting(
        "What each task's first text begins with.", None, blank=True)
    step_errors: Literal["failure", "observation"] = setting(
        "What an error of the server about a well-formed action is: a `failure`, which voids the "
        "episode, or an `observation` for the agent.", "failure")
    reward: Mapping[str, Any] = setting("What the server's rewards mean.", {})
    max_turns: int = setting("Turns of an episode, where the stage does not say.", 50, minimum=1)
    url: str | None = setting(
        "Address of a server that runs already.", None, pattern="^https?://", identity="placement")
    launch: Mapping[str, Any] | None = setting(
        "Start the server for each job instead. Commands of a spec run only where "
        "AGENTC_ALLOW_LAUNCH is 1. Command, folder and variables enter the key.", None, rule=False)
    fingerprint: str | None = setting(
        "What the server's fingerprint must be (its log has it; a digest of the first texts of "
        "some tasks); another server is refused. Unset: any.", None, pattern="^[0-9a-f]{32}$",
        served=False)
    release: str | None = setting(
        "What is served, in words, such as a commit: results of another release get keys of their "
        "own.", None)
    timeout_s: float = setting(
        "How long one call of the server may take, and a wait for a free place there.", 300.0,
        above=0, identity="placement")
    sessions: int = setting(
        "Episodes at a time. OpenEnv's servers hold one unless configured otherwise.", 8,
        minimum=1, identity="placement")
