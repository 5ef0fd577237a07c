"""What a shown report says of its run: params, commit, spec; foreign text stays text."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentc.plan.work import find_work
from agentc.run.record import commit_of
from agentc.run.report_page import report_to_show, with_run_facts
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder, plans_folder

PAGE = (
    "<header><h1>x</h1></header>\n<nav>\n</nav>\n<main>\n<section>results</section>\n</main>"
    "<script>x</script>"
)
SPEC = "agentc: 1\n# <script>alert(1)</script> & more\n"


def made(tmp_path: Path, **more: Any) -> tuple[dict[str, Any], StoreLayout, Path]:
    """A plan without jobs, its spec beside it, and a page."""
    layout = StoreLayout(tmp_path / "store")
    document = {
        "name": "demo",
        "params": {"seed": 3, "task": "<b>"},
        "chosen": {"seed": 3},
        "spec": {"file": "demo.yaml", "sha256": hashlib.sha256(SPEC.encode()).hexdigest()},
        "jobs": [],
        "targets": [],
        "software": {},
        **more,
    }
    folder = RunFolder.of_plan(layout, document)
    folder.path.mkdir(parents=True)
    plan = plans_folder(layout) / folder.label
    plan.mkdir(parents=True)
    (plan / "demo.yaml").write_text(SPEC, encoding="utf-8")
    page = tmp_path / "page" / "index.html"
    page.parent.mkdir()
    page.write_text(PAGE, encoding="utf-8")
    state = {"began": 1_790_000_000.0, "commit": {"id": "a" * 40, "has_spec": False}}
    folder.state.write_text(json.dumps(state), encoding="utf-8")
    return document, layout, page


def test_links_to_logs_lead_from_the_shown_page(tmp_path: Path) -> None:
    """They are written for the page in the store, which lies elsewhere."""
    document, layout, page = made(tmp_path)
    log = layout.root / "objects" / "sft" / "key" / "logs" / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("x", encoding="utf-8")
    link = '<a href="../../../sft/key/logs/log.txt">log.txt</a>'
    page.write_text(PAGE.replace("results", link), encoding="utf-8")
    shown = report_to_show(page, find_work(document, layout))
    [address] = re.findall(r'<a href="([^"]*log.txt)"', shown.read_text("utf-8"))
    assert (shown.parent / address).resolve() == log.resolve()


def test_params_commit_and_spec_stand_in_the_page(tmp_path: Path) -> None:
    document, layout, page = made(tmp_path)
    for beside in ("tables.json", "sweep.json"):
        (page.parent / beside).write_text("{}", encoding="utf-8")
    shown = report_to_show(page, find_work(document, layout))
    assert shown == RunFolder.of(layout, "demo@seed=3").report
    text = shown.read_text(encoding="utf-8")
    assert "<dt>param seed</dt><dd>3 (chosen)</dd>" in text
    assert "<dt>param task</dt><dd>&lt;b&gt;</dd>" in text
    assert f"{'a' * 12}, the spec is not as in it" in text
    assert "2026-09-21" in text
    assert text.index("param seed") < text.index("</header>") < text.index('href="#spec"')
    assert "# &lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text
    assert text.index('id="spec-text"') < text.index("</main>")
    assert text.count("<script>") == 1
    assert page.read_text(encoding="utf-8") == PAGE, "the object stays as it is"


def test_a_sweep_says_its_axes(tmp_path: Path) -> None:
    cells = [f"sft@lr={lr},seed={seed}" for lr in ("1e-3", "2e-3") for seed in range(3)]
    jobs = [{"id": name} for name in ("base", *cells, f"{cells[0]}:rollout")]
    head = with_run_facts("", {"name": "demo", "jobs": jobs}, StoreLayout(tmp_path))
    assert "<dt>sweep of lr</dt><dd>1e-3, 2e-3</dd>" in head
    assert "<dt>sweep of seed</dt><dd>0, 1, 2</dd>" in head


def test_the_facts_join_those_of_the_page(tmp_path: Path) -> None:
    document, layout, page = made(tmp_path)
    page.write_text(PAGE.replace("</header>", "<dl><div>y</div></dl>\n</header>"), encoding="utf-8")
    text = report_to_show(page, find_work(document, layout)).read_text(encoding="utf-8")
    assert text.count("</dl>") == 1
    assert "<dl><div>y</div><div><dt>param seed</dt>" in text


def test_another_spec_beside_the_plan_is_not_shown(tmp_path: Path) -> None:
    document, layout, page = made(tmp_path, spec={"file": "demo.yaml", "sha256": "0" * 64})
    text = report_to_show(page, find_work(document, layout)).read_text(encoding="utf-8")
    assert "spec-text" not in text
    assert "#spec" not in text


def test_a_page_that_refers_to_files_beside_it_stays_where_it_is(tmp_path: Path) -> None:
    document, layout, page = made(tmp_path)
    (page.parent / "more.js").write_text("", encoding="utf-8")
    assert report_to_show(page, find_work(document, layout)) == page


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit_is_known_and_whether_it_has_the_spec(tmp_path: Path) -> None:
    spec = tmp_path / "demo.yaml"
    assert commit_of(spec) is None
    spec.write_text(SPEC, encoding="utf-8")

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    assert commit_of(spec) is None, "nothing is committed"
    (tmp_path / "other").write_text("x", encoding="utf-8")
    git("add", "other")
    git("commit", "-q", "-m", "one")
    assert commit_of(spec) == {"id": git("rev-parse", "HEAD"), "has_spec": False}
    git("add", "demo.yaml")
    git("commit", "-q", "-m", "two")
    assert commit_of(spec) == {"id": git("rev-parse", "HEAD"), "has_spec": True}
    spec.write_text(SPEC + "# more\n", encoding="utf-8")
    assert commit_of(spec) == {"id": git("rev-parse", "HEAD"), "has_spec": False}
