"""The graph of stages: what is a node, what is drawn, and what is written down."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.support.patience import PATIENCE_S
from toy_plan import job, plan

from agentc.cli import main
from agentc.graph.stages import StageGraph, stage_graph
from agentc.graph.svg import fitted, page_text, svg_text, text_width
from agentc.graph.text import MOST_EDGES, dot_text, graph_text, mermaid_text
from agentc.plan.job import Job, Plan
from agentc.plan.render import plan_document
from agentc.plan.review import review_plan
from agentc.plan.work import find_work
from agentc.runtime.store.layout import StoreLayout

SPEC = Path(__file__).parents[1] / "plan" / "rounds.yaml"
DRAWN = Path(__file__).parent / "quickstart.mmd"
"""specs/quickstart.yaml in Mermaid's language; AGENTC_UPDATE=1 writes it anew."""


def graph_of(made: Plan, every: bool = False) -> StageGraph:
    work = find_work(plan_document(made), StoreLayout("/nonexistent"))
    return stage_graph(review_plan(work, None), every=every)


def rounds(count: int) -> Plan:
    jobs: list[Job] = [job("base", "model")]
    before = "base"
    for number in range(1, count + 1):
        name = f"eto.{number}"
        jobs.append(job(f"{name}.explore", "rollout", served=before, round=number))
        jobs.append(job(f"{name}.dpo", "dpo", data=[f"{name}.explore"], round=number))
        before = f"{name}.dpo"
    inputs = {one.id: [one.id] for one in jobs}
    return plan(*jobs, job("report", "report", **inputs))


def test_jobs_of_a_stage_are_one_node() -> None:
    made = plan(
        job("base", "model"),
        job("scores:rollout", "rollout", served="base"),
        job("scores", "evaluate", of=["scores:rollout"]),
    )
    graph = graph_of(made)
    assert [node.id for node in graph.nodes] == ["base", "scores"]
    assert graph.edges == (("base", "scores"),)
    assert graph.nodes[1].key == made.by_id()["scores"].key[:8]
    assert graph.nodes[1].note == "2 jobs"


def test_rounds_are_groups_with_short_names() -> None:
    graph = graph_of(rounds(2))
    assert {(n.label, n.group) for n in graph.nodes if n.group} == {
        (label, f"eto, round {n}") for label in ("explore", "dpo") for n in (1, 2)
    }


def test_a_reader_of_everything_hangs_below_what_leads_to_it() -> None:
    graph = graph_of(rounds(3))
    assert [edge for edge in graph.edges if edge[1] == "report"] == [("eto.3.dpo", "report")]
    assert len(graph.reads["report"]) == 7, "what it reads is still told"


def test_repeating_rounds_are_one_node() -> None:
    graph, every = graph_of(rounds(50)), graph_of(rounds(50), every=True)
    assert len(every.nodes) == 102
    folded = [node for node in graph.nodes if not node.backend]
    assert len(graph.nodes) < 10
    assert len(folded) == 1
    assert folded[0].label == "eto, rounds 2 to 50"
    assert ("eto.1.dpo", folded[0].id) in graph.edges


def evaluations(count: int) -> Plan:
    """So many trainings, an evaluation of each, and a table of them."""
    jobs = [job("base", "model")]
    for number in range(1, count + 1):
        jobs.append(job(f"dpo_{number}", "dpo", model=["base"]))
        jobs.append(job(f"test_{number}", "evaluate", served=f"dpo_{number}"))
    names = [one.id for one in jobs if one.id.startswith("test_")]
    results = job("results", "compare", of=names)
    inputs = {one.id: [one.id] for one in (*jobs, results)}
    return plan(*jobs, results, job("report", "report", **inputs))


def test_many_evaluations_of_one_table_are_one_node_of_a_picture() -> None:
    work = find_work(plan_document(evaluations(7)), StoreLayout("/nonexistent"))
    review = review_plan(work, None)
    graph = stage_graph(review, picture=True)
    (joined,) = [node for node in graph.nodes if node.kind == "evaluate"]
    assert (joined.label, joined.note) == ("7 evaluations", "test_1 to test_7")
    assert len(graph.nodes) == 1 + 7 + 1 + 2
    into = [source for source, target in graph.edges if target == joined.id]
    assert into == [f"dpo_{number}" for number in range(1, 8)]
    assert (joined.id, "results") in graph.edges
    assert "7 evaluations" in svg_text(graph, "head")
    for every in (stage_graph(review, picture=True, every=True), stage_graph(review)):
        assert len([node for node in every.nodes if node.kind == "evaluate"]) == 7
    few = find_work(plan_document(evaluations(6)), StoreLayout("/nonexistent"))
    found = stage_graph(review_plan(few, None), picture=True).nodes
    assert len([node for node in found if node.kind == "evaluate"]) == 6


NASTY = plan(job('a<b>&"c"', "sft"), job("x", "sft", data=['a<b>&"c"']))


@pytest.mark.parametrize("made", [rounds(3), NASTY, plan()])
def test_what_is_written_is_well_formed_and_alone(made: Plan) -> None:
    graph = graph_of(made)
    svg = svg_text(graph, 'head & "line"')
    root = ElementTree.fromstring(svg)
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {node.label for node in graph.nodes} <= texts
    page = page_text(graph, "headline")
    for text in (svg, page):
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "<script" not in text
    body = page[page.index("<html") :].replace('<meta charset="utf-8">', "")
    body = body.replace('initial-scale=1">', 'initial-scale=1"/>')
    ElementTree.fromstring(body)


def test_text_and_dot_name_every_stage_and_edge() -> None:
    graph = graph_of(rounds(2))
    text = graph_text(graph, "head")
    assert "dpo" in text
    assert "<- base" in text
    assert "<- explore" in text, "inside a round its own names"
    dot = dot_text(graph)
    assert dot.count(" -> ") == len(graph.edges)
    assert dot.count("subgraph") == 2
    assert dot.count("{") == dot.count("}")
    assert r"\"c\"" in dot_text(graph_of(NASTY))


def test_mermaid_names_every_stage_and_edge() -> None:
    graph = graph_of(rounds(2))
    drawn = mermaid_text(graph)
    assert drawn.startswith("---\ntitle: ")
    assert drawn.count(" --> ") == len(graph.edges)
    assert drawn.count('"]:::run\n') == len(graph.nodes)
    assert re.findall(r"^  subgraph (\w+)\[(.*)\]$", drawn, re.MULTILINE) == [
        ("g1", '"eto, round 1"'),
        ("g2", '"eto, round 2"'),
    ]
    assert drawn.count("\n  end\n") == 2
    assert re.findall("classDef (.*) stroke", drawn) == ["run"]
    assert mermaid_text(graph_of(plan())).splitlines()[-1] == "flowchart TD"


def test_mermaid_gets_no_character_that_means_something_to_it() -> None:
    names = ['a<b>&"c"', "`end`", "%%{init={}}%%", "#35;", "x[y]{z}|;\\", "é 模型"]
    made = plan(*(job(name, "sft") for name in names))
    labels = re.findall(r'^  s\d+\["(.*?)<br>', mermaid_text(graph_of(made)), re.MULTILINE)
    assert [re.sub(r"#(\d+);", lambda code: chr(int(code[1])), label) for label in labels] == names
    for label in labels:
        assert not set(re.sub(r"#\d+;", "", label)) & set('<>&"`%{}[]|;:#\\')


def test_the_quickstart_in_mermaid(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "drawn.mmd"
    spec, store = repository / "specs" / "quickstart.yaml", tmp_path / "store"
    assert main(["graph", str(spec), "--store", str(store), "-o", str(file)]) == 0
    if os.environ.get("AGENTC_UPDATE") == "1":
        DRAWN.write_text(file.read_text())
    assert file.read_text() == DRAWN.read_text()


def test_mermaid_is_not_given_more_arrows_than_it_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for count, code in ((70, 0), (71, 2)):
        words = ["graph", str(SPEC), "-p", f"rounds={count}", "--all", "--format", "mermaid"]
        assert main([*words, "--store", str(tmp_path / "s")]) == code
        shown = capsys.readouterr()
        assert shown.out.count(" --> ") == (0 if code else MOST_EDGES - 4)
    assert "503 arrows are too many for Mermaid" in shown.err


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str | Path) -> tuple[int, str, str]:
        code = main(["graph", str(SPEC), "--store", str(tmp_path / "s"), *map(str, words)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    code, out, _ = run()
    assert code == 0
    assert "eto, round 2" in out
    for ending, start in (
        (".svg", "<svg"),
        (".html", "<!doctype"),
        (".dot", "digraph"),
        (".mmd", "---\ntitle"),
    ):
        file = tmp_path / f"picture{ending}"
        assert run("-o", file)[0] == 0
        assert file.read_text().startswith(start)
    assert run("--format", "svg")[1] == (tmp_path / "picture.svg").read_text()
    code, _, err = run("-o", tmp_path / "no" / "picture.svg")
    assert (code, "cannot write" in err) == (2, True)
    for ending in (".pdf", ".png"):  # text under such a name would open nowhere
        code, _, err = run("-o", tmp_path / f"picture{ending}")
        assert (code, f"cannot be written as `{ending}`" in err) == (2, True)
        assert not (tmp_path / f"picture{ending}").exists()
    assert run("-o", tmp_path / "picture.PDF", "--format", "dot")[0] == 0
    code, _, err = run("-p", "rounds=200", "--all", "--format", "svg")
    assert (code, "too many for a picture" in err) == (2, True)
    assert run("-p", "rounds=200", "--format", "svg")[0] == 0


def test_the_same_picture_everywhere(tmp_path: Path) -> None:
    code = "import sys; from agentc.cli import main; sys.exit(main())"
    pictures = {
        subprocess.run(
            [sys.executable, "-c", code, "graph", str(SPEC), "--format", "html"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        ).stdout
        for seed in ("0", "77")
    }
    assert len(pictures) == 1


def test_no_label_runs_into_the_state() -> None:
    """The widths are those of a real font, DejaVu Sans Bold; the labels are of wide letters."""
    names = ["evaluate_backend_summed_up", "W" * 30, "m" * 24, "ill" * 12]
    drawn = svg_text(graph_of(plan(*(job(name, "model") for name in names))), "headline")
    seen = 0
    for box in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}g"):
        texts = list(box.findall("{http://www.w3.org/2000/svg}text"))
        if len(texts) != 3:
            continue
        name, _, state = texts
        end = float(name.get("x", "")) + text_width(name.text or "", 13, bold=True)
        begin = float(state.get("x", "")) - text_width(state.text or "", 11)
        assert end + 5 < begin, name.text
        seen += 1
    assert seen == len(names)
    assert fitted("short", 200, 13) == "short"
    assert fitted("W" * 30, 100, 13, bold=True) == "WWW…WWW"
