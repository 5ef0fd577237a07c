"""The environment checks find the fault that they look for, and nothing in a sound environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from agentc.conformance import Check, Fault
from agentc.conformance.environment_process import ServedEnvironment, served
from agentc.conformance.environments import DeclaredEnvironment, environment_checks

WORLD = Path(__file__).with_name("counting_world.py")
DECLARED = DeclaredEnvironment(
    splits=("train", "test"),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=20,
    capabilities=frozenset({"expert", "fork", "privileged", "snapshot"}),
)


def checks(
    fault: str, declared: DeclaredEnvironment = DECLARED, kept: ExitStack | None = None
) -> dict[str, Check]:
    program = (str(WORLD), "--fault", fault, "--ready-file", "{ready_file}")

    def alone(hash_seed: int, extra: Sequence[str]) -> AbstractContextManager[ServedEnvironment]:
        return served(program, Path(sys.executable), hash_seed=hash_seed, extra=extra)

    @cache
    def shared(stack: ExitStack) -> ServedEnvironment:
        return stack.enter_context(alone(0, ()))

    def start(
        *, hash_seed: int = 0, extra: Sequence[str] = ()
    ) -> AbstractContextManager[ServedEnvironment]:
        if kept is not None and hash_seed == 0 and not extra:
            return nullcontext(shared(kept))
        return alone(hash_seed, extra)

    return {check.name: check for check in environment_checks(start, declared, actions=("up",))}


SOUND = sorted(checks("none"))


@pytest.fixture(scope="module")
def sound() -> Iterator[dict[str, Check]]:
    """The checks of a sound environment, with one server for those that want nothing special."""
    with ExitStack() as servers:
        yield checks("none", kept=servers)


@pytest.mark.parametrize("name", [name for name in SOUND if name != "seeds"])
def test_a_sound_environment_passes(name: str, sound: dict[str, Check]) -> None:
    sound[name].run()


def test_seeds_of_a_sound_environment_change_nothing(sound: dict[str, Check]) -> None:
    sound["seeds"].run()


@pytest.mark.parametrize(
    ("fault", "name", "says"),
    [
        ("task_in_two_splits", "meta", "ants is in `train` and again in `test`"),
        ("no_token", "token", "with the token None answers"),
        ("hash_in_text", "determinism", "another process and hash seed: row 0"),
        ("random_text", "reset", "reset twice"),
        ("reset_keeps_count", "reset", "walked again"),
        ("seed_undeclared", "seeds", "`seed` is no capability"),
        ("seed_without_effect", "seeds", "no seed changed a text"),
        ("reward_of_two", "rewards", "the reward is 2, declared is 0 to 1"),
        ("expert_stops_early", "expert", "the expert ends with 0, not 1"),
        ("done_falls_back", "after the end", "`done` falls back to false"),
        ("pays_after_end", "after the end", "after the end is rewarded with 1.5"),
        ("shares_world", "concurrent episodes", "beside others: row"),
        ("fork_forgets", "fork", "fork after"),
        ("fork_moves_original", "fork", "the original, beside it"),
        ("fork_forgets", "snapshot", "restored snapshot after"),
        ("restore_crashes", "snapshot", "a snapshot with nonsense as `task`: 500"),
        ("takes_any_task", "bad input", '"no such task"'),
        ("breaks_on_nonsense", "determinism", "answers 500"),
        ("forgets_limits", "expiry", "a fourth session of three"),
    ],
)
def test_a_fault_is_found(fault: str, name: str, says: str) -> None:
    with pytest.raises(Fault) as found:
        checks(fault)[name].run()
    assert says in str(found.value)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (replace(DECLARED, splits=("train",)), "`splits`"),
        (replace(DECLARED, reward_range=(-1.0, 1.0)), "`reward_range`"),
        (replace(DECLARED, capabilities=frozenset({"expert"})), "`capabilities`"),
        (replace(DECLARED, max_turns=30), "`max_turns`"),
    ],
)
def test_a_declaration_that_differs_from_the_server(
    declared: DeclaredEnvironment, says: str
) -> None:
    with pytest.raises(Fault, match=says):
        checks("none", declared)["meta"].run()


def test_a_server_that_does_not_start_is_told_with_its_last_words() -> None:
    with (
        pytest.raises(Fault, match="unrecognized arguments: --colour"),
        served((str(WORLD), "--colour"), Path(sys.executable)),
    ):
        pass
