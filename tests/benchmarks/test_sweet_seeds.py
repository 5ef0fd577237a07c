"""The table of SWEET-RL's tiny spec: what is counted of episodes, and how seeds are pooled."""

from __future__ import annotations

import pytest
from benchmarks.sweet_seeds import Played, of_episodes, table


def episode(questions: int, verdicts: list[str]) -> dict[str, object]:
    said = [{"role": "user", "content": "Write f."}]
    for number in range(questions + 1):
        said += [{"role": "assistant", "content": str(number)}, {"role": "user", "content": "No."}]
    return {"messages": said, "prompt_length": 1, "report": {"verdicts": verdicts}}


def test_what_is_counted_of_episodes() -> None:
    tasks = {"a": {"reward": 1.0, "success": 1.0}, "b": {"reward": 0.2, "success": 0.0}}
    lost = {**episode(3, []), "report": None}
    episodes = [episode(1, ["pass", "pass"]), episode(2, ["pass", "error"]), lost]
    found = of_episodes(tasks, [*episodes, episode(0, ["fail", "pass"])])
    assert (found.perfect, found.questions, found.formed) == (0.5, 1.5, 0.5)
    assert found.tests == {"a": 1.0, "b": 0.2}


def test_differences_are_paired_by_seed_and_task() -> None:
    def run(first: float, second: float) -> Played:
        return Played({"a": first, "b": second}, 0.25, 1.5, 0.75)

    played = {
        "evaluate_start": [run(0.2, 0.4), run(0.0, 0.2)],
        "evaluate_random_pairs": [run(0.2, 0.4), run(0.0, 0.2)],
        "evaluate_sweet": [run(0.3, 0.5), run(0.1, 0.3)],
    }
    lines = table(played)
    assert lines[0].startswith("2 seeds, 2 held-out tasks")
    start, control, sweet = (line.split(" | ") for line in lines[4:])
    assert (start[2], control[3]) == ("-", "-")
    assert control[2] == "+0.000 [+0.000, +0.000]"
    # Every task of every seed is 0.1 above: no draw of them says anything else.
    assert sweet[2:4] == ["+0.100 [+0.100, +0.100]"] * 2
    assert sweet[4:] == ["0.250", "1.50", "0.750", "0.400, 0.200 |"]
    assert float(sweet[1].split()[0]) == pytest.approx(0.3)
