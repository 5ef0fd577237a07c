"""Declares `encoder.scratch`, `encoder.hf` and `encoder.path`."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import VISION_ENCODER
from agentc.kinds.field import Json
from agentc_backends.data.models.sources import from_directory, from_hub
from agentc_backends.software import VISION

_SIZES = ("width", "layers", "heads", "patch_size", "image_size", "features", "seed")


def _lower_scratch(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    config: dict[str, Json] = {name: view.integer(name) for name in _SIZES}
    if view.integer("width") % view.integer("heads"):
        view.refuse(
            "heads",
            f"{config['heads']} heads do not divide a width of {config['width']}",
            fix="choose `width` as a multiple of `heads`",
        )
    if view.integer("patch_size") > view.integer("image_size"):
        view.refuse(
            "patch_size",
            f"a patch of {config['patch_size']} pixels does not fit into {config['image_size']}",
            fix="make `image_size` a multiple of `patch_size`",
        )
    return (_draft("scratch", view, config),)


def _lower_hf(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (from_hub(_draft("hf", view, {}), context, "openai/clip-vit-base-patch32"),)


def _lower_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (from_directory(_draft("path", view, {}), context),)


def _draft(name: str, view: StageView, config: dict[str, Json]) -> JobDraft:
    return JobDraft(
        kind="encoder",
        backend=f"encoder.{name}",
        version=1,
        software=VISION,
        program=("-m", f"agentc_backends.data.models.encoders.job_{name}"),
        view=view,
        config=config,
        inputs=view.inputs,
        produces=VISION_ENCODER.name,
    )


SCRATCH = StageBackend(
    id="encoder.scratch",
    kind="encoder",
    version=1,
    doc="A new CLIP with random weights, of pictures alone: for runs without downloaded weights, "
    "whose cosines mean nothing.",
    software=VISION,
    lower=_lower_scratch,
    capabilities=frozenset({"offline"}),
)

HF = StageBackend(
    id="encoder.hf",
    kind="encoder",
    version=1,
    doc="A CLIP from the Hugging Face hub at a pinned commit, safetensors only.",
    software=VISION,
    lower=_lower_hf,
    capabilities=frozenset({"pretrained"}),
)

PATH = StageBackend(
    id="encoder.path",
    kind="encoder",
    version=1,
    doc="A CLIP in a directory of this machine in Hugging Face layout, safetensors only.",
    software=VISION,
    lower=_lower_path,
    capabilities=frozenset({"offline", "pretrained"}),
)
