"""Settings of `env.colbench_frontend`: what a spec may write, and what the server receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc.program.settings import only_with, setting, unless
from agentc_backends.environments.colbench.tasks import DEFAULT, INVENTED

# fmt: off
_OF_INVENTED = only_with(
    "tasks", INVENTED, because="`tasks` names a file: nothing is invented")
_OF_MODEL = only_with("human", "model", because="`human: scripted` calls no model")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendSettings:
    # Paths stay out of the identity: digests of what lies there are in it.
    tasks: str = setting(
        "`invented`, or a JSONL file of `problem_description` and `ground_truth`, the page that is "
        "meant, as ColBench's are.", INVENTED, rule=False)
    splits: Mapping[str, Any] = setting(
        "Tasks of each split, as `colbench_backend` has them.", DEFAULT, rule=False)
    stylesheet: str | None = setting(
        "Tailwind 2.2.19's `tailwind.min.css`, which pages of files link (`agentc data fetch "
        "tailwind`): it is answered from here, for a page has no network.", None, rule=False,
        only_if=unless(
            "tasks", INVENTED, because="invented pages link our own"))
    invented_tasks: int = setting("How many to invent.", 1000, minimum=10, maximum=100_000,
        only_if=_OF_INVENTED)
    invented_seed: int = setting("Seed of the invented tasks.", 0, seed=True, only_if=_OF_INVENTED)
    careless: float = setting(
        "Of the expert of invented tasks: the probability that it leaves a part of the page as it "
        "guessed it, by seed.", 0.0, minimum=0, maximum=1, only_if=_OF_INVENTED)
    rounds: int = setting(
        "Replies of the agent; the human speaks after all but the last.", 10, minimum=1, maximum=50)
    announce_last: bool = setting("End the human's last reply with `Answer now.`", False)
    answer_marker: str = setting(
        "A reply that has it is the agent's last.", "I WANT TO ANSWER:", pattern="\\S")
    reply_chars: int = setting(
        "The human's replies are cut after as many characters.",
        1000, minimum=10, maximum=100_000)
    human: Literal["scripted", "model"] = setting(
        "Who answers. `scripted`: names what differs most between both pages' texts, their places "
        "and colours. `model`: the model that `simulator` names, which is shown both pictures.",
        "scripted")
    human_temperature: float = setting("Of a model's replies.", 0.0, minimum=0, maximum=2,
        only_if=_OF_MODEL)
    human_max_tokens: int = setting("Of a model's reply.", 4096, minimum=1, maximum=1_000_000,
        only_if=_OF_MODEL)
    human_prompt: str | None = setting(
        "A file with the words before the pictures, in place of our own.", None, rule=False,
        only_if=_OF_MODEL)
    human_labels: tuple[str, ...] = setting(
        "What a model also reads: before the agent's picture, before the wanted one, and in "
        "place of the agent's where its last reply has no page. Three texts; none: our own.", (),
        blank=True, only_if=_OF_MODEL)
    human_seeding: Literal["text", "none"] = setting(
        "Of a model's replies. `text`: follows from task, round and picture, so that a fork hears "
        "the same; `none`: no seed is sent, as in the released code.", "text",
        only_if=_OF_MODEL)
    guard: Literal["count", "cut", "refuse"] = setting(
        "What becomes of a human's reply with 40 characters of the page's source in a row, as "
        "`colbench_backend` has it.", "count")
    human_pixels: int = setting(
        "Most pixels of a picture that a model is shown; larger ones are scaled down. A model of "
        "Qwen2-VL's kind takes a token for 784 of them.",
        4_000_000, minimum=10_000, maximum=100_000_000, only_if=_OF_MODEL)
    similarity: Literal["composite", "clip"] = setting(
        "The reward. `composite`: the mean of four likenesses (structure, colours, outline, "
        "texts). `clip`: the paper's, the cosine of the features that the encoder which `scorer` "
        "names makes of both pictures.", "composite")
    unseen: Literal["zero", "black"] = setting(
        "What an answer without a page that shows is worth under `similarity: clip`. `zero`: "
        "nothing. `black`: the cosine of a black square, as the released evaluator has it.",
        "zero",
        only_if=only_with(
            "similarity", "clip",
            because="`similarity: composite` gives 0 to what does not show"))
    success_at: float = setting(
        "An episode with at least this similarity is a success.", 0.95, minimum=0, maximum=1)
    pictures: bool = setting(
        "Keep small pictures of both pages with an episode, for the report.", True)
    page_seconds: float = setting(
        "Processor time for a page.", 8.0, above=0, maximum=600)
    page_memory_mb: int = setting(
        "Memory for the browser that shows it.", 2048, minimum=256, maximum=1_000_000)
    browsers: int = setting(
        "Most browsers at a time; 0: one for each processor, up to four.",
        0, minimum=0, maximum=64, identity="placement")
    human_prompt_sha256: str | None = setting(
        "What the human's prompt has to be.", None, in_spec=False)
    tasks_sha256: str | None = setting("What the files' tasks have to be.", None, in_spec=False)

    @property
    def is_invented(self) -> bool:
        return self.tasks == INVENTED
