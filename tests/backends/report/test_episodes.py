"""Episodes in the page: all of them, and what the script shows of them in a real browser."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.backends.report.test_report import CHROMIUM, HOSTILE, Page, collected
from tests.support.patience import PATIENCE_S

from agentc_backends.results.report.episode_browser import (
    TEXT_LIMIT,
    episode_stages,
    episodes_link,
    pack,
)
from agentc_backends.results.report.page import render_page

WAIT = """<script>(async () => {
  const sleep = () => new Promise((done) => setTimeout(done, 20));
  const until = async (test) => { while (!test()) await sleep(); };
  const press = (key) =>
    document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const opened = () => [...document.querySelectorAll("details.episode[open]")]
    .filter((block) => block.querySelector(".message")).map((block) => block.dataset.key);
  await until(() => document.querySelector("details.episode"));
  %s
})();</script>"""


def unpacked(block: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(block)))


def rows_of(store: Any, stage: str) -> tuple[Path, list[dict[str, Any]]]:
    path = store.inputs[stage][0] / "trajectories.jsonl"
    return path, [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def written(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def in_browser(page: str, folder: Path, address: str = "") -> str:
    """The page as it is after its scripts, as HTML."""
    assert CHROMIUM is not None
    target = folder / "index.html"
    target.write_text(page, encoding="utf-8")
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"]
    return subprocess.run(
        [CHROMIUM, *words, f"--user-data-dir={folder}/profile", "--dump-dom",
         target.as_uri() + address],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    ).stdout  # fmt: skip


def test_every_episode_is_in_the_page_whole(example_store: Any, experiment: Any) -> None:
    path, rows = rows_of(example_store, "eto.1.explore")
    written(path, [{**row, "last_observation": f"{n} " + "x" * 9000} for n, row in enumerate(rows)])
    page = Page(render_page(collected(example_store, experiment), experiment, trajectories=5000))
    stages = json.loads(page.data)["stages"]
    [place] = [n for n, stage in enumerate(stages) if stage["name"] == "eto.1.explore"]
    stage = stages[place]
    assert (stage["total"], stage["shown"]) == (120, 120)
    assert sum(stage["ends"].values()) == 120
    assert len(stage["starts"]) > 2
    index = unpacked(page.blocks[f"index-{place}"])
    found = []
    for number, start in enumerate(stage["starts"]):
        block = unpacked(page.blocks[f"episodes-{place}-{number}"])
        assert start == len(found)
        assert len(set(block["texts"])) == len(block["texts"])
        for row in block["rows"]:
            said = [(role, block["texts"][text]) for role, text in row["messages"]]
            found.append((said, block["texts"][row["last"]]))
    assert [entry[:4] for entry in index] == [
        [row["id"], row["task_id"], row["reward"], row["end"]] for row in rows
    ]
    for number, (row, (said, last)) in enumerate(zip(rows, found, strict=True)):
        assert said == [(m["role"][0], m["content"]) for m in row["messages"]]
        assert last == f"{number} " + "x" * 9000


def test_a_bound_leaves_an_even_spread(example_store: Any, experiment: Any) -> None:
    data = episode_stages(collected(example_store, experiment), 7)
    stage = next(s for s in data["stages"] if s["name"] == "eto.1.explore")
    place = data["stages"].index(stage)
    index = unpacked(data["blocks"][f"index-{place}"])
    assert (stage["total"], stage["shown"], len(index)) == (120, 7, 7)
    assert index[0][0].endswith("item_0#0")
    assert int(index[-1][0].split("_")[1].split("#")[0]) > 90
    assert data["first"] == "eto.2.evaluate:rollout"


def test_more_than_a_page_can_carry_is_spread_too(example_store: Any) -> None:
    _, rows = rows_of(example_store, "eto.1.explore")
    whole = pack(rows, 10**9)
    assert len(whole.rows) == 120
    size = sum(map(len, whole.blocks))
    part = pack(rows, size // 2)
    assert sum(map(len, part.blocks)) <= size // 2
    assert 20 < len(part.rows) < 80
    assert len(pack(rows, 1).rows) == 1


def test_long_texts_are_cut_with_a_note(example_store: Any) -> None:
    _, rows = rows_of(example_store, "eto.1.explore")
    rows[0]["messages"][2]["content"] = "x" * (TEXT_LIMIT + 10)
    [block] = pack(rows[:1], 10**9).blocks
    assert any(text.endswith("... 10 more characters") for text in unpacked(block)["texts"])


def test_what_was_not_seen_and_what_was_reported_are_there(example_store: Any) -> None:
    _, rows = rows_of(example_store, "eto.1.explore")
    rows[0]["messages"][-1] |= {"raw": "hidden thoughts"}
    rows[0]["report"] = {"verdicts": ["pass", "fail"], "answer_from": "limit"}
    [block] = pack(rows, 10**9).blocks
    found = unpacked(block)
    row = found["rows"][0]
    role, seen, raw = row["messages"][-1]
    assert (role, found["texts"][seen]) == ("a", rows[0]["messages"][-1]["content"])
    assert found["texts"][raw] == "hidden thoughts"
    assert found["texts"][row["report"]] == 'verdicts: ["pass", "fail"]\nanswer_from: "limit"'
    assert found["rows"][1]["report"] is None


def test_rewards_of_turns_and_what_a_reply_is_are_there(example_store: Any) -> None:
    _, rows = rows_of(example_store, "eto.1.explore")
    rows[0]["messages"][-1] |= {"cut": True, "loss": False}
    rows[0]["rewards"] = [0.5, *[0.0] * (rows[0]["turns"] - 1)]
    rows[1]["rewards"] = [*[0.0] * (rows[1]["turns"] - 1), 1.0]
    first, second, *_ = unpacked(pack(rows, 10**9).blocks[0])["rows"]
    assert first["messages"][-1][2:] == [None, "truncated", "not trained"]
    assert first["rewards"] == rows[0]["rewards"]
    assert second["rewards"] is None, "the reward of the episode says it already"


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to run the page's script")
@pytest.mark.slow
def test_in_a_browser_a_search_goes_through_all_stages(
    example_store: Any, experiment: Any, tmp_path: Path
) -> None:
    """And an episode that it finds shows the reward of each turn."""
    for stage, number in (("expert", 3), ("eto.1.explore", 5)):
        path, rows = rows_of(example_store, stage)
        rows[number]["messages"][3]["content"] = f"Needle of {stage}"
        rows[number]["rewards"] = [0.25, *[0.0] * (rows[number]["turns"] - 1)]
        written(path, rows)
    page = render_page(collected(example_store, experiment), experiment, trajectories=5000)
    opened = f"eto.1.explore/{rows[5]['id']}"
    shown = in_browser(page, tmp_path, episodes_link("*", text="NEEDLE", open=opened))
    seen = Page(shown)
    text = " ".join(seen.text.split())
    assert "7 stages: 2 match; all of their 760 episodes are in this page." in text
    assert "agentturn 1reward 0.25Needle of eto.1.explore" in text
    assert "agentturn 2reward 0Thought" in text
    assert "Needle of expert" not in text, "the other one is closed"


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to run the page's script")
@pytest.mark.slow
def test_in_a_browser_a_link_opens_its_episode_and_foreign_text_stays_text(
    example_store: Any, experiment: Any, tmp_path: Path
) -> None:
    path, rows = rows_of(example_store, "expert")
    rows[70]["id"] = rows[70]["messages"][3]["content"] = HOSTILE
    rows[70]["end"] = rows[70]["error"] = HOSTILE
    written(path, rows)
    page = render_page(collected(example_store, experiment), experiment, trajectories=5000)
    shown = in_browser(page, tmp_path, episodes_link("expert", open=HOSTILE))
    seen = Page(shown)
    assert "expert: 120 match; all of its 120 episodes are in this page." in seen.text
    assert "page 6 of 10" in seen.text
    assert seen.text.count(HOSTILE) == 6, "id, message, error; end here, in filter and legend"
    assert "<title>quickstart: report</title>" in shown
    assert not any(tag == "img" for tag, _ in seen.tags)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to run the page's script")
@pytest.mark.slow
def test_in_a_browser_keys_move_and_the_address_follows(
    example_store: Any, experiment: Any, tmp_path: Path
) -> None:
    """Two policies beside each other: the tasks that decide come first; j and k walk through."""
    metrics = json.loads((example_store.inputs["results"][0] / "comparison.json").read_text())
    wanted = next(row for row in metrics["rows"] if row["name"] == "eto.2.evaluate")["difference"]
    steps = """
    const found = [];
    const named = (key) => location.hash.endsWith(`open=${encodeURIComponent(key)}`);
    for (const key of ["j", "j", "k", "j"]) {
      press(key);
      await until(() => opened().length === 1 && named(opened()[0]));
      found.push(opened()[0]);
    }
    const columns = document.querySelectorAll("details[open] .policy h4");
    document.title = JSON.stringify({found, hash: location.hash,
      columns: [...columns].map((each) => each.textContent)});
    """
    page = render_page(collected(example_store, experiment), experiment, trajectories=5000)
    page = re.sub("<meta http-equiv[^>]*>", "", page) + WAIT % steps
    policies = {"stage": "eto.2.evaluate:rollout", "against": "evaluate_sft:rollout"}
    shown = in_browser(page, tmp_path, episodes_link(**policies, moved="worse"))
    seen = Page(shown)
    counts = ", ".join(f"{wanted[word]} {word}" for word in ("better", "worse", "equal"))
    assert f"{counts} of {wanted['n']} common tasks, those that differ most first." in seen.text
    told = json.loads(re.findall("<title>(.*?)</title>", shown)[0].replace("&amp;", "&"))
    first, second, again, last = told["found"]
    assert first == again != second == last
    assert told["columns"] == ["evaluate_sft:rollout", "eto.2.evaluate:rollout"]
    assert "moved=worse" in told["hash"]
    assert "open=minecraft" in told["hash"]
