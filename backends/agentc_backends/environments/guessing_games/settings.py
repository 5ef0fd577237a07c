"""Settings of the guessing games: what a spec may write, and what the server receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.program.settings import only_with, setting, unless

QUESTIONS = 20


# fmt: off
_OF_RECORDED = only_with(
    "oracle", "recorded", because="`oracle: {value}` reads no dialogues")
_OF_SERVER = only_with(
    "oracle", "server", because="`oracle: {value}` calls no external server")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessingSettings:
    game: Literal["twenty_questions", "guess_my_city"] = setting("Which.", in_spec=False)
    judge: Literal["strict_v2", "upstream_v1"] = setting(
        "Who wins. `upstream_v1`: as ArCHer released it, with what can be cheated there; "
        "`strict_v2`: a guess names one secret and nothing else, and its name decides.",
        "strict_v2")
    # The identity tells of the oracle apart, by what it answers from.
    oracle: Literal["table", "recorded", "server", "model"] = setting(
        "Who answers: the table of facts, the most similar recorded question (`dialogues`; the "
        "table where none is similar), a language model at `oracle_url`, or one of the experiment "
        "itself (`simulator`).", "table", rule=False)
    unknown: Literal["invalid", "no"] = setting(
        "What the table answers to a question that it cannot read: `Invalid Question.` or `No.`; "
        "the question counts.", "invalid", rule=False,
        only_if=unless(
            "oracle", "server", "model",
            because="`oracle: {value}` answers every question itself"))
    dialogues: str | None = setting(
        "File of recorded dialogues (absolute path; JSON or JSONL, may be gzipped): ArCHer's and "
        "LMRL-Gym's layouts, or rows of secret, question, answer.", None, pattern="^/", rule=False,
        only_if=_OF_RECORDED)
    min_similarity: float = setting(
        "Cosine from which a recorded question counts as the same.", 0.5, minimum=0, maximum=1,
        rule=False, only_if=_OF_RECORDED)
    oracle_url: str | None = setting(
        "Address of an OpenAI-compatible API that answers, such as `http://127.0.0.1:8000/v1`.",
        None, pattern="^https?://[^\\s#?@]+$", rule=False, only_if=_OF_SERVER)
    oracle_model: str | None = setting("The model's name there.", None, rule=False,
        only_if=_OF_SERVER)
    oracle_key: str | None = setting(
        "Its key, by reference: `{secret: ORACLE_KEY}`; null: none is sent.", None, secret=True,
        served=False, rule=False, only_if=_OF_SERVER)
    questions: int = setting("Questions until the game is over.", QUESTIONS, minimum=1, maximum=100)
    reward: Literal["questions_left", "per_question"] = setting(
        "`questions_left`: at the end, 20 for a win with the first question down to 1 with the "
        "last, 0 for none (the paper's return plus 20). `per_question`: the paper's -1 for each "
        "question and 0 for the winning one; episodes that a rollout ends early then seem good.",
        "questions_left")
    observation: Literal["answer", "transcript"] = setting(
        "What the agent reads after a question: the answer, or, as the paper has it, all "
        "questions and answers so far.", "answer")
    splits: Literal["held_out", "together"] = setting(
        "`held_out`: train, validation and test of different secrets; `together`: one split "
        "`all`, as the paper has it.", "held_out")
    objects: Literal["all", "subset"] = setting(
        "All 157 objects, or the paper's subset of 10.", "all")
    expert_skill: float = setting(
        "The probability that a game of the expert is played well. Any other one is of questions "
        "that separate some secrets from others, a third of them guesses: games of both make a "
        "start for what learns from rewards.", 1.0, minimum=0, maximum=1, rule=False)
    guess: Literal["any", "final"] = setting(
        "What a wrong guess does: `any` costs a question like others; `final` ends the game as if "
        "all questions had been asked in vain. Then a lucky guess is the best game there is and "
        "guessing still not worth it. Needs `judge: strict_v2`, which knows what a guess is.",
        "any",
        only_if=unless(
            "judge", "upstream_v1",
            because="`judge: upstream_v1` knows who wins, and not what a guess is"))
    expert_guesses: float = setting(
        "Before each question of a game that it plays well, the expert guesses with this "
        "probability one of the secrets that are left, by luck.", 0.0, minimum=0, maximum=1,
        rule=False)

    def __post_init__(self) -> None:
        if self.guess == "final" and self.judge != "strict_v2":
            raise ValueError("guesses are final where the judge does not know what a guess is")

    @property
    def reward_range(self) -> tuple[float, float]:
        """Of an episode: `questions_left` is the paper's return plus the number of questions."""
        if self.reward == "per_question":
            return (-float(self.questions), 0.0)
        return (0.0, float(self.questions))

    @property
    def success_at(self) -> float:
        return self.reward_range[0] + 1.0
