"""Declares `text_encoder.scratch`, `text_encoder.hf` and `text_encoder.path`."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import TEXT_ENCODER
from agentc.kinds.field import Json
from agentc_backends.data.models.sources import from_directory, from_hub
from agentc_backends.software import TORCH

_SIZES = ("hidden_size", "layers", "heads", "context", "vocab_size", "seed")


def _lower_scratch(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    config: dict[str, Json] = {name: view.integer(name) for name in _SIZES}
    if view.integer("hidden_size") % view.integer("heads"):
        view.refuse(
            "heads",
            f"{config['heads']} heads do not divide a width of {config['hidden_size']}",
            fix="choose `hidden_size` as a multiple of `heads`",
        )
    if not view.inputs.get("corpus"):
        view.refuse(
            "corpus",
            "a new tokenizer is trained on the text of a corpus, and this stage names none",
            fix="add `corpus: [<a stage that yields trajectories or conversations>]`",
        )
    return (_draft("scratch", view, config),)


def _lower_hf(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (from_hub(_draft("hf", view, {}), context, "FacebookAI/roberta-base"),)


def _lower_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (from_directory(_draft("path", view, {}), context),)


def _draft(name: str, view: StageView, config: dict[str, Json]) -> JobDraft:
    return JobDraft(
        kind="text_encoder",
        backend=f"text_encoder.{name}",
        version=1,
        software=TORCH,
        program=("-m", f"agentc_backends.data.models.text_encoders.job_{name}"),
        view=view,
        config=config,
        inputs=view.inputs,
        produces=TEXT_ENCODER.name,
    )


SCRATCH = StageBackend(
    id="text_encoder.scratch",
    kind="text_encoder",
    version=1,
    doc="A new RoBERTa with random weights and a tokenizer trained on the corpus: for runs without "
    "downloaded weights.",
    software=TORCH,
    lower=_lower_scratch,
    capabilities=frozenset({"offline", "new_tokenizer"}),
)

HF = StageBackend(
    id="text_encoder.hf",
    kind="text_encoder",
    version=1,
    doc="An encoder from the Hugging Face hub at a pinned commit, safetensors only.",
    software=TORCH,
    lower=_lower_hf,
    capabilities=frozenset({"pretrained"}),
)

PATH = StageBackend(
    id="text_encoder.path",
    kind="text_encoder",
    version=1,
    doc="An encoder in a directory of this machine in Hugging Face layout, safetensors only.",
    software=TORCH,
    lower=_lower_path,
    capabilities=frozenset({"offline", "pretrained"}),
)
