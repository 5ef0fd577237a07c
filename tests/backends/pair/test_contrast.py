"""Pair building: ETO's oracles O1 to O9 at the level of messages, and what ours fixes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentc_backends.data.pair.contrast import build_pairs
from agentc_backends.data.pair.trajectories import PairError, PairRules

RULES = PairRules(
    margin=0.0,
    on_tie="drop",
    on_null="drop",
    directions="both",
    max_extra_rounds=5,
    prompt_from="winner",
    sources="expert",
    max_per_task=None,
    seed=0,
)
LEAD = [{"role": "user", "content": "I"}, {"role": "assistant", "content": "OK"}]


def row(
    task: str,
    reward: float | None,
    actions: int,
    *,
    who: str,
    text: str = "t",
    attempt: int = 0,
    end: str | None = None,
    prompt_seed: int = 0,
    trailing: bool = False,
    lead: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    """A trajectory of `actions` replies named e0.. or p0.., as rows of trajectories.jsonl are."""
    messages = [*(LEAD if lead is None else lead), {"role": "user", "content": text}]
    length = len(messages)
    for number in range(actions):
        messages.append({"role": "assistant", "content": f"{who}{number}"})
        messages.append({"role": "user", "content": f"o{number}"})
    if actions and not trailing:
        messages.pop()
    return {
        "id": f"{task}#{attempt}",
        "task_id": task,
        "attempt": attempt,
        "prompt_seed": prompt_seed,
        "messages": messages,
        "prompt_length": length,
        "reward": reward,
        "end": end or ("success" if reward == 1 else "failure"),
    }


def texts(messages: list[dict[str, str]]) -> list[str]:
    return [message["content"] for message in messages]


def test_o1_lose_takes_the_expert_and_drops_the_last_observation() -> None:
    pairs, counts = build_pairs(
        [[row("1", 1.0, 2, who="e")]], [[row("1", 0.5, 1, who="p", trailing=True)]], RULES
    )
    [pair] = pairs
    assert texts(pair["chosen"]) == ["e0", "o0", "e1"]
    assert texts(pair["rejected"]) == ["p0"]
    assert texts(pair["prompt"]) == ["I", "OK", "t"]
    assert pair["outcome"] == "lose"
    assert (pair["chosen_reward"], pair["rejected_reward"]) == (1.0, 0.5)
    assert counts.facts(1)["lose"] == 1


def test_o2_win_takes_the_explorers_task_text() -> None:
    pairs, _ = build_pairs(
        [[row("1", 0.5, 2, who="e")]], [[row("1", 1.0, 3, who="p", text="t price 40")]], RULES
    )
    [pair] = pairs
    assert texts(pair["prompt"])[-1] == "t price 40"
    assert texts(pair["chosen"]) == ["p0", "o0", "p1", "o1", "p2"]
    assert texts(pair["rejected"]) == ["e0", "o0", "e1"]
    assert pair["outcome"] == "win"


@pytest.mark.parametrize(("gold", "pred"), [(1.0, 1.0), (0.0, 0)])
def test_o3_ties_make_no_pair(gold: float, pred: float) -> None:
    pairs, counts = build_pairs(
        [[row("1", gold, 2, who="e")]], [[row("1", pred, 2, who="p")]], RULES
    )
    assert pairs == []
    assert counts.facts(0)["tie"] == 1


def test_o3_null_reward_and_unknown_task_make_no_pair() -> None:
    pairs, counts = build_pairs(
        [[row("1", 1.0, 2, who="e")]],
        [[row("1", None, 2, who="p"), row("9", 0.0, 2, who="p")]],
        RULES,
    )
    assert pairs == []
    assert counts.facts(0)["null"] == 1
    assert counts.facts(0)["skipped"]["no_expert"] == 1


@pytest.mark.parametrize(
    ("gold_actions", "pred_actions", "rejected"),
    [(2, 12, 13), (1, 12, 11), (3, 8, 15), (3, 20, 15), (3, 7, 13)],
)
def test_o4_rejected_is_cut_five_rounds_after_the_expert(
    gold_actions: int, pred_actions: int, rejected: int
) -> None:
    [pair], counts = build_pairs(
        [[row("1", 1.0, gold_actions, who="e")]], [[row("1", 0.0, pred_actions, who="p")]], RULES
    )
    assert len(pair["rejected"]) == rejected
    # The formula of the original code: len(gold) counts the expert's task message.
    gold_messages = 2 * gold_actions
    assert rejected == min(2 * pred_actions - 1, gold_messages + 9)
    assert texts(pair["rejected"])[-1] == f"p{(rejected - 1) // 2}"
    assert counts.rejected_cut == (rejected < 2 * pred_actions - 1)


def test_o4_a_winner_is_never_cut() -> None:
    [pair], _ = build_pairs([[row("1", 0.0, 1, who="e")]], [[row("1", 1.0, 30, who="p")]], RULES)
    assert len(pair["chosen"]) == 59


def test_o5_a_mixed_set_gives_their_counts() -> None:
    expert = [row(str(n), 1.0, 2, who="e") for n in (1, 3, 4, 5, 7, 8, 9)]
    expert.append(row("2", 0.5, 2, who="e"))
    expert[3] = row("5", 0.0, 2, who="e")
    twice = row("7", 0.2, 2, who="p")
    first = [
        row("1", 0.5, 1, who="p"),
        row("2", 1.0, 3, who="p", text="t price 40"),
        row("3", 1.0, 2, who="p"),
        row("5", 0.0, 2, who="p"),
        row("4", None, 2, who="p"),
        row("unknown", 0.0, 2, who="p"),
        twice,
    ]
    second = [twice, row("8", 0.0, 12, who="p"), row("9", 0.0, 12, who="p")]
    pairs, counts = build_pairs([expert], [first, second], RULES)
    facts = counts.facts(len(pairs))
    assert (facts["win"], facts["tie"], facts["lose"], facts["pairs"]) == (1, 2, 4, 5)
    assert facts["skipped"]["explored_duplicate"] == 1


def test_o6_negative_rewards_lose() -> None:
    expert = [row(str(n), 1.0, 2, who="e") for n in range(5)]
    rewards = (0.75, 1.0, -1.0, 0.0, 0)
    explored = [row(str(n), reward, 2, who="p") for n, reward in enumerate(rewards)]
    pairs, counts = build_pairs([expert], [explored], RULES)
    facts = counts.facts(len(pairs))
    assert (facts["win"], facts["tie"], facts["lose"], len(pairs)) == (0, 1, 4, 4)


def test_o7_without_a_cap_and_null_as_zero() -> None:
    rules = replace(RULES, max_extra_rounds=None, on_null="zero")
    expert = [row(str(n), 1.0, 2, who="e") for n in range(4)]
    explored = [
        row("0", 0.0, 40, who="p"),
        row("1", 1.0, 2, who="p"),
        row("2", None, 2, who="p"),
        row("3", 0, 2, who="p"),
    ]
    pairs, counts = build_pairs([expert], [explored], rules)
    facts = counts.facts(len(pairs))
    assert (facts["win"], facts["tie"], facts["lose"]) == (0, 1, 3)
    assert len(pairs[0]["rejected"]) == 79


def test_o8_an_episode_without_a_reply_is_reported_and_skipped() -> None:
    pairs, counts = build_pairs(
        [[row("1", 1.0, 2, who="e"), row("2", 1.0, 0, who="e")]],
        [[row("1", 0.0, 0, who="p"), row("2", 0.0, 1, who="p")]],
        RULES,
    )
    assert pairs == []
    assert counts.facts(0)["skipped"] == {
        "expert_without_turns": 1,
        "explored_without_turns": 1,
        "no_expert": 1,
    }


def test_o9_tasks_are_matched_whole_not_by_prefix() -> None:
    pairs, counts = build_pairs(
        [[row("1", 1.0, 2, who="e")]],
        [[row("1", 0.5, 2, who="p"), row("10", 0.9, 2, who="p"), row("1-old", 0.9, 2, who="p")]],
        RULES,
    )
    assert [pair["task_id"] for pair in pairs] == ["1"]
    assert counts.skipped["no_expert"] == 2


@pytest.mark.parametrize("on_null", ["drop", "zero", "error"])
def test_an_infrastructure_error_is_never_paired(on_null: Any) -> None:
    pairs, counts = build_pairs(
        [[row("1", 1.0, 2, who="e"), row("2", None, 2, who="e", end="error")]],
        [[row("1", None, 1, who="p", end="error"), row("2", 0.0, 1, who="p")]],
        replace(RULES, on_null=on_null),
    )
    assert pairs == []
    assert counts.skipped["explored_infrastructure_error"] == 1
    assert counts.skipped["expert_infrastructure_error"] == 1


def test_on_null_error_and_on_tie_error_name_the_trajectory() -> None:
    expert = [[row("1", 1.0, 2, who="e")]]
    with pytest.raises(PairError, match="1#0 has no reward"):
        build_pairs(expert, [[row("1", None, 1, who="p")]], replace(RULES, on_null="error"))
    with pytest.raises(PairError, match="on_tie"):
        build_pairs(expert, [[row("1", 1.0, 1, who="p")]], replace(RULES, on_tie="error"))


def test_the_margin_is_exclusive() -> None:
    expert = [[row("1", 1.0, 2, who="e")]]
    explored = [[row("1", 0.75, 1, who="p")]]
    assert len(build_pairs(expert, explored, replace(RULES, margin=0.24))[0]) == 1
    assert build_pairs(expert, explored, replace(RULES, margin=0.25))[0] == []


def test_lose_only_leaves_wins_out_but_counts_them() -> None:
    pairs, counts = build_pairs(
        [[row("1", 0.5, 2, who="e")]],
        [[row("1", 1.0, 1, who="p")]],
        replace(RULES, directions="lose_only"),
    )
    assert pairs == []
    assert counts.facts(0)["win"] == 1
    assert counts.skipped["win_by_direction"] == 1


@pytest.mark.parametrize(
    ("prompt_from", "task_text"), [("winner", "E"), ("expert", "E"), ("explorer", "P")]
)
def test_prompt_from_chooses_the_task_message_of_a_lost_pair(
    prompt_from: Any, task_text: str
) -> None:
    [pair], _ = build_pairs(
        [[row("1", 1.0, 2, who="e", text="E")]],
        [[row("1", 0.0, 1, who="p", text="P")]],
        replace(RULES, prompt_from=prompt_from),
    )
    assert texts(pair["prompt"]) == ["I", "OK", task_text]


def test_in_context_examples_of_the_explorer_do_not_enter_the_prompt() -> None:
    """ETO explores with one example and trains without: the pair opens as the expert's data do."""
    shot = [*LEAD, {"role": "user", "content": "t0"}, {"role": "assistant", "content": "a0"}]
    [pair], _ = build_pairs(
        [[row("1", 0.0, 2, who="e")]], [[row("1", 1.0, 1, who="p", text="P", lead=shot)]], RULES
    )
    assert texts(pair["prompt"]) == ["I", "OK", "P"]


def test_prompts_that_cannot_be_joined_are_refused() -> None:
    with pytest.raises(PairError, match="acknowledgement"):
        build_pairs([[row("1", 0.0, 2, who="e", lead=[])]], [[row("1", 1.0, 1, who="p")]], RULES)


@pytest.mark.parametrize("said", ["expert", "explorer", "both"])
def test_a_system_message_hides_no_instruction_that_shares_the_task_message(said: str) -> None:
    system = [{"role": "system", "content": "S"}]
    expert = row("1", 0.0, 2, who="e", lead=[] if said == "explorer" else system)
    lead = LEAD if said == "expert" else [*system, *LEAD]
    with pytest.raises(PairError, match="acknowledgement"):
        build_pairs([[expert]], [[row("1", 1.0, 1, who="p", lead=lead)]], RULES)


def test_a_pair_opens_with_the_experts_system_message() -> None:
    system = [{"role": "system", "content": "S"}]
    for lead, opening in (([], ["S", "P"]), (LEAD, ["S", "I", "OK", "P"])):
        expert = row("1", 0.0, 2, who="e", lead=[*system, *lead])
        [pair], _ = build_pairs(
            [[expert]], [[row("1", 1.0, 1, who="p", text="P", lead=lead)]], RULES
        )
        assert texts(pair["prompt"]) == opening


def test_the_expert_of_the_same_prompt_seed_is_preferred() -> None:
    expert = [
        row("1", 1.0, 2, who="e", text="seed 0"),
        row("1", 1.0, 3, who="e", text="seed 1", attempt=1, prompt_seed=1),
    ]
    explored = [
        row("1", 0.0, 1, who="p", attempt=0, prompt_seed=1),
        row("1", 0.0, 1, who="p", attempt=1, prompt_seed=7),
    ]
    pairs, _ = build_pairs([expert], [explored], RULES)
    assert [texts(pair["prompt"])[-1] for pair in pairs] == ["seed 1", "seed 0"]


def test_the_same_words_on_both_sides_make_no_pair() -> None:
    """A nondeterministic environment can reward one text in two ways."""
    pairs, counts = build_pairs([[row("1", 1.0, 2, who="x")]], [[row("1", 0.0, 2, who="x")]], RULES)
    assert pairs == []
    assert counts.skipped["same_text"] == 1


def test_empty_replies_are_left_out() -> None:
    silent = row("1", 0.0, 2, who="p")
    for message in silent["messages"]:
        if message["content"].startswith("p"):
            message["content"] = ""
    pairs, counts = build_pairs([[row("1", 1.0, 2, who="e")]], [[silent]], RULES)
    assert pairs == []
    assert counts.skipped["explored_empty_replies"] == 1


def test_self_play_pairs_attempts_and_cuts_by_the_winner() -> None:
    explored = [
        row("1", 0.0, 20, who="p", attempt=0),
        row("1", 1.0, 2, who="q", attempt=1),
        row("1", 1.0, 3, who="r", attempt=2),
    ]
    pairs, counts = build_pairs([], [explored], replace(RULES, sources="self"))
    assert [(p["chosen_id"], p["rejected_id"]) for p in pairs] == [("1#1", "1#0"), ("1#2", "1#0")]
    assert [len(p["rejected"]) for p in pairs] == [13, 15]
    assert {p["outcome"] for p in pairs} == {"self"}
    assert counts.compared["self_tie"] == 1
    assert len({p["id"] for p in pairs}) == 2


def test_self_play_leaves_attempts_at_other_prompts_apart() -> None:
    explored = [
        row("1", 0.0, 2, who="p", attempt=0),
        row("1", 1.0, 2, who="q", attempt=1, text="other"),
    ]
    pairs, counts = build_pairs([], [explored], replace(RULES, sources="self"))
    assert pairs == []
    assert counts.skipped["self_other_prompt"] == 1


def test_both_sources_together() -> None:
    explored = [row("1", 0.0, 2, who="p"), row("1", 0.5, 2, who="q", attempt=1)]
    pairs, _ = build_pairs(
        [[row("1", 1.0, 2, who="e")]], [explored], replace(RULES, sources="expert_and_self")
    )
    assert [p["outcome"] for p in pairs] == ["lose", "lose", "self"]


def test_max_per_task_draws_by_seed_and_repeats_itself() -> None:
    expert = [[row("1", 1.0, 2, who="e"), row("2", 1.0, 2, who="e")]]
    explored = [
        [row(task, 0.0, n + 1, who="p", attempt=n) for task in ("1", "2") for n in range(8)]
    ]

    def chosen(seed: int) -> list[str]:
        rules = replace(RULES, max_per_task=2, seed=seed)
        pairs, counts = build_pairs(expert, explored, rules)
        assert counts.skipped["over_max_per_task"] == 12
        return [pair["id"] for pair in pairs]

    assert chosen(0) == chosen(0)
    assert len(chosen(0)) == 4
    assert len({tuple(chosen(seed)) for seed in range(5)}) > 1


def test_ids_tell_rounds_apart() -> None:
    """Exploration of two rounds may be accumulated; attempt numbers start at 0 in each."""
    expert = [[row("1", 1.0, 2, who="e")]]
    rounds = [[row("1", 0.0, 1, who="p")], [row("1", 0.0, 2, who="q")]]
    pairs, _ = build_pairs(expert, rounds, RULES)
    assert len({pair["id"] for pair in pairs}) == 2
