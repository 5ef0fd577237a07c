"""Declares `dataset.path` and `dataset.hf` and lowers their stages to one job each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from agentc.backend_api import JobDraft, LowerContext, SoftwareEnvironment, StageBackend, StageView
from agentc.kinds.artifacts import SFT_DATASET
from agentc.kinds.field import Json
from agentc_backends.software import LIGHT, TORCH

_VERSION = 1


def _lower_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    path = view.get("path")
    digest = None
    if not isinstance(path, str):
        view.refuse("path", "dataset.path needs `path`", fix="set path: <a JSON or JSONL file>")
    elif context.is_directory(path):
        view.refuse(
            "path",
            f"{path} is a directory, and dataset.path reads one file",
            fix="name the JSON or JSONL file in it; several files are several dataset stages",
        )
    else:
        # The file is no object of the store, so its content has to enter the key.
        digest = context.digest_of(path)
        if digest is None:
            view.refuse(
                "path",
                f"there is no readable file {path}",
                fix="give a JSON or JSONL file, relative to the spec or absolute",
            )
    config: dict[str, Json] = {"path": path, "digest": digest, **_reading(view)}
    return (replace(_draft("path", LIGHT, view, config), extra_identity={"files": digest}),)


def _lower_hf(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    for name, example in (
        ("repo", "<owner>/<name> of a data set repository"),
        ("revision", "the 40 hex digits of a commit"),
        ("file", "the path of a JSON or JSONL file in the repository"),
    ):
        if not view.is_set(name):
            view.refuse(name, f"dataset.hf needs `{name}`", fix=f"set {name}: {example}")
    file = view.get("file")
    if isinstance(file, str) and not _inside(file):
        view.refuse(
            "file",
            f"{file} is no path inside of a repository",
            fix="write it as the hub shows it, such as data/train.jsonl",
        )
    config: dict[str, Json] = {
        "repo": view.get("repo"),
        "revision": view.get("revision"),
        "file": file,
        **_reading(view),
    }
    token = view.secret("token")
    draft = replace(
        _draft("hf", TORCH, view, config),
        contract={"network": True},
        secrets={} if token is None else {"HF_TOKEN": token},
    )
    return (draft,)


def _inside(file: str) -> bool:
    path = PurePosixPath(file)
    return bool(file) and not path.is_absolute() and ".." not in path.parts and "\\" not in file


def _reading(view: StageView) -> dict[str, Json]:
    limit = view.get("limit")
    if limit is None:
        view.leave("seed", "nothing is drawn without `limit`")
    # What few plans have is left out of the others.
    more: dict[str, Json] = {}
    if (ids := view.text("task_ids")) != "as_written":
        more["task_ids"] = ids
    for name in ("reward", "prompt_length"):
        if (value := view.get(name)) is not None:
            more[name] = value
    return {
        **more,
        "format": view.text("format"),
        "on_malformed": view.text("on_malformed"),
        "limit": limit,
        "seed": 0 if limit is None else view.integer("seed"),
    }


def _draft(
    name: str, software: SoftwareEnvironment, view: StageView, config: dict[str, Json]
) -> JobDraft:
    return JobDraft(
        kind="dataset",
        backend=f"dataset.{name}",
        version=_VERSION,
        software=software,
        program=("-m", f"agentc_backends.data.datasets.job_{name}"),
        view=view,
        config=config,
        inputs={},
        produces=SFT_DATASET.name,
    )


PATH = StageBackend(
    id="dataset.path",
    kind="dataset",
    version=_VERSION,
    doc="Conversations from a JSON or JSONL file of this machine.",
    software=LIGHT,
    lower=_lower_path,
    capabilities=frozenset({"offline", "messages", "sharegpt", "alpaca"}),
)

HF = StageBackend(
    id="dataset.hf",
    kind="dataset",
    version=_VERSION,
    doc="Conversations from a JSON or JSONL file of a Hugging Face data set at a pinned commit.",
    software=TORCH,
    lower=_lower_hf,
    capabilities=frozenset({"messages", "sharegpt", "alpaca"}),
)
