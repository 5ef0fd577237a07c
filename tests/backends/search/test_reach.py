"""What it costs to bring the environment to nodes, and how a copy that is none is found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.backends.search.scripted import Script, Toy, ToySession, grown, reach_rules, search_rules
from tests.backends.search.test_roots import behind, turn

from agentc_backends.agents.common.episode import Step
from agentc_backends.agents.search.navigator import MismatchError
from agentc_backends.clients.errors import InfrastructureError

WIDE = [f"r{n}" for n in range(400)]


def calls(copying: str, depth: int, children: int, iterations: int = 1) -> int:
    world = Toy()
    rules = search_rules(depth=depth, children=children, iterations=iterations)
    how = reach_rules(copying, children if copying != "replay" else 1)
    row = asyncio.run(grown(Script(WIDE), world, rules=rules, how=how))
    assert row["budget"]["environment_calls"] == len(world.log)
    return len(world.log)


def test_a_descent_costs_two_calls_for_each_child() -> None:
    """The released search resets and replays for each child: 4 * (d + 2) calls at depth d."""
    levels, children = 21, 4
    released = sum(children * (depth + 2) for depth in range(levels))
    ours = calls("snapshot", levels - 1, children)
    # A new session and its end, one snapshot, a restore for each child but one, the steps.
    assert ours == 2 + children + levels * 2 * children
    assert released == 1008
    assert released / ours > 5


def test_forks_cost_less_than_replays() -> None:
    assert calls("snapshot", 10, 3, 4) < calls("fork", 10, 3, 4) < calls("replay", 10, 3, 4)


@pytest.mark.parametrize("copying", ["snapshot", "fork"])
def test_a_copy_that_forgets_is_found_and_named(copying: str) -> None:
    rules = search_rules(depth=6, children=2)
    with pytest.raises(MismatchError, match=r"node \d+ of task 'task'.*reach: replay"):
        asyncio.run(
            grown(
                Script(WIDE), Toy(liar=True), rules=rules, how=reach_rules(copying, 2, 1.0)
            )
        )  # fmt: skip


def test_an_environment_that_is_not_deterministic_cannot_be_searched() -> None:
    world = Toy(fickle=True)
    with pytest.raises(MismatchError, match="not deterministic"):
        asyncio.run(grown(Script(WIDE), world, rules=search_rules(), how=reach_rules("replay", 1)))
    assert world.open == 0


def test_texts_may_vary_where_the_search_is_told_so() -> None:
    rules = search_rules(depth=4, children=2)
    for copying in ("snapshot", "fork", "replay"):
        how = reach_rules(copying, 2, verify_share=1.0, same="reward")
        row = asyncio.run(grown(Script(WIDE), Toy(fickle=True), rules=rules, how=how))
        assert row["end"] == "searched"


def test_what_pays_differently_is_never_the_same() -> None:
    # Copies forget the `a` that makes `b` win, so the second child wins nothing.
    script = Script(["a", "a", "c", "b"])
    how = reach_rules("snapshot", 2, 1.0, same="reward")
    with pytest.raises(MismatchError, match=r"reward 0.*reward 1, done"):
        asyncio.run(grown(script, Toy(liar=True), rules=search_rules(), how=how))


def test_what_cannot_be_restored_is_replayed() -> None:
    class Stubborn(Toy):
        def copied(self, done: Sequence[str]) -> list[str]:
            if len(done) > 1:
                raise InfrastructureError("not where the snapshot was taken")
            return super().copied(done)

    rules = search_rules(depth=4, children=3)
    plain, stubborn = (
        asyncio.run(grown(Script(WIDE), world, rules=rules, how=reach_rules("snapshot", 3)))
        for world in (Toy(), Stubborn())
    )
    assert stubborn["nodes"] == plain["nodes"]
    assert stubborn["budget"]["replayed_steps"] > plain["budget"]["replayed_steps"]


def test_a_further_session_replays_where_the_snapshot_cannot_be_restored() -> None:
    class NoNewCopies(Toy):
        async def restored(self, snapshot: Mapping[str, Any]) -> ToySession:
            self.log.append("restore")
            raise InfrastructureError("no session can be made of a snapshot")

    # Behind a prefix, so that a session at the start of the task is not in the root's state.
    root = behind(turn("c", "c"), turn("d", "c d"))
    rules = search_rules(depth=4, children=3)
    rows = []
    for world in (Toy(), NoNewCopies()):
        how = reach_rules("snapshot", 3)
        rows.append(asyncio.run(grown(Script(WIDE), world, rules=rules, how=how, root=root)))
        assert (world.most, world.open) == (3, 0)
        assert rows[-1]["budget"]["environment_calls"] == len(world.log)
    plain, without = rows
    assert without["nodes"] == plain["nodes"]
    assert without["end"] == "searched"


def test_a_share_of_the_copies_is_verified() -> None:
    def verified(share: float, seed: int = 0) -> int:
        rules = search_rules(depth=5, children=3, iterations=6, seed=seed)
        how = reach_rules("snapshot", 3, share)
        row = asyncio.run(grown(Script(WIDE), Toy(), rules=rules, how=how))
        assert row["budget"]["verified"] <= len(row["nodes"]) - 1
        return int(row["budget"]["verified"])

    assert verified(0.0) == 0
    assert verified(1.0) > verified(0.3) > 0


def test_sessions_are_closed_when_a_step_fails() -> None:
    class Breaking(Toy):
        async def begin(self, task_id: str, prompt_seed: int) -> ToySession:
            session = await super().begin(task_id, prompt_seed)
            step = session.step

            async def breaking(action: str) -> Step:
                if len(self.log) > 20:
                    raise InfrastructureError("gone")
                return await step(action)

            session.step = breaking  # type: ignore[method-assign]
            return session

    world: Any = Breaking()
    rules = search_rules(depth=9, children=3)
    with pytest.raises(InfrastructureError):
        asyncio.run(grown(Script(WIDE), world, rules=rules, how=reach_rules("snapshot", 3)))
    assert world.open == 0
