"""What is counted of pairs of the tiny spec: which reply a ranking preferred to which."""

from __future__ import annotations

from collections import Counter

from benchmarks.sweet_pairs import Sort, priced_kind, sort_of, table

REFERENCE = 'def fare(kind, n):\n    return n * {"child": 12}.get(kind, 1)'
OPENING = [{"role": "user", "content": 'Write fare. Kinds: "child", "dog".'}]
TOLD = [
    *OPENING,
    {"role": "assistant", "content": 'Is "child" priced?'},
    {"role": "user", "content": 'Yes, {"child": 12}.'},
]


def test_a_question_is_useful_until_it_is_answered() -> None:
    assert priced_kind(REFERENCE) == "child"
    assert sort_of(OPENING, 'Is "child" priced?', "child") == "useful"
    assert sort_of(OPENING, 'Is "dog" priced?', "child") == "other"
    assert sort_of(TOLD, 'Is "child" priced?', "child") == "other"
    assert sort_of(TOLD, f"I WANT TO ANSWER:\n{REFERENCE}", "child") == "answer"


def test_what_a_ranking_prefers_is_counted_by_sorts() -> None:
    found: Counter[tuple[Sort, Sort]] = Counter(
        {
            ("useful", "other"): 5,
            ("other", "useful"): 2,
            ("other", "other"): 1,
            ("answer", "other"): 3,
            ("answer", "answer"): 1,
        }
    )
    assert table({"pairs": found})[2:] == ["| `pairs` | 12 | 5 | 2 | 1 | 4 |"]
