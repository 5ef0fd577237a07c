"""The protocol of environments that `application.py` serves; the package's docstring is the guide.

`reset` and `step` have gymnasium's signatures. Neighbours: `sessions.py` (one environment each).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

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
        it reports as `report`, a mapping, stands in the row of the episode: that of its last step.
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

        After the end, `terminated` stays true and no reward is given anew. Raises EpisodeError
        before the first reset, and EnvironmentFailure.
        """

    def close(self) -> None:
        """Give back what the episode holds. Must not block; may be called twice."""


class MemoryEnvironment:
    """What an environment says of itself that lives in memory alone, so that nothing is waited for
    or given back, and rewards once, at the end and from 0 to 1."""

    reward_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reward_kind: ClassVar[str] = "terminal"
    success_threshold: ClassVar[float] = 1.0
    blocking: ClassVar[bool] = False
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ()

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
