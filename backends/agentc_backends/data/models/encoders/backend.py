"""Declares `encoder.scratch`, `encoder.hf` and `encoder.path`."""

from __future__ import annotations

from dataclasses import replace

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import VISION_ENCODER
from agentc.kinds.field import Json
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
    for name, example in (
        ("repo", "openai/clip-vit-base-patch32"),
        ("revision", "the 40 hex digits of a commit, or a branch that `agentc lock` pins"),
    ):
        if not view.is_set(name):
            view.refuse(name, f"encoder.hf needs `{name}`", fix=f"set {name}: {example}")
    repo, revision = view.get("repo"), view.get("revision")
    commit = None
    if isinstance(repo, str) and isinstance(revision, str):
        commit = context.pinned_revision(repo, revision)
        if commit is None:
            view.refuse(
                "revision",
                f"`{revision}` is a branch or a tag, which may move, and no lock pins it",
                fix="run `agentc lock` on the spec, or give the 40 hex digits of a commit",
            )
    draft = _draft("hf", view, {"repo": repo, "revision": commit})
    # A branch says nothing about content; what it is pinned to does.
    pinned: dict[str, Json] = {} if commit == revision else {"commit": commit}
    return (replace(draft, extra_identity=pinned, contract={"network": True}),)


def _lower_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    path, digest = view.get("path"), None
    if not isinstance(path, str):
        view.refuse("path", "encoder.path needs `path`", fix="set path: <a model directory>")
    else:
        # The directory is no object of the store, so its content has to enter the key.
        digest = context.digest_of(path)
        if digest is None:
            view.refuse(
                "path",
                f"there is no readable directory {path}",
                fix="give a directory in Hugging Face layout, relative to the spec or absolute",
            )
    draft = _draft("path", view, {"path": path, "digest": digest})
    return (replace(draft, extra_identity={"files": digest}),)


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
