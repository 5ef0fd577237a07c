"""The row of an episode that a program of others played: what the recorder noted and what its turns
earned, put together as `common/episode.py` records an episode of our own.

Neighbours: `exact.py`, which proves the conversation; `published.py`, which writes all rows; who
plays: `agents/command/play.py`, `agents/verifiers/play.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentc_backends.agents.common.episode import (
    Attempt,
    End,
    EpisodeRecord,
    EpisodeRules,
    Reply,
    Step,
)
from agentc_backends.agents.common.prompt import Message, observation_message
from agentc_backends.agents.recorded.exact import ProvedConversation
from agentc_backends.agents.recorded.exchange import Exchange
from agentc_backends.agents.recorded.history import goes_on
from agentc_backends.agents.recorded.session import RecordedSession

_NOTHING = "(nothing)"


@dataclass(slots=True, kw_only=True)
class PlayedEpisode:
    """An episode: the first `observation`, and steps, each with the number of replies before it.
    `answered` says whether the last step's observation was said to the program."""

    recorded: RecordedSession
    observation: str
    steps: list[tuple[int, Step]] = field(default_factory=list)
    answered: bool = True

    @property
    def done(self) -> bool:
        return bool(self.steps) and self.steps[-1][1].done


@dataclass(frozen=True, slots=True)
class ActedTurn:
    """A reply, and the actions that followed it before the next."""

    exchange: Exchange
    steps: tuple[Step, ...]


def turns_of(episode: PlayedEpisode) -> list[ActedTurn]:
    """The turns of an episode. Steps before the first reply are of none."""
    return [
        ActedTurn(exchange, tuple(step for replies, step in episode.steps if replies == number))
        for number, exchange in enumerate(episode.recorded.exchanges, start=1)
    ]


def record_of(
    rules: EpisodeRules,
    attempt: Attempt,
    episode: PlayedEpisode,
    proved: ProvedConversation | None,
) -> EpisodeRecord:
    """The record, which gives the row: with the messages that were `proved`, else with the stage's
    prompt and what the door answered in the places of the program's own words."""
    record = EpisodeRecord(rules, attempt, "policy")
    record.open(episode.observation)
    messages: Sequence[Message] = ()
    if proved is not None:
        messages = proved.history.messages
        record.prompt_length = proved.history.prompt_length
        record.messages = list(messages[: record.prompt_length])
    prefix = rules.prompt.observation_prefix
    turns = turns_of(episode)
    for number, turn in enumerate(turns):
        place = None if proved is None else proved.history.replies[number]
        record.add_reply(_reply(turn.exchange, None if place is None else messages[place]))
        _earn(rules, record, turn.steps)
        last = number + 1 == len(turns)
        if place is not None and proved is not None and not last:
            record.messages += messages[place + 1 : proved.history.replies[number + 1]]
        elif not last or (turn.steps and episode.answered):
            seen = "\n".join(step.observation for step in turn.steps) or _NOTHING
            record.messages.append(observation_message(prefix, seen))
        elif proved is not None:
            # Nothing was done after the last reply; how its program went on is known where it
            # asked once more.
            said = goes_on(proved.history, episode.recorded.unanswered)
            record.messages += [] if said is None else [said]
    return record


def _reply(exchange: Exchange, shown: Message | None) -> Reply:
    """A reply as later requests show it, or as it was drawn."""
    text = exchange.reply["content"] if shown is None else shown["content"]
    return Reply(
        text,
        exchange.finish_reason,
        exchange.prompt_tokens,
        exchange.completion_tokens,
        cut_by_context=exchange.cut_by_context,
    )


def _earn(rules: EpisodeRules, record: EpisodeRecord, steps: Sequence[Step]) -> None:
    """One reward for a turn: what its actions earned together."""
    if not steps:
        record.add_invalid("keep")
        return
    earned = [step.reward for step in steps]
    match rules.reward_kind:
        case "sum":
            reward = sum(earned)
        case "max":
            reward = max(earned)
        case _:
            reward = earned[-1]
    last = steps[-1]
    record.add_step(Step(last.observation, reward, last.done, last.report))


def end_of(
    rules: EpisodeRules, episode: PlayedEpisode, record: EpisodeRecord, wrong: str | None
) -> tuple[End, str | None]:
    """How the episode ended, and the error where it is one; `wrong` is what its program ended with,
    which counts where nothing else explains it."""
    recorded = episode.recorded
    limit = recorded.most_replies
    if not episode.done:
        if recorded.overflowed:
            return "overflow", None
        if recorded.limited or (limit is not None and len(recorded.exchanges) >= limit):
            return "limit", None
        if wrong is not None:
            return "error", wrong
    return ("success" if record.reward >= rules.success_at else "failure"), None
