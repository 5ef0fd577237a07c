"""The protocol of environments that a server serves, their metadata, and the dialects of AgentGym's
clients. The package's docstring is the guide; `reset` and `step` have gymnasium's signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

CAPABILITIES = frozenset({"expert", "fork", "snapshot", "seed", "privileged"})
"""Words that `capabilities` may hold: `expert` needs `Expert`; `fork` and `snapshot` (always
together) need `Snapshots`; `seed` says that a reset's seed changes something; `privileged` needs
`Privileged`."""


class EpisodeError(Exception):
    """The call makes no sense in the episode's present state; the message tells the client."""


class EnvironmentFailure(Exception):  # noqa: N818  (the field says failure, and so do our rows)
    """The environment itself is broken: the episode is void, through no fault of the agent."""


class Environment(Protocol):
    """One episode at a time. Everything above `reset` must answer before the first reset, and from
    any thread where `blocking` is true."""

    @property
    def name(self) -> str:
        """As in `env.<name>`."""

    @property
    def title(self) -> str:
        """What `GET /` calls it."""

    @property
    def version(self) -> str:
        """Of the rules and texts: another one may answer otherwise."""

    @property
    def reward_range(self) -> tuple[float, float]: ...

    @property
    def reward_kind(self) -> str:
        """How the rewards of steps make the episode's: `terminal` and `latest` take the last one,
        `sum` adds them, `max` keeps the largest."""

    @property
    def success_threshold(self) -> float:
        """An episode with at least this reward is a success."""

    @property
    def default_max_steps(self) -> int: ...

    @property
    def splits(self) -> tuple[str, ...]: ...

    @property
    def capabilities(self) -> frozenset[str]:
        """Some of CAPABILITIES."""

    @property
    def blocking(self) -> bool:
        """Whether `reset`, `step`, `expert_steps`, `snapshot` and `restore` may take long."""

    @property
    def resets_on_create(self) -> bool:
        """Whether a new session starts with the first task, as some of AgentGym's servers do."""

    @property
    def reported(self) -> tuple[str, ...]:
        """Names of `info` values that replies carry beside observation, reward and done. An
        environment that ends episodes by a count of steps reports it as `step_limit` after each
        reset, so that a reply without an action, which it never sees, costs a step as well. What
        it reports as `report`, a mapping, is in the row of the episode: that of its last step.
        """

    def tasks(self, split: str) -> Sequence[str]:
        """The task ids of a split, in a fixed order."""

    def has_task(self, task_id: str) -> bool: ...

    def numbered_tasks(self) -> Sequence[str]:
        """What AgentGym's `data_idx` counts; the ids need not be tasks of this server."""

    def identity(self) -> dict[str, Any]:
        """Everything that decides tasks, texts and rewards, as JSON values."""

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a task: its first observation, and info."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action: observation, reward, terminated, truncated, info.

        After the end, `terminated` stays true and no reward is given again. Raises EpisodeError
        before the first reset, and EnvironmentFailure.
        """

    def close(self) -> None:
        """Give back what the episode holds. Must not block; may be called twice."""


class MemoryEnvironment:
    """The declarations of an environment that is in memory only, so that nothing is waited for or
    given back, and that rewards once, at the end and from 0 to 1."""

    reward_range: tuple[float, float] = (0.0, 1.0)
    reward_kind: str = "terminal"
    success_threshold: float = 1.0
    blocking: bool = False
    resets_on_create: bool = False
    reported: tuple[str, ...] = ()

    def close(self) -> None:
        """Nothing is held."""


@runtime_checkable
class Counted(Protocol):
    """What an environment adds that counts things over all episodes of its server."""

    def counts(self) -> Mapping[str, int]:
        """By name, since the server's start; told by `/meta`."""


@runtime_checkable
class Noted(Protocol):
    """What an environment adds whose results were made in circumstances worth knowing."""

    def facts(self) -> Mapping[str, Any]:
        """JSON values that decide no text or reward, so that they are in no identity: told by
        `/meta`, kept in the manifest of the job."""


class ExpertStep(Protocol):
    """One action of an expert; `thought` is empty where it has none."""

    @property
    def action(self) -> str: ...

    @property
    def thought(self) -> str: ...


class Expert(Protocol):
    """What an environment with the capability `expert` adds."""

    def expert_steps(self, task_id: str, *, seed: int = 0) -> Sequence[ExpertStep]:
        """Actions that solve the task. Called on an environment that is never reset, from several
        threads at a time where `blocking` is true."""


class HiddenText(NamedTuple):
    """What is known of a task and no agent may see; `media` is its type (`text/x-python`, say)."""

    text: str
    media: str = "text/plain"


class Privileged(Protocol):
    """What an environment with the capability `privileged` adds."""

    def hidden_text(self, task_id: str) -> HiddenText:
        """Called as `expert_steps` is, and only by a server that was started with `--privileged`.
        Nothing else that the environment answers may hold the text."""


class Snapshots(Protocol):
    """What an environment with the capabilities `fork` and `snapshot` adds."""

    def snapshot(self) -> dict[str, Any]:
        """The whole episode as JSON values, without the keys `observation`, `reward` and those of
        `reported`, which the server adds; `done` is among them."""

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""


_CAPABILITY_ORDER = ("expert", "fork", "snapshot", "seed", "privileged")


def description(environment: Environment) -> dict[str, Any]:
    """Declared facts, the tasks of every split, and the identity, as JSON values; and what was
    counted since the server's start, where anything is."""
    held = environment.capabilities
    found: dict[str, Any] = {
        "name": environment.name,
        "version": environment.version,
        "reward_range": list(environment.reward_range),
        "reward_kind": environment.reward_kind,
        "success": {"field": "reward", "at_least": environment.success_threshold},
        "max_steps": environment.default_max_steps,
        "capabilities": [word for word in _CAPABILITY_ORDER if word in held],
        "splits": {split: list(environment.tasks(split)) for split in environment.splits},
        "identity": environment.identity(),
    }
    if isinstance(environment, Noted):
        found["facts"] = dict(environment.facts())
    if isinstance(environment, Counted):
        found["counts"] = dict(environment.counts())
    return found


# The reward of an episode, for those who play in their own process. Rollouts, which count invalid
# replies too, compute theirs by the same rule (`agents/common/episode.py`).


def floor_of(reward_range: tuple[float, float]) -> float:
    """The reward of an episode without a step: 0, or what of the range is nearest to it."""
    low, high = reward_range
    return min(max(0.0, low), high)


def reward_after(kind: str, before: float | None, reward: float) -> float:
    """The episode's reward after a step that earned `reward`; `before` is what it was, None where
    there was no step yet."""
    if before is None:
        return reward
    match kind:
        case "sum":
            return before + reward
        case "max":
            return max(before, reward)
        case _:
            return reward


# Released clients of the AgentGym family find a server that speaks as they expect: an environment
# declares a `Dialect` as its member `dialect`. agentc's own requests are answered in the plain way.
# `environments/webshop/environment.py` is an example.

Answer: TypeAlias = Mapping[str, Any]


def _numbered(session: int) -> object:
    return {"id": session}


def _as_it_is(answer: Answer) -> object:
    return answer


def _nothing_more(environment: Any) -> Answer:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A family member's names and shapes.

    A session is spoken of in the dialect when it was created by a POST without a body, which
    agentc's clients never send (`bodiless_create` false refuses it, as TextCraft's server does).
    `created`, `opened` and `stepped` shape replies from plain ones; `extras` are further values
    of the environment that replies to resets and steps carry; `queries` are further GET routes,
    each a function of the session's environment.
    """

    session_field: str = "id"
    task_field: str = "data_idx"
    bodiless_create: bool = False
    created: Callable[[int], object] = _numbered
    opened: Callable[[Answer], object] = _as_it_is
    stepped: Callable[[Answer], object] = _as_it_is
    extras: Callable[[Any], Answer] = _nothing_more
    queries: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)


PLAIN = Dialect()


def dialect_of(environment: object) -> Dialect:
    """What the environment declares; most declare nothing."""
    found = getattr(environment, "dialect", PLAIN)
    assert isinstance(found, Dialect), "the member `dialect` of an environment is a Dialect"
    return found
