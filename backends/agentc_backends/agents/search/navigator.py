"""Brings sessions of the environment to nodes of a tree: by copies of states, else by replay.

A state is named by the actions that lead to it from the start of the task, so the environment must
be deterministic: whatever is carried out a second time has to show what it showed the first time,
or at least to pay the same, where texts are known to vary.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from agentc_backends.agents.common.episode import Step
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prefixes import SameState
from agentc_backends.agents.search.tree import RequestBudget
from agentc_backends.clients.errors import InfrastructureError

Path: TypeAlias = tuple[str, ...]
Copying: TypeAlias = Literal["snapshot", "fork", "replay"]
Result = TypeVar("Result")


class BranchingSession(Protocol):
    """An open episode whose state can be set; `fork`, `snapshot` and `restore` only where the
    environment says so."""

    @property
    def observation(self) -> str: ...

    @property
    def step_limit(self) -> int | None: ...

    async def step(self, action: str) -> Step: ...

    async def restart(self, task_id: str, prompt_seed: int) -> None: ...

    async def snapshot(self) -> Mapping[str, Any]: ...

    async def restore(self, snapshot: Mapping[str, Any]) -> None: ...

    async def fork(self) -> BranchingSession: ...

    async def close(self) -> None: ...


class SessionSource(Protocol):
    """Opens sessions of an environment; who opens one closes it."""

    async def begin(self, task_id: str, prompt_seed: int) -> BranchingSession: ...

    async def restored(self, snapshot: Mapping[str, Any]) -> BranchingSession: ...


class MismatchError(FatalError):
    """The environment showed something else when the same actions were carried out again."""


@dataclass(slots=True)
class _Slot:
    """A session and the state that it is in; None while that is unknown."""

    session: BranchingSession
    at: Path | None


class StateNavigator:
    """The sessions of one tree, at most `sessions` of them (with `fork`: one for each action of a
    node). `close` ends them; nothing else does."""

    def __init__(
        self,
        world: SessionSource,
        task_id: str,
        prompt_seed: int,
        *,
        copying: Copying,
        sessions: int,
        same: SameState,
        budget: RequestBudget,
    ) -> None:
        self._world = world
        self._task_id = task_id
        self._prompt_seed = prompt_seed
        self._copying = copying
        self._limit = sessions
        self._same = same
        self._budget = budget
        self._slots: list[_Slot] = []
        self._saved: dict[Path, Mapping[str, Any]] = {}
        self._shown: dict[Path, Step] = {}

    async def open(self) -> tuple[str, int | None]:
        """The environment's first observation of the task, and its own limit of steps."""
        slot = await self._begin()
        return slot.session.observation, slot.session.step_limit

    async def follow(self, path: Path) -> Step:
        """Bring the session that was opened one action further, to where `path` leads, and give
        what that shows: so a root behind a prefix is reached."""
        [slot] = self._slots
        await self._replay(slot, path, "the root")
        return self._shown[path]

    async def close(self) -> None:
        """Close all sessions, whatever state they are in."""
        slots, self._slots = self._slots, []
        self._budget.environment_calls += len(slots)
        await asyncio.gather(*(slot.session.close() for slot in slots))

    async def act(self, path: Path, actions: Sequence[str]) -> dict[str, Step]:
        """What each of the (different) actions leads to in the state that `path` leads to. What
        was shown already, on behalf of a node with another reply, is not asked for again."""
        new = [action for action in actions if (*path, action) not in self._shown]
        if new:
            await self._carry_out(path, new)
        return {action: self._shown[(*path, action)] for action in actions}

    async def verify(self, path: Path, name: str) -> None:
        """Replay `path` from the start in a session of its own. Raises MismatchError when anything
        that it shows differs from what was shown on the way here; `name` says which node it is."""
        slot = await self._begin(keep=False)
        try:
            await self._replay(slot, path, name)
        finally:
            self._budget.environment_calls += 1
            await slot.session.close()
        self._budget.verified += 1

    async def _carry_out(self, path: Path, actions: Sequence[str]) -> None:
        first = await self._bring(path)
        if len(actions) > 1 and self._copying == "snapshot" and path not in self._saved:
            self._saved[path] = await self._call(first.session.snapshot())
        if self._copying == "fork":
            slots = await self._forked(first, len(actions))
        else:
            slots = await self._enough(first, len(actions))
        lanes = [(slot, actions[n :: len(slots)]) for n, slot in enumerate(slots)]
        await _all_or_error([self._work(path, slot, share) for slot, share in lanes])

    async def _work(self, path: Path, slot: _Slot, actions: Sequence[str]) -> None:
        for action in actions:
            if slot.at != path:
                await self._put(slot, path)
            slot.at = None
            step = await self._call(slot.session.step(action))
            self._budget.steps += 1
            slot.at = (*path, action)
            self._check((*path, action), step, "a node")

    async def _bring(self, path: Path) -> _Slot:
        """A session in the state that `path` leads to."""
        for slot in self._slots:
            if slot.at == path:
                return slot
        slot = self._slots[0] if self._slots else await self._begin()
        await self._put(slot, path)
        return slot

    async def _put(self, slot: _Slot, path: Path) -> None:
        """Set a session's state: from the nearest saved state on the path, else from the start."""
        slot.at = None
        for length in range(len(path), -1, -1):
            saved = self._saved.get(path[:length])
            if saved is None:
                continue
            try:
                await self._call(slot.session.restore(saved))
            except InfrastructureError:
                # What the environment cannot restore is replayed; that tells whether it can.
                del self._saved[path[:length]]
                continue
            self._budget.forks += 1
            slot.at = path[:length]
            break
        else:
            await self._call(slot.session.restart(self._task_id, self._prompt_seed))
            slot.at = ()
        await self._replay(slot, path, "a node")

    async def _replay(self, slot: _Slot, path: Path, name: str) -> None:
        assert slot.at is not None
        for length in range(len(slot.at), len(path)):
            slot.at = None
            step = await self._call(slot.session.step(path[length]))
            self._budget.replayed_steps += 1
            slot.at = path[: length + 1]
            self._check(slot.at, step, name)

    def _check(self, path: Path, step: Step, name: str) -> None:
        expected = self._shown.setdefault(path, step)
        if step == expected or (
            self._same == "reward" and (step.reward, step.done) == (expected.reward, expected.done)
        ):
            return
        raise MismatchError(
            f"the environment is not deterministic: on the way to {name} of task "
            f"{self._task_id!r}, {_text_of(expected)} the first time and {_text_of(step)} the "
            f"second, after the actions {list(path)}. States are copied by {self._copying}; "
            "if only copies differ, set `reach: replay`; if texts vary by nature, "
            "`same_state: reward`."
        )

    async def _enough(self, first: _Slot, wanted: int) -> list[_Slot]:
        """Sessions to work with, `first` among them; new ones start in the saved state."""
        while len(self._slots) < min(wanted, self._limit):
            saved = self._saved.get(first.at) if first.at is not None else None
            if saved is None:
                await self._begin()
                continue
            try:
                session = await self._call(self._world.restored(saved))
            except InfrastructureError:
                await self._begin()
                continue
            self._budget.forks += 1
            self._slots.append(_Slot(session, first.at))
        others = [slot for slot in self._slots if slot is not first]
        return [first, *others][:wanted]

    async def _forked(self, first: _Slot, wanted: int) -> list[_Slot]:
        """`wanted` sessions in the state of `first`; the others are closed."""
        old = [slot for slot in self._slots if slot is not first]
        self._slots = [first]
        self._budget.environment_calls += len(old)
        await asyncio.gather(*(slot.session.close() for slot in old))
        while len(self._slots) < wanted:
            session = await self._call(first.session.fork())
            self._budget.forks += 1
            self._slots.append(_Slot(session, first.at))
        return list(self._slots)

    async def _begin(self, *, keep: bool = True) -> _Slot:
        # Two requests: the session is created, then set to the task.
        self._budget.environment_calls += 1
        session = await self._call(self._world.begin(self._task_id, self._prompt_seed))
        slot = _Slot(session, ())
        if keep:
            self._slots.append(slot)
        return slot

    async def _call(self, request: Coroutine[Any, Any, Result]) -> Result:
        self._budget.environment_calls += 1
        return await request


def is_verified(share: float, task_id: str, path: Path) -> bool:
    """Whether a node belongs to the share that is verified: by a hash, so that neither order nor
    concurrency matters."""
    text = "\0".join((task_id, *path))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


async def _all_or_error(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run side by side; when one fails, wait for the rest, then raise its exception. Nothing is
    left running that uses a session which is about to be closed."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _text_of(step: Step) -> str:
    text = step.observation if len(step.observation) <= 200 else step.observation[:197] + "..."
    return f"{text!r} (reward {step.reward:g}{', done' if step.done else ''})"
