"""Fields of `dataset` and `mix`: conversations from outside, and their share in a training set."""

from agentc.kinds.field import (
    REQUIRED,
    Field,
    choice,
    integer,
    number,
    secret,
    seed,
    string,
)

DATASET_FIELDS: tuple[Field, ...] = (
    string("path", "A JSON or JSONL file, relative to the spec (dataset.path).", nullable=True),
    string("repo", "Hub id of a data set repository (dataset.hf).", nullable=True),
    string("revision", "Commit of the repository, 40 hex digits (dataset.hf).", nullable=True,
           pattern="^[0-9a-f]{40}$"),
    string("file", "A file of the repository (dataset.hf).", nullable=True),
    secret("token", "The hub's token, as `{secret: HF_TOKEN}` (dataset.hf)."),
    choice("format", "`messages`: {messages: [{role, content}]}; `sharegpt`: {conversations: "
           "[{from, value}]}; `alpaca`: {instruction, input, output}.",
           ("messages", "sharegpt", "alpaca"), "messages"),
    choice("on_malformed", "A conversation whose turns do not alternate or that holds no reply: "
           "`drop` it with a count, or fail.", ("error", "drop"), "error"),
    integer("limit", "Draw at most so many conversations; null: all.", None, minimum=1,
            nullable=True),
    seed("seed", "Seed of the draw."),
)  # fmt: skip

MIX_FIELDS: tuple[Field, ...] = (
    number("general_share", "How much of the rows is general; see share_of.", REQUIRED, above=0),
    choice("share_of", "What the share is a share of: `total`, all rows of the mixture, or "
           "`agent`, the agent rows (so 4.0 is four general rows to one).", ("total", "agent"),
           REQUIRED),
    choice("on_shortage", "Too few general rows: fail, `repeat` them, or take `fewer`.",
           ("error", "repeat", "fewer"), "error"),
    seed("seed", "Seed of the draw of general rows."),
)  # fmt: skip
