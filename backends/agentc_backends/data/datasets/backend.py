"""Declares `dataset.path` and `dataset.hf` and lowers their stages to one job each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from agentc.backend_api import JobDraft, LowerContext, Software, StageBackend, StageView
from agentc.kinds.artifacts import PREFERENCE_PAIRS, SFT_DATASET
from agentc.kinds.field import Json
from agentc.kinds.models import LayoutName, RecordReading
from agentc.program.settings import settings_from
from agentc_backends.data.hub_revisions import pinned_commit
from agentc_backends.software import LIGHT, TORCH

_VERSION = 2
_FORMATS = get_args(LayoutName)


def _lower_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    path = view.get("path")
    digest = None
    if not isinstance(path, str):
        view.refuse("path", "dataset.path needs `path`", fix="set path: <a JSON or JSONL file>")
    elif "*" in path or "?" in path:
        view.refuse(
            "path",
            f"{path} is a pattern, and dataset.path reads one file",
            fix="name one file; several files are several dataset stages, or one file made by "
            f"`cat {path} > all.jsonl`",
        )
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
                missing=path if isinstance(path, str) else None,
            )
    reading = _reading(view)
    config: dict[str, Json] = {"path": path, "digest": digest, **reading}
    place = context.local_file(path) if isinstance(path, str) and digest is not None else None
    expected = {} if place is None else _expected(view, place, reading)
    draft = _draft("path", LIGHT, view, config)
    return (replace(draft, extra_identity={"files": digest}, expected=expected),)


def _expected(view: StageView, place: Path, reading: Mapping[str, Any]) -> dict[str, Json]:
    """The rows of a local file, for estimates, and its marked replies. Refuses what its job would
    end with."""
    # Other commands load this module too, and read no data.
    from agentc_backends.data.datasets.survey import survey

    found = survey(place, settings_from(RecordReading, reading))
    if found.trouble is not None:
        view.refuse("path", found.trouble.reason, fix=found.trouble.fix or None)
        return {}
    marked: dict[str, Json] = {"marked": found.marked} if found.marked else {}
    about: dict[str, Json] = {"rows": found.rows, "characters": round(found.characters)}
    return {**about, **marked} if found.rows else {}


def _lower_hf(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    for name, example in (
        ("repo", "<owner>/<name> of a data set repository"),
        ("revision", "main, which the first run pins to a commit"),
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
    repo, revision = view.get("repo"), view.get("revision")
    commit = None
    if isinstance(repo, str) and isinstance(revision, str):
        commit = pinned_commit(view, context, f"datasets/{repo}", revision)
    config: dict[str, Json] = {
        "repo": repo,
        "revision": commit,
        "file": file,
        **_reading(view),
    }
    token = view.secret("token")
    draft = replace(
        _draft("hf", TORCH, view, config),
        contract={"network": True},
        local=True,
        extra_identity={} if commit == revision else {"commit": commit},
        secrets={} if token is None else {"HF_TOKEN": token},
    )
    return (draft,)


def _inside(file: str) -> bool:
    path = PurePosixPath(file)
    return bool(file) and not path.is_absolute() and ".." not in path.parts and "\\" not in file


def _reading(view: StageView) -> dict[str, Json]:
    return {"seed": 0, **view.config_of(RecordReading)}


def _draft(name: str, software: Software, view: StageView, config: dict[str, Json]) -> JobDraft:
    return JobDraft(
        kind="dataset",
        backend=f"dataset.{name}",
        version=_VERSION,
        software=software,
        program=("-m", f"agentc_backends.data.datasets.job_{name}"),
        view=view,
        config=config,
        inputs={},
        produces=(PREFERENCE_PAIRS if config["format"] == "preference" else SFT_DATASET).name,
    )


PATH = StageBackend(
    id="dataset.path",
    kind="dataset",
    version=_VERSION,
    doc="Conversations from a JSON or JSONL file of this machine.",
    software=LIGHT,
    lower=_lower_path,
    capabilities=frozenset({"offline", *_FORMATS}),
)

HF = StageBackend(
    id="dataset.hf",
    example="{path: null, repo: owner/name, file: train.jsonl}",
    kind="dataset",
    version=_VERSION,
    doc="Conversations from a JSON or JSONL file of a Hugging Face data set at a pinned commit.",
    software=TORCH,
    lower=_lower_hf,
    capabilities=frozenset(_FORMATS),
)
