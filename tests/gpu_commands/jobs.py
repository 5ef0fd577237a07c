"""The jobs of shipped specs that ask for GPUs: what their programs are given, and which model their
work is on. `models/` holds the config.json of each published one: facts, no weights; that of one
which a spec makes follows from its settings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import Software, StageBackend, StageView, load_backends
from agentc.compilation import compile_spec
from agentc.kinds import kind_named
from agentc.kinds.table import TRAINERS
from agentc.lease_roles import is_model_server
from agentc.memory import scratch_architecture
from agentc.plan.job import Job, Plan
from agentc.runtime.software.lock_text import lock_digest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_EARLIER = ("model", "policy", "critic", "reference")
"""Inputs by which a checkpoint descends from another one."""
_MODELS = ("model.hf", "model.scratch")


@dataclass(frozen=True, slots=True)
class Training:
    """A training job: the config that its program reads, and how many processes share it."""

    name: str
    backend: str
    model: str
    config: Mapping[str, Any]
    placement: Mapping[str, Any]
    global_batch: int
    sharding: str

    @property
    def processes(self) -> int:
        """That share it."""
        value = self.placement.get("processes")
        return value if isinstance(value, int) else 1

    def record(self, folder: Path) -> dict[str, Any]:
        """For the program of another interpreter; `folder` has a folder for each model."""
        return {
            "name": self.name,
            "backend": self.backend,
            "model": str(folder / self.model),
            "config": dict(self.config),
            "placement": dict(self.placement),
            "processes": self.processes,
        }


@dataclass(frozen=True, slots=True)
class Serving:
    """A server of a job on GPUs: its program's words."""

    name: str
    model: str
    program: tuple[str, ...]
    software: str | None
    gpus: int


@cache
def plans() -> tuple[tuple[str, Plan], ...]:
    """Every shipped spec at its own scale."""
    found = []
    for path in sorted((ROOT / "specs").rglob("*.yaml")):
        compiled = compile_spec(path, {}, load_backends())
        assert compiled.plan is not None, (path, compiled.diagnostics)
        found.append((str(path.relative_to(ROOT / "specs")), compiled.plan))
    return tuple(found)


def on_gpus() -> Iterator[tuple[str, Plan, Job]]:
    """(name, plan, job) of each job that asks for a GPU."""
    for spec, plan in plans():
        for job in plan.jobs:
            if job.resources.gpus:
                yield f"{spec} {job.id}", plan, job


def trainings(backend: str) -> list[Training]:
    """The training jobs of a backend (`trl.sft`)."""
    return [
        Training(
            name,
            backend,
            _model(plan, job),
            job.draft.config,
            job.draft.placement,
            job.draft.view.integer("global_batch"),
            job.draft.view.text("sharding"),
        )
        for name, plan, job in on_gpus()
        if job.draft.backend == backend
    ]


def trainings_by(backend: StageBackend) -> list[Training]:
    """What a backend that no shipped spec names makes of every training job of its kind."""
    kind = kind_named(backend.kind)
    assert kind is not None
    table = (*kind.fields, *backend.options)
    known = {field.name for field in table}
    found = []
    for name, plan, job in on_gpus():
        if job.draft.kind != backend.kind:
            continue
        given = job.draft.view
        view = StageView(
            table=table,
            values={k: v for k, v in given.values.items() if k in known},
            kind=given.kind,
            inputs=given.inputs,
        )
        (draft,) = backend.lower(view, None)  # type: ignore[arg-type]
        if view.refusals and all(refusal.capability for refusal in view.refusals):
            continue  # what the backend says that it cannot do: it is never chosen for this job
        assert view.refusals == [], name
        found.append(
            Training(
                name,
                backend.id,
                _model(plan, job),
                draft.config,
                {**job.draft.placement, **draft.placement},
                view.integer("global_batch"),
                view.text("sharding"),
            )
        )
    return found


def servings() -> list[Serving]:
    """The model servers on GPUs: those within jobs, and the shared ones."""
    within = [
        (name, plan, job, lease)
        for name, plan, job in on_gpus()
        for lease in job.leases
        if is_model_server(lease.draft.role) and not lease.server and lease.draft.devices
    ]
    shared = [
        (f"{spec} {server.id}", plan, plan.by_id()[server.clients[0]], server.lease)
        for spec, plan in plans()
        for server in plan.servers
        if server.resources.gpus and is_model_server(server.lease.draft.role)
    ]
    return [
        Serving(
            name,
            _model(plan, plan.by_id()[job.inputs[lease.draft.input][0]]),
            lease.draft.program,
            lease.software,
            lease.draft.devices,
        )
        for name, plan, job, lease in (*within, *shared)
        if lease.draft.input is not None
    ]


def model_folders(folder: Path) -> Path:
    """A folder with one for each model, which holds its config.json."""
    for model in (*(path.stem for path in (HERE / "models").glob("*.json")), *made_models()):
        place = folder / model
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps(config_of(model)))
    return folder


def config_of(model: str) -> dict[str, Any]:
    """The config.json of a model."""
    made = made_models().get(model)
    if made is not None:
        return _written(made.draft.config)
    value: dict[str, Any] = json.loads((HERE / "models" / f"{model}.json").read_text())
    return value


@cache
def made_models() -> dict[str, Job]:
    """The jobs that make models from scratch, of which work on GPUs goes on, by their names."""
    found = {}
    for _, plan, job in on_gpus():
        if job.draft.kind in TRAINERS or job.lease("policy") is not None:
            made = _origin(plan, job)
            if made.draft.backend == "model.scratch":
                found[_model(plan, job)] = made
    return found


def weights_of(made: Job) -> int:
    """How many weights the model of such a job has, as the memory model counts them."""
    shape = scratch_architecture(made.draft.view.get)
    assert shape is not None
    return shape.parameters


def _written(config: Mapping[str, Any]) -> dict[str, Any]:
    assert config["architecture"] == "llama"
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": config["hidden_size"],
        "num_hidden_layers": config["layers"],
        "num_attention_heads": config["heads"],
        "num_key_value_heads": config["kv_heads"],
        "intermediate_size": config["intermediate_size"],
        "vocab_size": config["vocab_size"],
        "max_position_embeddings": config["context"],
        "tie_word_embeddings": config["tie_embeddings"],
        "torch_dtype": "float32",
    }


def interpreter(software: Software) -> Path:
    """That of a software stack; the test is skipped where it is not built."""
    folder = Path(os.environ.get("AGENTC_SOFTWARE", ROOT / ".agentc" / "software"))
    digest = lock_digest(software.text)[:16]
    if not (folder / digest / "complete.json").exists():
        pytest.skip(f"the software stack `{software.name}` ({digest}) is not built in {folder}")
    return folder / digest / "bin" / "python"


def _model(plan: Plan, job: Job) -> str:
    """The published model that a job's checkpoint descends from, without its owner's name, or
    `<spec>-<stage>` of one that the spec makes."""
    origin = _origin(plan, job)
    if origin.draft.backend == "model.scratch":
        return f"{plan.name}-{origin.id}"
    return str(origin.draft.config["repo"]).rpartition("/")[2]


def _origin(plan: Plan, job: Job) -> Job:
    """The job of the model that a job's checkpoint descends from."""
    jobs = {each.id: each for each in plan.jobs}
    while job.draft.backend not in _MODELS:
        inputs = job.inputs
        (earlier,) = next(inputs[role] for role in _EARLIER if inputs.get(role))
        job = jobs[earlier]
    return job
