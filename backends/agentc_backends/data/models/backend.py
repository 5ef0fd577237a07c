"""Declares `model.*`, `encoder.*` (of pictures) and `text_encoder.*`, each with `scratch`, `hf` and
`path`."""

from __future__ import annotations

from dataclasses import replace

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import CHECKPOINT, TEXT_ENCODER, VISION_ENCODER
from agentc.kinds.field import Json
from agentc.kinds.models import NewEncoder, NewModel, NewTextEncoder
from agentc.program.artifact_files import SCORED_FILE
from agentc_backends.data.models.sources import REMOTE_CODE, from_directory, from_hub
from agentc_backends.software import TORCH, VISION

_SCRATCH_VERSION, _VERSION = 1, 2


def _lower_scratch(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    chat_format = view.text("chat_format")
    if chat_format == "tokenizer":
        if view.is_set("chat_format"):
            view.refuse(
                "chat_format",
                "a new tokenizer ships no template",
                fix="set chat_format: chatml, llama-2, mistral, vicuna or plain",
            )
        chat_format = "chatml"
    if not view.inputs.get("corpus"):
        view.refuse(
            "corpus",
            "a new tokenizer is trained on the text of a corpus, and this stage names none",
            fix="add `corpus: [<a stage that yields trajectories or conversations>]`",
        )
    hidden, heads = view.integer("hidden_size"), view.integer("heads")
    kv_heads = _or(view.get("kv_heads"), heads)
    if hidden % heads or (hidden // heads) % 2:
        view.refuse(
            "heads",
            f"hidden_size {hidden} / {heads} heads is not an even whole number",
            fix="choose hidden_size as a multiple of 2 * heads (64 * heads serves everywhere)",
        )
    if heads % kv_heads:
        view.refuse(
            "kv_heads",
            f"{kv_heads} key/value heads do not divide {heads} heads",
            fix=f"set kv_heads to a divisor of {heads}",
        )
    if view.text("initialisation") == "induction":
        layers = view.integer("layers")
        if layers < 2 or heads % 2 or kv_heads != heads or (hidden // heads) % 4:
            view.refuse(
                "initialisation",
                "induction wires two blocks with an even number of heads, as many kv_heads, and a "
                "head size that 4 divides",
                fix="set layers: 2 or more, an even `heads`, kv_heads: null; or "
                "initialisation: random",
            )
    config: dict[str, Json] = {
        **view.config_of(NewModel),
        "kv_heads": kv_heads,
        "intermediate_size": _or(view.get("intermediate_size"), 2 * hidden),
        "chat_format": chat_format,
    }
    return (_draft("model", "scratch", view, config, _SCRATCH_VERSION),)


def _lower_hf(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    draft = _draft("model", "hf", view, {"chat_format": view.text("chat_format")}, _VERSION)
    taken = from_hub(draft, context, "meta-llama/Llama-2-7b-chat-hf")
    if view.flag(REMOTE_CODE.path):
        view.refusals.append(REMOTE_CODE)
    token = view.secret("token")
    return (replace(taken, secrets={} if token is None else {"HF_TOKEN": token}),)


def _lower_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    draft = _draft("model", "path", view, {"chat_format": view.text("chat_format")}, _VERSION)
    if view.flag(REMOTE_CODE.path):
        view.refusals.append(REMOTE_CODE)
    draft = from_directory(draft, context)
    # Part of the key only where they exist: without them the artifact is what it always was.
    path = draft.config["path"]
    if isinstance(path, str) and context.local_file(f"{path}/{SCORED_FILE}") is not None:
        draft = replace(draft, extra_identity={**draft.extra_identity, "scored_rows": True})
    return (draft,)


_SOFTWARE = {"model": TORCH, "encoder": VISION, "text_encoder": TORCH}
_PRODUCTS = {"model": CHECKPOINT, "encoder": VISION_ENCODER, "text_encoder": TEXT_ENCODER}


def _draft(
    kind: str, name: str, view: StageView, config: dict[str, Json], version: int
) -> JobDraft:
    return JobDraft(
        kind=kind,
        backend=f"{kind}.{name}",
        version=version,
        software=_SOFTWARE[kind],
        program=("-m", f"agentc_backends.data.models.job_{name}"),
        view=view,
        config=config,
        inputs=view.inputs,
        produces=_PRODUCTS[kind].name,
    )


def _or(value: Json, default: int) -> int:
    return value if isinstance(value, int) else default


SCRATCH = StageBackend(
    id="model.scratch",
    example="{hidden_size: 128, corpus: expert}",
    kind="model",
    version=_SCRATCH_VERSION,
    doc="A new Llama- or Qwen2-type model with random weights and a byte-level BPE tokenizer "
    "trained on the corpus: for runs without downloaded weights.",
    software=TORCH,
    lower=_lower_scratch,
    capabilities=frozenset({"offline", "new_tokenizer"}),
)

HF = StageBackend(
    id="model.hf",
    example="repo: Qwen/Qwen2.5-0.5B-Instruct",
    kind="model",
    version=_VERSION,
    doc="A model from the Hugging Face hub at a pinned commit, safetensors only.",
    software=TORCH,
    lower=_lower_hf,
    capabilities=frozenset({"pretrained"}),
)

PATH = StageBackend(
    id="model.path",
    example="path: ./weights",
    kind="model",
    version=_VERSION,
    doc="A model directory of this machine in Hugging Face layout, safetensors only.",
    software=TORCH,
    lower=_lower_path,
    capabilities=frozenset({"offline", "pretrained"}),
)


def _lower_encoder_scratch(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    config = view.config_of(NewEncoder)
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
    return (_draft("encoder", "scratch", view, config, 1),)


def _lower_encoder_hf(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (
        from_hub(_draft("encoder", "hf", view, {}, 1), context, "openai/clip-vit-base-patch32"),
    )


def _lower_encoder_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (from_directory(_draft("encoder", "path", view, {}, 1), context),)


ENCODER_SCRATCH = StageBackend(
    id="encoder.scratch",
    kind="encoder",
    version=1,
    doc="A new CLIP with random weights, only for pictures: for runs without downloaded weights, "
    "whose cosines mean nothing.",
    software=VISION,
    lower=_lower_encoder_scratch,
    capabilities=frozenset({"offline"}),
)

ENCODER_HF = StageBackend(
    id="encoder.hf",
    kind="encoder",
    version=1,
    doc="A CLIP from the Hugging Face hub at a pinned commit, safetensors only.",
    software=VISION,
    lower=_lower_encoder_hf,
    capabilities=frozenset({"pretrained"}),
)

ENCODER_PATH = StageBackend(
    id="encoder.path",
    kind="encoder",
    version=1,
    doc="A CLIP in a directory of this machine in Hugging Face layout, safetensors only.",
    software=VISION,
    lower=_lower_encoder_path,
    capabilities=frozenset({"offline", "pretrained"}),
)


def _lower_text_encoder_scratch(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    config = view.config_of(NewTextEncoder)
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
    return (_draft("text_encoder", "scratch", view, config, 1),)


def _lower_text_encoder_hf(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (
        from_hub(_draft("text_encoder", "hf", view, {}, 1), context, "FacebookAI/roberta-base"),
    )


def _lower_text_encoder_path(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    return (from_directory(_draft("text_encoder", "path", view, {}, 1), context),)


TEXT_ENCODER_SCRATCH = StageBackend(
    id="text_encoder.scratch",
    kind="text_encoder",
    version=1,
    doc="A new RoBERTa with random weights and a tokenizer trained on the corpus: for runs without "
    "downloaded weights.",
    software=TORCH,
    lower=_lower_text_encoder_scratch,
    capabilities=frozenset({"offline", "new_tokenizer"}),
)

TEXT_ENCODER_HF = StageBackend(
    id="text_encoder.hf",
    kind="text_encoder",
    version=1,
    doc="An encoder from the Hugging Face hub at a pinned commit, safetensors only.",
    software=TORCH,
    lower=_lower_text_encoder_hf,
    capabilities=frozenset({"pretrained"}),
)

TEXT_ENCODER_PATH = StageBackend(
    id="text_encoder.path",
    kind="text_encoder",
    version=1,
    doc="An encoder in a directory of this machine in Hugging Face layout, safetensors only.",
    software=TORCH,
    lower=_lower_text_encoder_path,
    capabilities=frozenset({"offline", "pretrained"}),
)
