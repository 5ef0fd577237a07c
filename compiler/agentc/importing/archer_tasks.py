"""The tasks of ArCHer's released configurations: environments, prompts, and the games that a start
imitates, as the specs in specs/archer have them. Used by `archer.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentc.source.scalars import Plain

Values: TypeAlias = Mapping[str, Plain]

_TRANSCRIPT = """\
prompts:
  shown: {instruction: "", reply_format: text, observation_prefix: "", memory: last}"""
_SHOP = r"""prompts:
  shown: {instruction: "", reply_format: text, observation_prefix: "Observation:\n"}"""
_TEN = """\
prompts:
  shown:
    instruction: |-
      Let us play Twenty Questions. The object is one of these: football, dog, banana, truck, pants,
      computer, piano, chair, pen, scissors. Read the questions so far with their answers, and write
      the next question, on one line and with nothing else.
    role: system
    reply_format: text
    observation_prefix: ""
    memory: last"""
"""In our words; the released one has examples, and replies in JSON of which a question is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTask:
    """A task. `settings` are those of its environment, into which keys are put, `imitated` what
    the environment of the start's games has besides; `attempts` games of each task are imitated,
    and `eval_size` counts `games`: tasks (`limit`) or, where there is one alone, attempts. `needs`
    are keys with whole numbers that are read of this task alone."""

    settings: str
    remark: str
    imitated: str
    attempts: int
    turns: int
    games: str = "limit"
    shown: str = _TRANSCRIPT
    needs: tuple[str, ...] = ()

    def environment(self, values: Values) -> str:
        """The section `environments`; the start's games are played in the one that is second."""
        settings = self.settings.format_map(values)
        lines = ["environments:", f"  game: {{{settings}}}  # env_name, {self.remark}"]
        if values.get("checkpoint_path") is not None:
            lines.append(f"  imitated: {{{settings}{self.imitated}}}")
        return "\n".join(lines)

    def prompt(self, agent_type: str) -> str:
        """The section `prompts`: of `archer_llm` one with an instruction, else the bare texts."""
        return _TEN if agent_type == "archer_llm" else self.shown


_GAME = (
    "backend: {name}, splits: together, reward: per_question, observation: transcript, "
    'questions: 20, unknown: "no", judge: upstream_v1'
)
_ORACLE = "env_load_path (an oracle on a drive: a table of facts stands for it)"

TASKS: Mapping[str, ReleasedTask] = {
    "twenty_questions": ReleasedTask(
        settings=_GAME.format(name="twenty_questions") + ", objects: all",
        remark=_ORACLE,
        imitated=", expert_skill: 0.2",
        attempts=20,
        turns=20,
    ),
    "guess_my_city": ReleasedTask(
        settings=_GAME.format(name="guess_my_city"),
        remark=_ORACLE,
        imitated=", expert_skill: 0",
        attempts=35,
        turns=20,
    ),
    "adventure": ReleasedTask(
        settings="backend: detective, actions: free, max_steps: 50",
        remark="env_load_path (`agentc data fetch detective` brings the file; `game` names it)",
        imitated=", expert_skill: 0",
        attempts=1000,
        turns=50,
        games="attempts",
    ),
    "webshop": ReleasedTask(
        settings=(
            "backend: webshop, page_size: 3, expert_thoughts: none, "
            "splits: {{all: {{range: [{webshop_lower}, {webshop_upper}]}}}}"
        ),
        remark="env_load_path (a shop's address: an invented catalogue stands for it), "
        "webshop_lower, webshop_upper",
        imitated="",
        attempts=4,
        turns=10,
        shown=_SHOP,
        needs=("webshop_lower", "webshop_upper"),
    ),
}
"""By `env_name`."""
