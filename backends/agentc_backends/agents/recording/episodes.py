"""Episodes that external programs played: the row of each, from what the recorder noted and what
its turns earned, and the published rows, with those that could not be proved beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agentc.program.artifact_files import TRAJECTORIES_FILE
from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.agents.common.episode import (
    Attempt,
    End,
    EpisodeRecord,
    EpisodeRules,
    Reply,
    Step,
)
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import Message, observation_message
from agentc_backends.agents.common.runner import LostCheck, Row, play_attempts
from agentc_backends.agents.recording.exchange import Exchange, RecordedSession
from agentc_backends.agents.recording.proof import (
    REASONS,
    ProvedConversation,
    Unproved,
    following_message,
    rebuild,
)
from agentc_backends.clients.errors import InfrastructureError, ServiceError

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


def episode_turns(episode: PlayedEpisode) -> list[ActedTurn]:
    """The turns of an episode. Steps before the first reply are of none."""
    return [
        ActedTurn(exchange, tuple(step for replies, step in episode.steps if replies == number))
        for number, exchange in enumerate(episode.recorded.exchanges, start=1)
    ]


def episode_record(
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
    turns = episode_turns(episode)
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
            said = following_message(proved.history, episode.recorded.unanswered)
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


def episode_end(
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


REFUSED = "refused.jsonl"
"""Beside the rows: the episodes that have none, and why."""
UNPROVED = "unproved"
"""The field of a row that was not proved: its reason, and where."""


async def prove(policy: ChatPolicy, recorded: RecordedSession) -> ProvedConversation | Unproved:
    """The conversation of an episode, as the server writes it. Raises InfrastructureError."""

    async def tokenize(messages: Sequence[Message], *, ended: bool = True) -> list[int]:
        if ended:
            return await policy.tokenize(messages, opened=False)
        return await policy.prefix_tokens(messages)

    if recorded.cut_off:
        return Unproved("edited", "the program let go of a reply before it had ended")
    if recorded.overflowed and not recorded.exchanges:
        return Unproved("silent", "the first prompt is longer than the context")
    try:
        return await rebuild(recorded.exchanges, tokenize)
    except ServiceError as error:
        raise InfrastructureError(str(error)) from error


async def play_recorded(
    job: Job,
    rules: EpisodeRules,
    attempts: Sequence[Attempt],
    *,
    play: Callable[[Attempt], Awaitable[Row]],
    lost: LostCheck,
    keeps_all: bool,
) -> None:
    """Play all attempts and publish them; the facts say of how many episodes nothing is proved.
    Raises what `play_rest` does, and FatalError where no row is left."""

    def broken(attempt: Attempt, error: InfrastructureError) -> Row:
        return EpisodeRecord(rules, attempt, "policy").row("error", str(error))

    rows, facts = await play_attempts(job, attempts, play=play, lost=lost, broken=broken)
    refused = Counter(row[UNPROVED]["reason"] for row in rows if UNPROVED in row)
    job.facts(
        **facts,
        proved=len(rows) - refused.total() - facts["errors"],
        unproved=dict(sorted(refused.items())),
    )
    for reason, number in sorted(refused.items()):
        print(f"no row can be proved of {number} episodes: {REASONS[reason]} ({reason})")
    _publish(job, rows, keeps_all=keeps_all)


def _publish(job: Job, rows: Sequence[Row], *, keeps_all: bool) -> None:
    """Write trajectories.jsonl and refused.jsonl. Raises FatalError where no row is left."""
    refused = [row for row in rows if UNPROVED in row]
    kept = rows if keeps_all else [row for row in rows if UNPROVED not in row]
    if not kept:
        first = refused[0]
        why = first[UNPROVED]
        raise FatalError(
            f"not one of {len(rows)} episodes can be proved to train what was drawn; the first, "
            f"{first['id']}: {REASONS[why['reason']]} ({why['detail']}). docs/external.md says "
            "what that means; `evaluate` needs no proof"
        )
    write_rows(job.out / TRAJECTORIES_FILE, kept)
    write_rows(
        job.out / REFUSED,
        [
            {name: row[name] for name in ("id", "task_id", "attempt", "reward", "end", "turns")}
            | row[UNPROVED]
            for row in refused
        ],
    )
