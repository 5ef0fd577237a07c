"""Fields of the `encoder` kind, shared by encoder.scratch, encoder.hf and encoder.path."""

from agentc.kinds.field import HUB_ID, Field, integer, seed, string

ENCODER_FIELDS: tuple[Field, ...] = (
    string(
        "repo",
        "Hub id, such as `openai/clip-vit-base-patch32` (encoder.hf).",
        nullable=True,
        pattern=HUB_ID,
    ),
    string(
        "revision",
        "Commit of the hub repository, 40 hex digits, or a branch or tag that the spec's lock "
        "pins to one (encoder.hf).",
        nullable=True,
        pattern="^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$",
    ),
    string(
        "path",
        "Directory in Hugging Face layout, relative to the spec (encoder.path).",
        nullable=True,
    ),
    integer("width", "Width of a new encoder.", 64, minimum=16, maximum=2**14),
    integer("layers", "Number of its transformer blocks.", 2, minimum=1, maximum=256),
    integer("heads", "Number of its attention heads; divides `width`.", 2, minimum=1, maximum=256),
    integer("patch_size", "Pixels of its patches, across and down.", 32, minimum=1, maximum=1024),
    integer("image_size", "Pixels of the square that it sees.", 224, minimum=16, maximum=4096),
    integer("features", "Numbers that it makes of a picture.", 64, minimum=1, maximum=2**14),
    seed("seed", "Seed of the initial weights."),
)
