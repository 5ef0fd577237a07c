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
    strings,
)

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
