"""Declares `env.verifiers`: a taskset of the package `verifiers`.

A taskset runs under a harness of its own, so nobody opens it step by step: stages of the backend
`verifiers` (`agents/verifiers`) read the lease's settings and never start a server."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.backend_api import OWN_LOOP, TASKSET, EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc.program.settings import setting
from agentc_backends.environments.declaration import effective
from agentc_backends.environments.external.fields import (
    REWARD_FIELDS,
    check_rewards,
    declared_by,
)
from agentc_backends.environments.external.task_lists import expected_numbers, read_splits
from agentc_backends.environments.server.splits import SplitError, fold_numbers
from agentc_backends.software import VERIFIERS
from agentc_backends.user_files.files import file_entries, read_texts


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class TasksetSettings:
    taskset: str = setting(
        "Its id, as verifiers has it: the name of a module that the software holds or that "
        "`sources` has, or of a taskset that comes with verifiers.")
    splits: Mapping[str, Any] = setting(
        "Tasks by their places in the taskset, from 0; those of each split: `{range: [first, "
        "end]}` (the end is left out), `{ids: [...]}` or `{file: path}`, each with `except: "
        "[other split]`. Splits that share a task are refused.")
    sources: tuple[str, ...] = setting(
        "Files of text, relative to the spec, that are the taskset's modules or are read by them.",
        ())
    config: Mapping[str, Any] = setting("The taskset's own settings, by its own names.", {})
    reward: Mapping[str, Any] = setting("What its rewards mean.", {})
    max_turns: int = setting("Replies of an episode, where the stage does not say.", 30, minimum=1)


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, TasksetSettings)
    check_rewards(options)
    if options.get("reward.kind") != "sum":
        options.refuse("reward.kind", "a taskset gives an episode one reward", fix="remove it")
    if "id" in settings.config:
        options.refuse("config", "`id` cannot be given: `taskset` says it")
    try:
        splits = read_splits(settings.splits, options.file, None)
    except SplitError as error:
        options.refuse("splits", str(error))
        splits = {}
    lines: dict[str, Json] = {name: fold_numbers(part) for name, part in splits.items()}
    files = dict(read_texts(options, [("sources", name) for name in settings.sources]))
    digests: dict[str, Json] = {
        name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in files.items()
    }
    return LeaseDraft(
        role="environment",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=BACKEND.software,
        program=(),
        settings={
            "taskset": settings.taskset,
            "config": {**settings.config},
            "splits": lines,
            "files": file_entries(files),
            "reward": options.get("reward"),
            "max_turns": settings.max_turns,
        },
        identity={**options.identity(), "splits": lines, "sources": digests},
        port="none",
        identity_check="none",
    )


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    return declared_by(BACKEND, given)


BACKEND = EnvironmentBackend(
    id="env.verifiers",
    example='{taskset: sums, splits: {train: {range: [0, 150]}, test: {range: [150, 200]}}}',
    version=1,
    doc="A taskset of the package verifiers. It is played by its own harness, so only stages of "
    "the backend `verifiers` take it: `rollout.verifiers`, `evaluate.verifiers`.",
    software=VERIFIERS,
    lease=_lease,
    fields=fields_of(TasksetSettings, groups={"reward": REWARD_FIELDS}),
    capabilities=frozenset({OWN_LOOP, TASKSET}),
    max_turns=30,
    expected_tasks=expected_numbers,
    configured=_configured,
)
