"""Fields of the `model` kind, shared by model.scratch, model.hf and model.path."""

from agentc.kinds.field import (
    HUB_ID,
    Field,
    boolean,
    choice,
    integer,
    number,
    secret,
    seed,
    string,
)

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
