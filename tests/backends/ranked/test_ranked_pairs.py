"""Pairs of ranked candidates: what is drawn and dropped, and what the released script draws."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from agentc_backends.data.ranked.job_ranked_pairs import RankedCounts, ranked_pairs
from agentc_backends.data.ranked.settings import RankedRules


def rules(**changes: Any) -> RankedRules:
    given: dict[str, Any] = {
        "ranking": "advantage",
        "draw": "halves",
        "pairs_per_turn": 4,
        "replacement": True,
        "dedup": True,
        "order": "hash",
        "margin": 0.0,
        "seed": 0,
    }
    return RankedRules(**{**given, **changes})


def turn(
    scores: Sequence[float], name: str = "t#0@0", texts: Sequence[str] | None = None
) -> dict[str, Any]:
    texts = [f"{name}/{place}" for place in range(len(scores))] if texts is None else texts
    return {
        "id": name,
        "task_id": "t",
        "split": "train",
        "turn": 0,
        "prompt": [{"role": "user", "content": "?"}],
        "end": "sampled",
        "candidates": [
            {"text": text, "advantage": score} for text, score in zip(texts, scores, strict=True)
        ],
    }


def places(pairs: Sequence[Any]) -> list[tuple[int, int]]:
    """(chosen, rejected) of each pair, as places of candidates."""
    return [
        (int(pair["chosen_id"].rpartition(":")[2]), int(pair["rejected_id"].rpartition(":")[2]))
        for pair in pairs
    ]


FOUR = (0.1, 0.4, 0.2, 0.3)


def test_chosen_come_from_the_upper_half_and_rejected_from_the_lower() -> None:
    turns = [turn(FOUR, f"t#{attempt}@0") for attempt in range(50)]
    pairs, counts = ranked_pairs(turns, rules())
    assert {chosen for chosen, _ in places(pairs)} == {1, 3}
    assert {rejected for _, rejected in places(pairs)} == {0, 2}
    assert all(pair["chosen_reward"] > pair["rejected_reward"] for pair in pairs)
    assert counts.drawn == 200
    assert len(pairs) == 200 - counts.dropped["duplicate"]
    assert counts.dropped["duplicate"] > 0
    # Ranks count from the best.
    ranks = {(c, r): tuple(p["ranks"]) for p, (c, r) in zip(pairs, places(pairs), strict=True)}
    assert ranks == {(1, 0): (1, 4), (1, 2): (1, 3), (3, 0): (2, 4), (3, 2): (2, 3)}


def test_best_and_worst_are_one_pair() -> None:
    pairs, _ = ranked_pairs([turn(FOUR)], rules(draw="best_worst"))
    assert places(pairs) == [(1, 0)]
    assert pairs[0]["id"] == "t#0@0:1-0"


def test_ties_go_by_place_and_are_no_pair() -> None:
    # Ascending: 3 (.1), 0, 1, 2 (.2 each); the halves are {3, 0} and {1, 2}.
    turns = [turn((0.2, 0.2, 0.2, 0.1), f"t#{attempt}@0") for attempt in range(50)]
    pairs, counts = ranked_pairs(turns, rules(dedup=False))
    assert Counter(rejected for _, rejected in places(pairs)).keys() == {3}
    assert {chosen for chosen, _ in places(pairs)} == {1, 2}
    assert counts.dropped["tie"] == 200 - len(pairs) > 0
    facts = counts.facts(len(pairs))
    assert facts["dropped"] == {"tie": 200 - len(pairs), "duplicate": 0}


def test_two_equal_candidates_make_no_pair() -> None:
    pairs, counts = ranked_pairs([turn((0.5, 0.5))], rules())
    assert pairs == []
    assert counts.dropped == {"tie": 4}


def test_without_replacement_every_pair_of_a_turn_is_another_one() -> None:
    pairs, counts = ranked_pairs([turn(FOUR)], rules(replacement=False))
    assert sorted(places(pairs)) == [(1, 0), (1, 2), (3, 0), (3, 2)]
    assert counts.drawn == 4


def test_pairs_drawn_twice_have_names_of_their_own() -> None:
    pairs, _ = ranked_pairs([turn((0.1, 0.2))], rules(dedup=False))
    assert [pair["id"] for pair in pairs] == ["t#0@0:1-0", *(f"t#0@0:1-0.{n}" for n in (2, 3, 4))]


def test_the_same_texts_behind_the_same_prompt_are_kept_once() -> None:
    one, two = (turn((0.1, 0.2), name, ("bad", "good")) for name in ("t#0@0", "t#1@0"))
    pairs, counts = ranked_pairs([one, two], rules(draw="best_worst"))
    assert len(pairs) == 1
    assert counts.dropped == {"duplicate": 1}
    two["prompt"] = [{"role": "user", "content": "Another?"}]
    assert len(ranked_pairs([one, two], rules(draw="best_worst"))[0]) == 2


def test_what_can_be_no_pair_is_counted_by_reason() -> None:
    cases = {
        "same_text": turn((0.1, 0.2), texts=("a", "a")),
        "chosen_empty": turn((0.1, 0.2), texts=("a", "")),
        "rejected_empty": turn((0.1, 0.2), texts=("", "a")),
        "within_margin": turn((0.1, 0.14), texts=("a", "b")),
    }
    for reason, row in cases.items():
        pairs, counts = ranked_pairs([row], rules(draw="best_worst", margin=0.05))
        assert (pairs, counts.dropped) == ([], {reason: 1})


def test_turns_without_candidates_are_skipped_and_counted() -> None:
    empty = {**turn(()), "end": "overflow"}
    single = turn((0.1,), "t#1@0")
    _, counts = ranked_pairs([empty, single, turn(FOUR, "t#2@0")], rules())
    assert (counts.turns, counts.skipped) == (1, {"overflow": 1, "one_candidate": 1})


def test_the_middle_of_an_odd_number_is_in_neither_half() -> None:
    turns = [turn((0.1, 0.2, 0.3), f"t#{attempt}@0") for attempt in range(30)]
    assert set(places(ranked_pairs(turns, rules())[0])) == {(2, 0)}


def test_the_released_script_draws_the_same_pairs_in_the_same_order() -> None:
    two = [turn(FOUR, "a"), turn((-0.5, -0.1, -0.9, -0.2), "b")]
    published = rules(order="published", pairs_per_turn=2, dedup=False)
    pairs, _ = ranked_pairs(two, published)
    sides = [(p["chosen_id"], p["rejected_id"]) for p in pairs]
    assert sides == [("a:3", "a:2"), ("b:3", "b:2"), ("a:3", "a:0"), ("b:3", "b:2")]
    sixteen = [turn([place / 16 for place in range(16)])]
    pairs, _ = ranked_pairs(sixteen, rules(order="published", pairs_per_turn=6, dedup=False))
    draws = [(1, 8), (4, 11), (3, 10), (1, 9), (6, 8), (0, 9)]
    assert Counter(places(pairs)) == Counter((high, low) for low, high in draws)


def released(turns: Sequence[Any], num_pairs: int) -> list[tuple[str, str]]:
    """(chosen, rejected) as the released script draws and shuffles them, its unstable sort of ties
    replaced by a stable one."""
    generator, found = random.Random(42), []
    for each in turns:
        scores = [candidate["advantage"] for candidate in each["candidates"]]
        order = sorted(range(len(scores)), key=lambda place: scores[place])
        half = len(order) // 2
        for _ in range(num_pairs):
            low = generator.choice(order[:half])
            found.append((f"{each['id']}:{generator.choice(order[half:])}", f"{each['id']}:{low}"))
    generator.shuffle(found)
    return found


@pytest.mark.parametrize("few", [1, 3, 16])
def test_all_that_the_released_script_draws_can_be_kept(few: int) -> None:
    """Ties, equal texts and empty replies too; without them every later draw would be at another
    place of the shuffle."""
    generator = random.Random(few)
    turns = [
        turn(
            [generator.randrange(few) / 4 for _ in range(16)],
            f"t#{number}@0",
            [generator.choice(["", "a", "b", "c"]) for _ in range(16)],
        )
        for number in range(40)
    ]
    how = rules(order="published", dedup=False, keep="all")
    pairs, counts = ranked_pairs(turns, how)
    assert [(pair["chosen_id"], pair["rejected_id"]) for pair in pairs] == released(turns, 4)
    assert counts.drawn == len(pairs) == 160
    assert not +counts.dropped
    assert len(ranked_pairs(turns, rules(order="published", dedup=False))[0]) < 160


def test_a_turn_draws_the_same_whatever_other_turns_there_are() -> None:
    first, second = turn(FOUR, "t#0@0"), turn(FOUR, "t#1@0")
    alone, _ = ranked_pairs([second], rules())
    both, _ = ranked_pairs([first, second], rules())
    assert [pair["id"] for pair in both][-len(alone) :] == [pair["id"] for pair in alone]
    other, _ = ranked_pairs([second], rules(seed=3))
    assert [pair["id"] for pair in other] != [pair["id"] for pair in alone]


def test_a_random_ranking_knows_nothing_of_advantages() -> None:
    turns = [turn(FOUR, f"t#{attempt}@0") for attempt in range(400)]
    pairs, _ = ranked_pairs(turns, rules(ranking="random", draw="best_worst"))
    better = sum(pair["advantages"][0] > pair["advantages"][1] for pair in pairs)
    assert len(pairs) == 400
    assert 160 < better < 240  # four standard deviations of a coin
    assert all(pair["chosen_reward"] > pair["rejected_reward"] for pair in pairs)
    swapped = [turn(FOUR[::-1], row["id"]) for row in turns]
    again, _ = ranked_pairs(swapped, rules(ranking="random", draw="best_worst"))
    assert [pair["id"] for pair in again] == [pair["id"] for pair in pairs]


@pytest.mark.parametrize("scores", [(0.2, 0.1), FOUR, tuple(range(16))])
def test_rows_are_draws_less_what_was_dropped(scores: Sequence[float]) -> None:
    counts: RankedCounts
    pairs, counts = ranked_pairs([turn(scores, f"t#{n}@0") for n in range(20)], rules())
    assert len(pairs) == counts.drawn - sum(counts.dropped.values())
    assert len({pair["id"] for pair in pairs}) == len(pairs)


LONG = ("question?", "another one?", "def f(n):\n    return n", "def f(n):\n    return 2 * n")


@pytest.mark.parametrize("replacement", [True, False])
def test_pairs_of_like_length_alone(replacement: bool) -> None:
    """The upper half holds a question and an answer, and so does the lower."""
    given = turn((0.4, 0.1, 0.3, 0.2), texts=LONG)
    pairs, counts = ranked_pairs([given], rules(replacement=replacement, length_ratio=1.5))
    assert set(places(pairs)) == {(0, 1), (2, 3)}
    assert counts.drawn == (4 if replacement else 2)
    assert len(places(ranked_pairs([given], rules(replacement=False))[0])) == 4


def test_the_best_meets_the_worst_of_like_length() -> None:
    # Ascending: an answer, a question, an answer, a question.
    given = turn((0.2, 0.4, 0.1, 0.3), texts=(LONG[0], LONG[1], LONG[2], LONG[3]))
    pairs, _ = ranked_pairs([given], rules(draw="best_worst", length_ratio=1.5))
    assert places(pairs) == [(1, 0)]
    assert places(ranked_pairs([given], rules(draw="best_worst"))[0]) == [(1, 2)]


def test_a_turn_without_candidates_of_like_length_is_counted() -> None:
    given = turn((0.2, 0.1), texts=(LONG[0], LONG[3]))
    for draw in ("halves", "best_worst"):
        pairs, counts = ranked_pairs([given], rules(draw=draw, length_ratio=1.5))
        assert (pairs, counts.facts(0)["skipped"]) == ([], {"none_of_like_length": 1})


def test_what_was_seen_takes_no_room() -> None:
    """Whatever the length of prompts, which all pairs of a turn share."""
    prompt = [{"role": "user", "content": "x" * 10**5}]
    long = {**turn(tuple(map(float, range(40)))), "prompt": prompt}
    tracemalloc.start()
    try:
        pairs, _ = ranked_pairs([long], rules(pairs_per_turn=40))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(pairs) > 20
    assert most < 10**6
