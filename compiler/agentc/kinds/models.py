"""The kinds that obtain models and data, with their fields: `model`, `encoder`, `text_encoder`,
`dataset` and `mix`.
"""

from __future__ import annotations

from agentc.kinds.artifacts import (
    CHECKPOINT,
    PREFERENCE_PAIRS,
    SFT_DATASET,
    TEXT_ENCODER,
    TRAJECTORIES,
    VISION_ENCODER,
)
from agentc.kinds.field import (
    HUB_ID,
    REQUIRED,
    Field,
    Role,
    boolean,
    choice,
    integer,
    number,
    secret,
    seed,
    string,
    strings,
)
from agentc.kinds.kind import MODEL_KIND, Counts, Kind

MODEL_FIELDS: tuple[Field, ...] = (
    string(
        "repo",
        "Hub id, such as `meta-llama/Llama-2-7b-chat-hf` (model.hf).",
        nullable=True,
        pattern=HUB_ID,
    ),
    string(
        "revision",
        "Commit of the hub repository, 40 hex digits, or a branch or tag that the spec's lock "
        "pins to one (model.hf).",
        nullable=True,
        pattern="^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$",
    ),
    string(
        "path",
        "Directory in Hugging Face layout, relative to the spec (model.path).",
        nullable=True,
    ),
    secret(
        "token",
        "The hub's token for gated and private repositories, as `{secret: HF_TOKEN}` (model.hf).",
    ),
    boolean("trust_remote_code", "Run code that the model repository ships.", False),
    choice("architecture", "Family of a new model.", ("llama", "qwen2"), "llama"),
    integer("hidden_size", "Width of a new model.", 256, minimum=16, maximum=2**17),
    integer("layers", "Number of transformer blocks.", 4, minimum=1, maximum=2048),
    integer("heads", "Number of attention heads; divides hidden_size.", 4, minimum=1, maximum=2048),
    integer(
        "kv_heads", "Number of key/value heads; `heads` when null.", None, minimum=1, nullable=True
    ),
    integer(
        "intermediate_size",
        "Width of the MLP; twice hidden_size when null.",
        None,
        minimum=16,
        maximum=2**20,
        nullable=True,
    ),
    integer(
        "context",
        "Longest sequence in tokens (max_position_embeddings).",
        2048,
        minimum=32,
        maximum=2**27,
    ),
    integer(
        "vocab_size",
        "Size of the byte-level BPE vocabulary to train.",
        1024,
        minimum=300,
        maximum=2**22,
    ),
    boolean("tie_embeddings", "Share input and output embeddings.", True),
    number("rope_theta", "Base of the rotary position embedding.", 10000.0, above=0),
    choice(
        "chat_format",
        "How messages become text. `tokenizer` takes the template that the model ships; `plain` "
        "has no marks: texts stand one behind the other, and a line end ends a reply of one line.",
        ("tokenizer", "chatml", "llama-2", "mistral", "vicuna", "plain"),
        "tokenizer",
    ),
    choice(
        "initialisation",
        "Initial weights of a new model: `random`, or `induction`: attention that starts out "
        "copying from the context, which a small model takes long to find by itself.",
        ("random", "induction"),
        "random",
    ),
    seed("seed", "Seed of the initial weights."),
)


# Fields of the kinds `encoder`, of pictures, and `text_encoder`: each shared by its backends
# scratch, hf and path.

_PATH = string(
    "path",
    "Directory in Hugging Face layout, relative to the spec (`path`).",
    nullable=True,
)
_SEED = seed("seed", "Seed of the initial weights.")


def _repository(example: str) -> tuple[Field, ...]:
    return (
        string("repo", f"Hub id, such as `{example}` (`hf`).", nullable=True, pattern=HUB_ID),
        string(
            "revision",
            "Commit of the hub repository, 40 hex digits, or a branch or tag that the spec's lock "
            "pins to one (`hf`).",
            nullable=True,
            pattern="^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$",
        ),
    )


ENCODER_FIELDS: tuple[Field, ...] = (
    *_repository("openai/clip-vit-base-patch32"),
    _PATH,
    integer("width", "Width of a new encoder.", 64, minimum=16, maximum=2**14),
    integer("layers", "Number of its transformer blocks.", 2, minimum=1, maximum=256),
    integer("heads", "Number of its attention heads; divides `width`.", 2, minimum=1, maximum=256),
    integer("patch_size", "Pixels of its patches, across and down.", 32, minimum=1, maximum=1024),
    integer("image_size", "Pixels of the square that it sees.", 224, minimum=16, maximum=4096),
    integer("features", "Numbers that it makes of a picture.", 64, minimum=1, maximum=2**14),
    _SEED,
)

TEXT_ENCODER_FIELDS: tuple[Field, ...] = (
    *_repository("FacebookAI/roberta-base"),
    _PATH,
    integer("hidden_size", "Width of a new encoder.", 64, minimum=16, maximum=2**14),
    integer("layers", "Number of its transformer blocks.", 2, minimum=1, maximum=256),
    integer("heads", "Number of its attention heads; divides `hidden_size`.", 2, minimum=1,
            maximum=256),
    integer("context", "Longest text, in its own tokens.", 512, minimum=16, maximum=2**17),
    integer("vocab_size", "Tokens of its tokenizer at most.", 512, minimum=300, maximum=2**18),
    _SEED,
)  # fmt: skip


# Fields of `dataset` and `mix`: conversations from outside, and their share in a training set.

DATASET_FIELDS: tuple[Field, ...] = (
    string("path", "A JSON or JSONL file, relative to the spec (dataset.path).", nullable=True),
    string("repo", "Hub id of a data set repository (dataset.hf).", nullable=True),
    string("revision", "Commit of the repository, 40 hex digits (dataset.hf).", nullable=True,
           pattern="^[0-9a-f]{40}$"),
    string("file", "A file of the repository (dataset.hf).", nullable=True),
    secret("token", "The hub's token, as `{secret: HF_TOKEN}` (dataset.hf)."),
    choice("format", "How a record is written. `messages`: {messages: [{role, content}]}; "
           "`sharegpt`: {conversations: [{from, value}]}; `alpaca`: {instruction, input, output}; "
           "`prompt_completion`: {prompt, completion}; `preference`: {prompt, chosen, rejected}, "
           "which makes PreferencePairs. docs/datasets.md lists the fields of each.",
           ("messages", "sharegpt", "alpaca", "prompt_completion", "preference"), "messages"),
    strings("ignore_fields", "Fields of the records to leave out, such as `label`; those of a turn "
            "with a dot, such as `messages.name`. Any other field that the format does not read is "
            "an error."),
    choice("reasoning", "What becomes of `reasoning_content` of a reply: an `error`, or `think`, "
           "<think>...</think> before the reply, trained with it and not shown to later turns.",
           ("error", "think"), "error"),
    choice("task_ids", "What names a record's task, by which `pair` finds the expert's trajectory "
           "of an explored one: `as_written`, its `task_id`, if it has one; `eto_webshop`, "
           "`eto_sciworld`, `eto_alfworld`, what the trajectories that ETO's authors published "
           "have, as this project's environments say it.",
           ("as_written", "eto_webshop", "eto_sciworld", "eto_alfworld"), "as_written"),
    number("reward", "The reward of conversations that state none; null: they have none.", None,
           nullable=True),
    integer("prompt_length", "So many messages stand before the agent's first reply of its own, "
            "such as 3 where an instruction is answered by OK before the task; null: all before "
            "the first reply.", None, minimum=1, nullable=True),
    choice("on_malformed", "A conversation whose turns do not alternate or that holds no reply: "
           "`drop` it with a count and a warning, or fail. A file always fails where no record is "
           "left.", ("error", "drop"), "error"),
    integer("limit", "Draw at most so many conversations; null: all.", None, minimum=1,
            nullable=True),
    seed("seed", "Seed of the draw."),
)  # fmt: skip

MIX_FIELDS: tuple[Field, ...] = (
    number("general_share", "How much of the rows is general; see share_of.", REQUIRED, above=0),
    choice("share_of", "What the share is a share of: `total`, all rows of the mixture, or "
           "`agent`, the agent rows (so 4.0 is four general rows to one).", ("total", "agent"),
           REQUIRED),
    integer("best_per_task", "Of each task (by its id), keep so many agent rows with the largest "
            "rewards; of equal ones the earlier. null: keep all.", None, minimum=1, nullable=True),
    choice("on_shortage", "Too few general rows: fail, `repeat` them, or take `fewer`.",
           ("error", "repeat", "fewer"), "error"),
    seed("seed", "Seed of the draw of general rows."),
)  # fmt: skip

MODEL_KINDS: tuple[Kind, ...] = (
    Kind(
        name=MODEL_KIND,
        doc="Obtain a model: initialise one from scratch, take one from a hub or from a path.",
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
        fields=MODEL_FIELDS,
        forecast="weights",
    ),
    Kind(
        name="encoder",
        doc="Obtain a model that makes features of pictures, such as CLIP: an environment measures "
        "by it how alike two of them are (`scorer`).",
        produces=VISION_ENCODER,
        fields=ENCODER_FIELDS,
        forecast="weights",
    ),
    Kind(
        name="text_encoder",
        doc="Obtain a model that makes features of texts, such as RoBERTa: a critic of utterances "
        "reads by it.",
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
        fields=TEXT_ENCODER_FIELDS,
        forecast="weights",
    ),
    Kind(
        name="dataset",
        doc="Obtain conversations or preference pairs from a file or from a hub.",
        produces=SFT_DATASET,
        fields=DATASET_FIELDS,
        products={"preference": PREFERENCE_PAIRS},
        product_setting="format",
        counts=Counts(made="rows"),
        forecast="conversations",
    ),
    Kind(
        name="mix",
        doc="Mix agent conversations with general ones, at a stated share of rows.",
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
        fields=MIX_FIELDS,
        default_backend="mix.share",
        reworks=("agent", "general"),
        forecast="mixture",
    ),
)
