"""Fields of the kinds `encoder`, of pictures, and `text_encoder`: each shared by its backends
scratch, hf and path."""

from agentc.kinds.field import HUB_ID, Field, integer, seed, string

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
