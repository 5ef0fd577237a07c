"""The report: what is in it, that foreign text stays text, and that a browser agrees."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from tests.backends.report.conftest import EXPERIMENT, ExampleStore
from tests.support.patience import PATIENCE_S

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.results.report import exports, job_tables
from agentc_backends.results.report.collect import Collection, collect
from agentc_backends.results.report.curves import learning_curves
from agentc_backends.results.report.job_graph import draw_graph
from agentc_backends.results.report.page import embedded_json, render_page

MODULE = "agentc_backends.results.report.job_report"
HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror="alert(1)"><!--'
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Page(HTMLParser):
    """Elements and visible text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data = ""
        self.blocks: dict[str, str] = {}
        self._within = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            kind, place = (dict(attrs).get(name) for name in ("type", "id"))
            self._within = "data" if kind == "application/json" else f"block {place}"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "data":
            self.data += data
        elif self._within.startswith("block "):
            self.blocks[self._within[len("block ") :]] = data
        else:
            self.text += data

    def ids(self) -> set[str]:
        return {str(attrs["id"]) for _, attrs in self.tags if attrs.get("id")}


def collected(store: Any, experiment: dict[str, Any]) -> Collection:
    return collect(store.inputs, experiment["rounds"])


def rendered(store: Any, experiment: dict[str, Any], **rest: Any) -> Page:
    return Page(render_page(collected(store, experiment), experiment, trajectories=60, **rest))


def test_the_job_writes_a_page_that_the_contract_accepts(
    run_job: Any, example_store: Any, experiment: Any
) -> None:
    stages = list(example_store.inputs)
    config = {
        "experiment": experiment,
        "stages": stages,
        "trajectories": 20,
        "missing": [],
    }
    shuffled = {name: example_store.inputs[name] for name in sorted(stages)}
    done = run_job(MODULE, config, inputs=shuffled)
    assert done.code == 0, done.output
    check_artifact("Report", done.data, {}, {}, done.facts)
    assert done.facts["jobs"] == 18
    page = Page((done.data / "index.html").read_text("utf-8"))
    assert "Trial and Error" in page.text
    # Rows stand as in the spec, not as their names sort.
    assert page.text.index("evaluate_untrained") < page.text.index("eto.1.evaluate")
    assert "the published numbers were made with" in page.text


def test_nothing_is_loaded_and_every_link_inside_leads_somewhere(
    example_store: Any, experiment: Any
) -> None:
    page = rendered(example_store, experiment)
    stages = {stage["name"]: stage for stage in json.loads(page.data)["stages"]}
    followed: set[frozenset[str]] = set()
    linked: set[str] = set()
    logs = {os.path.realpath(path) for path in example_store.root.glob("objects/*/*/logs/*")}
    for tag, attributes in page.tags:
        assert "src" not in attributes
        assert tag != "link"
        target = attributes.get("href")
        if target and target.startswith("#trajectories&"):
            place, _, words = target[1:].partition("&")
            assert place in page.ids()
            wanted = dict(parse_qsl(words))
            stage = stages[wanted["stage"]]
            assert wanted.get("end", next(iter(stage["ends"]))) in stage["ends"]
            assert wanted.get("against", wanted["stage"]) in stages
            followed.add(frozenset(wanted))
        elif target and target.startswith("#"):
            assert target[1:] in page.ids(), target
        elif target and target.startswith("data:"):
            assert (tag, bool(attributes["download"])) == ("a", True)
        elif target and target.startswith("../"):
            # From `data/` of the report's own object.
            log = example_store.root / "objects" / "report" / "key" / "data" / target
            assert os.path.realpath(log) in logs
            linked.add(os.path.realpath(log))
        elif target:
            assert (tag, target.split(":")[0]) == ("a", "https")
    assert linked == logs
    words = ("stage",), ("stage", "end"), ("stage", "low", "high"), ("stage", "against", "moved")
    assert followed == set(map(frozenset, words))


def test_inner_jobs_of_evaluations_are_found_through_manifests(
    example_store: Any, experiment: Any
) -> None:
    collection = collected(example_store, experiment)
    names = [node.name for node in collection.nodes]
    assert "evaluate_sft:rollout" in names
    assert names.index("sft") < names.index("evaluate_sft:rollout") < names.index("evaluate_sft")


def test_a_job_within_a_stage_is_called_as_in_the_plan(example_store: Any) -> None:
    """Two jobs of one kind, one of which is no stage and was made by another experiment."""
    scores = example_store.add("older:reference", "rank", "CandidateScores", {}, stage=False)
    example_store.add("ranked", "rank", "RewardedTurns", {}, inputs={"scores": [scores]})
    names = [node.name for node in collect(example_store.inputs, []).nodes]
    assert names[-2:] == ["ranked:reference", "ranked"]


def test_the_learning_curve_follows_the_models(example_store: Any, experiment: Any) -> None:
    [chart] = learning_curves(collected(example_store, experiment))
    [line] = chart["lines"]
    assert [point["label"] for point in line] == ["base", "sft", "eto.1.dpo", "eto.2.dpo"]
    assert [point["evaluation"] for point in line][-1] == "eto.2.evaluate"


def test_results_show_intervals_and_errors(example_store: Any, experiment: Any) -> None:
    text = re.sub(r"\s+", " ", rendered(example_store, experiment).text)
    metrics = json.loads(
        (example_store.inputs["eto.2.evaluate"][0] / "metrics.json").read_text("utf-8")
    )
    reward = metrics["reward"]
    shown = f"{reward['mean']:.3f} [{reward['low']:.3f}, {reward['high']:.3f}]"
    assert shown in text
    assert metrics["n_error"] == 1


def test_the_header_says_scale_dates_versions_and_hosts(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    header = " ".join(rendered(example_store, experiment).text.split()).split("Results")[0]
    assert "scale full" in header.replace("scalefull", "scale full")
    assert "numbers mean nothing" not in header
    first = next(iter(example_store.inputs.values()))[0].parent / "artifact.json"
    manifest = json.loads(first.read_text("utf-8"))
    manifest |= {"agentc": "0.9.1", "started": 1_779_999_000.0}
    manifest["hardware"]["host"] = HOSTILE
    first.write_text(json.dumps(manifest), encoding="utf-8")
    page = rendered(example_store, {**experiment, "scale": "smoke"})
    header = " ".join(page.text.split()).split("Results")[0]
    assert "scale smoke" in header
    assert "smoke: 18 of 18 jobs of the real graph ran with base; numbers mean nothing" in header
    assert "2026-05-28 20:10 to 20:" in header
    assert "0.9.1" in header
    assert "box" in header
    assert HOSTILE in page.text


def test_versions_that_were_imported_come_first(example_store: Any, experiment: Any) -> None:
    """Older manifests say only what is installed; where programs or servers told, that is shown."""
    before = rendered(example_store, experiment)
    assert "3 packages · lock" in before.text
    assert "imported of" not in before.text
    path = next((example_store.root / "objects" / "rollout").glob("*/artifact.json"))
    manifest = json.loads(path.read_text())
    light = manifest["software"]
    light["imported"] = {"httpx2": "2.16.2"}
    manifest["leases"][0] |= {
        "environment": light["name"],
        "lock": light["lock"],
        "python": "3.11.7",
        "imported": {"starlette": "1.10.0"},
    }
    path.write_text(json.dumps(manifest))
    after = rendered(example_store, experiment)
    assert "2 packages imported of 3 packages · lock" in after.text
    assert "everything that is installed" in after.text


def test_hostile_text_is_shown_as_text_everywhere(example_store: Any, experiment: Any) -> None:
    [folder] = example_store.inputs["eto.1.explore"]
    path = folder / "trajectories.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows[0]["messages"][3]["content"] = HOSTILE
    rows[0]["id"] = rows[0]["end"] = HOSTILE
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    manifest_path = folder.parent / "artifact.json"
    manifest = json.loads(manifest_path.read_text("utf-8"))
    manifest["config"] = manifest["facts"] = {HOSTILE: HOSTILE}
    manifest_path.write_text(json.dumps(manifest), encoding="utf-8")
    hostile = {
        **experiment,
        "name": HOSTILE,
        "description": HOSTILE,
        "paper": {"title": HOSTILE, "url": "javascript:alert(1)", "code": 'https://x/"onclick="a'},
        "discrepancies": [dict.fromkeys(("what", "paper", "code", "chosen"), HOSTILE)],
    }
    example_store.inputs[HOSTILE] = example_store.inputs.pop("eto.1.explore")
    # A stage that trains: its name is in titles and attributes of charts.
    example_store.inputs[f"{HOSTILE} sft"] = example_store.inputs.pop("sft")
    missing = [{"id": HOSTILE, "kind": HOSTILE, "state": HOSTILE}]
    plain = rendered(example_store, experiment)
    page = rendered(example_store, hostile, missing=missing)
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert [a for a in scripts if "type" not in a] == [{}], "one script runs: the page's own"
    assert {t for t, _ in page.tags} <= {t for t, _ in plain.tags} | {"ul", "li"}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert not any("javascript" in str(a.get("href")) for _, a in page.tags)
    data = json.loads(page.data)
    assert HOSTILE in [stage["name"] for stage in data["stages"]]
    assert "<" not in page.data
    packed = [text for name, text in page.blocks.items() if name != "None"]
    assert packed
    assert not any(re.search(r"[^A-Za-z0-9+/=]", text) for text in packed)


def test_embedded_json_survives_the_round_trip() -> None:
    value = {"a": [HOSTILE, "\u2028 é 😀 \\u003c", None, 1.5], "<k>": "&amp;"}
    text = str(embedded_json(value))
    assert json.loads(text) == value
    assert not set("<>&\u2028") & set(text)


def test_a_part_of_a_run_renders_with_what_is_missing(example_store: Any, experiment: Any) -> None:
    for stage in list(example_store.inputs):
        if stage not in ("expert", "base"):
            del example_store.inputs[stage]
    missing = [{"id": "sft", "kind": "sft", "state": "running, 3/90 steps"}]
    page = rendered(example_store, experiment, missing=missing)
    assert "1 of 3 jobs have no result yet" in page.text
    assert "running, 3/90 steps" in page.text
    assert "results" not in page.ids()


def test_the_same_store_gives_the_same_page(example_store: Any, experiment: Any) -> None:
    pages = {
        render_page(collected(example_store, experiment), experiment, trajectories=5)
        for _ in range(2)
    }
    assert len(pages) == 1


def test_the_page_says_where_large_differences_could_be_unseen(
    example_store: Any, experiment: Any
) -> None:
    path = example_store.inputs["results"][0] / "comparison.json"
    table = json.loads(path.read_text("utf-8"))
    made = next(row for row in table["rows"] if row["difference"] is not None)
    made["difference"]["if_unseen"] = {"furthest": 0.125, "low": -0.5, "high": 0.75, "p_value": 0.2}
    path.write_text(json.dumps(table), encoding="utf-8")
    page = render_page(collected(example_store, experiment), experiment, trajectories=60)
    assert f"No task of {made['name']} moved by more than 0.125" in page
    assert "p is 0.2000 and the interval [−0.500, 0.750]" in page


def said_in_a_browser(page: str, script: str, window: str, folder: Path) -> int:
    """The number that a script puts into the title of the page in a window of a size."""
    page = re.sub("<meta http-equiv[^>]*>", "", page)
    target = folder / "index.html"
    target.write_text(f"{page}<script>{script}</script>", encoding="utf-8")
    assert CHROMIUM is not None
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={window}"]
    shown = subprocess.run(
        [CHROMIUM, *words, f"--user-data-dir={folder}/profile", "--dump-dom", target.as_uri()],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    ).stdout
    return int(re.findall("<title>(.*?)</title>", shown)[0])


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to lay the page out")
@pytest.mark.parametrize("window", ["500,844", "1440,900"])
def test_results_begin_on_the_first_screen(
    window: str, example_store: Any, experiment: dict[str, Any], tmp_path: Path
) -> None:
    """Under a long description and a header with all facts; a window has 500 pixels at least."""
    told = {**experiment, "description": "What is tried, on what, and how it is judged. " * 6}
    page = render_page(collected(example_store, told), told, trajectories=60)
    facts = "".join(f"<div><dt>param {n}</dt><dd>value {n}</dd></div>" for n in range(4))
    page, counted = re.subn(r"</dl>\s*</header>", f"{facts}</dl></header>", page)
    assert counted == 1
    row = "document.querySelector('#results tbody tr')"
    script = f"document.title = Math.round({row}.getBoundingClientRect().bottom)"
    below = said_in_a_browser(page, script, window, tmp_path)
    assert below < 0.9 * int(window.split(",")[1])


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to lay the page out")
def test_in_a_browser_the_table_of_a_comparison_is_as_wide_as_the_page(
    example_store: Any, experiment: Any, tmp_path: Path
) -> None:
    """With Holm's p-values and counts of two digits; no p is shown as zero."""
    path = example_store.inputs["results"][0] / "comparison.json"
    table = json.loads(path.read_text("utf-8"))
    made = next(row for row in table["rows"] if row["difference"] is not None)
    told = {"mean": -0.284, "low": -0.422, "high": -0.178, "confidence": 0.95, "few": True}
    told |= {"p_value": 0.0, "p_holm": 0.0, "better": 10, "worse": 11, "equal": 130}
    table["rows"] = [
        {**made, "name": name, "n": 302, "n_tasks": 151, "difference": told if differs else None}
        for name, differs in (("evaluate_untrained", 1), ("evaluate_sft", 0), ("eto.1.evaluate", 1))
    ]
    path.write_text(json.dumps(table), encoding="utf-8")
    page = render_page(collected(example_store, experiment), experiment, trajectories=60)
    assert page.count("&lt; 0.0001") == 4
    measure = "e => e.scrollWidth - e.clientWidth"
    script = f"document.title = [...document.querySelectorAll('.scroll')].map({measure})[0]"
    beyond = said_in_a_browser(page, script, "1440,900", tmp_path)
    assert beyond < 60, "pixels; fonts differ by a few"


def test_a_row_without_a_common_task_is_not_shown_as_the_baseline(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    path = example_store.inputs["results"][0] / "comparison.json"
    table = json.loads(path.read_text("utf-8"))
    assert table["rows"][0]["name"] != table["baseline"]
    table["rows"][0] |= {"difference": None, "success_difference": None}
    path.write_text(json.dumps(table), encoding="utf-8")
    text = rendered(example_store, experiment).text
    assert text.count("no common task") == 1


def test_a_model_that_was_not_trained_is_named(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    assert "not trained" not in rendered(example_store, experiment).text
    manifest = example_store.inputs["eto.2.dpo"][0].parent / "artifact.json"
    value = json.loads(manifest.read_text("utf-8"))
    value["facts"] = {"kept_model": True, "kept_because": "no rows to train on", "steps": 0}
    manifest.write_text(json.dumps(value), encoding="utf-8")
    page = rendered(example_store, experiment)
    assert "Models that were not trained" in page.text
    assert "eto.2.dpo: no rows to train on" in " ".join(page.text.split())
    assert "kept" in page.ids()


def test_what_jobs_warned_of_is_told(example_store: Any, experiment: dict[str, Any]) -> None:
    assert "warnings" not in rendered(example_store, experiment).ids()
    manifest = example_store.inputs["eto.2.dpo"][0].parent / "artifact.json"
    value = json.loads(manifest.read_text("utf-8"))
    value["facts"] = {"warnings": ["the server differs <by> 0.05"]}
    manifest.write_text(json.dumps(value), encoding="utf-8")
    page = rendered(example_store, experiment)
    assert "warnings" in page.ids()
    assert "eto.2.dpo: the server differs <by> 0.05" in " ".join(page.text.split())


def test_stages_that_learned_nothing_are_at_the_top(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    manifest = example_store.inputs["eto.2.dpo"][0].parent / "artifact.json"
    value = json.loads(manifest.read_text("utf-8"))
    value["facts"] = {"unchanged": True, "steps": 9, "identical": 3, "rows": 3}
    manifest.write_text(json.dumps(value), encoding="utf-8")
    page = rendered(example_store, experiment)
    assert "health" in page.ids()
    text = " ".join(page.text.split())
    assert "eto.2.dpo: the policy is equal to its start: no weight changed in 9 steps;" in text
    assert "eto.2.dpo: identical pairs: both sides of 3 of 3 pairs are the same tokens;" in text
    assert text.index("Health") < text.index("Results")


def test_rounds_are_framed_in_the_graph(example_store: Any) -> None:
    example_store.add("tune.1.sft@seed=0,a=b.1.c", "sft", "Checkpoint", {})
    rounds = [{"round": 1, "stages": ["tune.1.sft@seed=0,a=b.1.c"]}]
    for number in (1, 2):
        stages = [f"eto.{number}.{name}" for name in ("explore", "pairs", "dpo", "evaluate")]
        rounds.append({"round": number, "stages": stages})
    drawn = draw_graph(collect(example_store.inputs, rounds))
    assert drawn is not None
    titles = re.findall(r'class="frame-title"[^>]*>([^<]*)<', drawn)
    assert sorted(titles) == ["eto, round 1", "eto, round 2", "seed=0,a=b.1.c: tune, round 1"]
    names = re.findall(r'class="name"[^>]*>([^<]*)<', drawn)
    assert names.count("dpo") == 2
    assert names.count("evaluate:rollout") == 2
    assert names.count("sft") == 2, "one of them in a frame"


def test_a_finding_of_several_cells_is_one_line(example_store: Any, experiment: Any) -> None:
    made = [
        example_store.add(
            f"tune@seed={seed}",
            "dpo",
            "Checkpoint",
            {},
            facts={"unchanged": True, "steps": 5 + seed},
        )
        for seed in range(3)
    ]
    example_store.add("tune", "dpo", "Checkpoint", {}, facts={"unchanged": True, "steps": 1})
    [swept, other] = job_tables.health(collected(example_store, experiment))
    assert swept["what"] == "the policy is equal to its start: no weight changed in 5 steps"
    places = [f"job-{name.replace('/', '-')}" for name in made]
    assert swept["also"] == [("seed=1", places[1]), ("seed=2", places[2])]
    assert (other["name"], other["also"]) == ("tune", [])


def test_settings_are_shown_as_yaml_and_jobs_once(example_store: Any, experiment: Any) -> None:
    path = example_store.inputs["sft"][0].parent / "artifact.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["identity"]["settings"] = {"packing": True, "limit": None, "stop": ["\n", False]}
    path.write_text(json.dumps(manifest), encoding="utf-8")
    (path.parent / "logs" / "log.txt").write_text("", encoding="utf-8")
    page = rendered(example_store, experiment)
    rows = job_tables.jobs(collected(example_store, experiment))
    [row] = [row for row in rows if row["name"] == "sft"]
    assert row["settings"] == [("packing", "true"), ("limit", "null"), ("stop", '["\\n", false]')]
    assert [name for name, _ in row["logs"]] == ["steps.jsonl"], "an empty log is no link"
    jobs = [a for tag, a in page.tags if tag == "details" and a.get("class") == "job"]
    assert len([a for a in jobs if str(a.get("id", "")).startswith("job-")]) == 18
    assert page.text.split("Jobs")[-1].count("eto.2.dpo ") == 1


def test_best_of_k_and_loops_stand_in_the_tables(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    known = {
        "mean": 0.875,
        "low": 0.8,
        "high": 0.9,
        "confidence": 0.95,
        "n": 100,
        "method": "score",
    }
    path = example_store.inputs["eto.2.evaluate"][0] / "metrics.json"
    metrics = json.loads(path.read_text("utf-8"))
    metrics |= {"best_of": [10], "repeats": {"1": 2.5, "3": 0.25}}
    metrics["asked"] = {"best_of(10)": known, "pass_at(10)": known, "loops": known}
    path.write_text(json.dumps(metrics), encoding="utf-8")
    path = example_store.inputs["results"][0] / "comparison.json"
    table = json.loads(path.read_text("utf-8"))
    won = {**known, "wins": 80, "ties": 15, "losses": 5}
    table["rows"][-1] |= {"loops": known, "loops_difference": None, "wins": won}
    path.write_text(json.dumps(table), encoding="utf-8")
    text = " ".join(rendered(example_store, experiment).text.split())
    assert "eto.2.evaluate, best of 10 0.875 [0.800, 0.900]" in text
    assert "1: 2.50, 3: 0.25" in text
    assert "difference of loops" in text
    assert "0.875 [0.800, 0.900] 80, 15, 5" in text


def test_a_shared_server_has_a_row_for_all_of_its_clients(tmp_path: Path) -> None:
    """Jobs that lease a server of `scope: shared` name it; its process is none of theirs."""
    store = ExampleStore(tmp_path)
    lease = {"role": "policy", "backend": "serve.vllm", "scope": "shared", "server": "big",
             "hardware": {"gpus_given": ["0", "1"]}}  # fmt: skip
    for number, name in enumerate(("explore", "again")):
        made = store.add(name, "rollout", "Trajectories", {}, wall_s=1800.0)
        path = store.root / "objects" / made / "artifact.json"
        manifest = json.loads(path.read_text())
        manifest |= {"leases": [lease], "started": 1000.0 + 1800.0 * number}
        path.write_text(json.dumps(manifest))
    (server,) = job_tables.servers(collect(store.inputs, ()))
    assert server["name"] == "policy server of explore, again, shared"
    assert (server["kind"], server["backend"]) == ("server", "serve.vllm")
    assert (server["wall_s"], server["gpu_hours"], server["cpu_s"]) == (3600.0, 2.0, None)


def test_servers_are_counted_beside_their_clients(tmp_path: Path) -> None:
    """A model server works while its clients wait: its time, memory and GPUs are its own row."""
    store = ExampleStore(tmp_path)
    facts = {"prompt_tokens": 900, "completion_tokens": 40}
    clients = [
        store.add(name, "rollout", "Trajectories", {}, facts=facts, wall_s=10.0)
        for name in ("explore", "again")
    ]
    folder = store.root / "objects" / "session" / "shared"
    folder.mkdir(parents=True)
    lease = {"role": "policy", "backend": "serve.transformers", "ready_s": 4.2}
    lease |= {"gpu": {"max_memory_mb": 2048.0, "max_reserved_mb": 3000.0}}
    session = {
        "kind": "session", "type": "Session", "wall_s": 3600.0, "started": 1.0,
        "members": {name: name for name in clients}, "hardware": {"gpus_given": ["0", "1"]},
        "leases": [{**lease, "copies": [{"cpu_s": 20.0, "max_rss_mb": 900.0},
                                        {"cpu_s": 22.0, "max_rss_mb": 800.0}]}],
    }  # fmt: skip
    (folder / "artifact.json").write_text(json.dumps(session))
    collection = collect(store.inputs, ())
    (server,) = job_tables.servers(collection)
    assert (server["cpu_s"], server["max_rss_mb"], server["gpu_hours"]) == (42.0, 900.0, 2.0)
    assert server["name"] == "policy server of explore, again"
    assert server["gpu_memory_mb"] == 2048.0
    assert "2.0 GiB" in render_page(collection, EXPERIMENT, trajectories=5)
    rows = [*job_tables.jobs(collection), server]
    assert job_tables.totals(rows)["tokens_in"] == 1800
    assert job_tables.totals(rows)["cpu_s"] == 2 * 16.0 + 42.0
    exported = exports.result_tables(collection, {})[-1]
    assert ("policy server of explore, again", "server", 3600.0) in [
        tuple(row[:3]) for row in exported.rows
    ]
