"""Claims and discrepancies in a report: numbers as the paper prints them, marks on one scale."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from agentc_backends.results.report.collect import collect
from agentc_backends.results.report.page import render_page
from agentc_backends.results.verdicts.claims import judge_all
from agentc_backends.results.verdicts.rules import VerdictRules

HOSTILE = '"><script>document.title="owned"</script>'


class Text(HTMLParser):
    """The visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.scripts = 0
        self._within = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script" and "type" not in dict(attrs)
        self._within = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._within = False

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)


def claim(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "what": "ETO with a small Llama",
        "table": "Table 2, row ETO",
        "stage": "here",
        "difference_from": None,
        "metric": "success",
        "relation": "value",
        "value": 0.674,
        "tolerance": None,
        "n": 200,
        "seeds": None,
        "bounds": [0.0, 1.0],
        "percent": True,
        "gate": False,
        **changes,
    }


def page(store: Any, experiment: dict[str, Any], *claims: dict[str, Any], scale: Any = None) -> str:
    tasks = {str(n): {"success": float(n < 40), "attempts": 1} for n in range(100)}
    judged = judge_all(
        claims, {"here": {"tasks": tasks}}, VerdictRules(confidence=0.95, power=0.8), scale
    )
    document = {"claims": judged, "confidence": 0.95, "power": 0.8, "scale": scale}
    store.add("claims", "verdicts", "Verdicts", {"claims.json": json.dumps(document)})
    collection = collect(store.inputs, experiment["rounds"])
    return render_page(collection, experiment, trajectories=2)


def test_claims_are_shown_as_the_paper_prints_them(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    html = page(
        example_store,
        experiment,
        claim("far", gate=True, seeds=3),
        claim("side", relation="above", value=0.2, n=None, percent=False, table=None),
    )
    text = Text(html).text
    assert "ETO with a small Llama Table 2, row ETO · success of here · mean of 3 runs" in text
    assert re.search(r"paper 67\.4 \[60\.6, 73\.6\] n=200", text)
    assert re.search(r"here 40\.0 \[30\.8, 49\.9\] n=100", text)
    assert "not reproduced gate further apart" in text
    assert "paper above 0.200 here 0.400" in text
    assert "supported the entire 95% CI is above the claimed value" in text
    assert 'href="#claims"' in html


def test_marks_of_paper_and_here_share_a_scale(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    html = page(example_store, experiment, claim("far"))
    places = [float(found) for found in re.findall(r'class="point" style="left:([\d.]+)%', html)]
    paper, here = places
    assert 0 < here < paper < 100
    bands = re.findall(r'class="band" style="left:([\d.]+)%;right:calc\(100% - ([\d.]+)%\)', html)
    assert len(set(bands)) == 1
    low, high = map(float, bands[0])
    assert low < paper < high


@pytest.mark.parametrize("scale", ["smoke", HOSTILE])
def test_a_reduced_scale_is_said(
    scale: str, example_store: Any, experiment: dict[str, Any]
) -> None:
    html = page(example_store, experiment, claim("main", what=HOSTILE, table=HOSTILE), scale=scale)
    found = Text(html)
    assert f"Nothing is judged at the reduced scale {scale}" in found.text
    assert "not judged" in found.text
    assert found.scripts == 1, "the page's own code; data has a type"
    assert HOSTILE not in html


def test_a_claim_without_scores_is_shown(example_store: Any, experiment: dict[str, Any]) -> None:
    none = claim("main", difference_from="here", relation="above", value=0.0, n=None)
    lost = {"a": {"success": None, "attempts": 0}}
    [judged] = judge_all(
        [none], {"here": {"tasks": lost}}, VerdictRules(confidence=0.95, power=0.8), None
    )
    document = {"claims": [judged], "confidence": 0.95, "power": 0.8, "scale": None}
    example_store.add("claims", "verdicts", "Verdicts", {"claims.json": json.dumps(document)})
    collection = collect(example_store.inputs, experiment["rounds"])
    text = Text(render_page(collection, experiment, trajectories=2)).text
    assert "no score" in text
    assert "no task has a score" in text


def test_a_verdict_where_nothing_moved_looks_like_no_finding(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    """By a policy that plays as its baseline does, `no worse than` it is supported."""
    alike = {
        "difference_from": "here", "relation": "above", "value": -0.5, "n": None,
        "bounds": [-1.0, 1.0],
    }  # fmt: skip
    html = page(example_store, experiment, claim("alike", **alike))
    assert html.count('<span class="verdict none">supported, nothing moved</span>') == 2
    assert 'class="verdict good"' not in html


def test_discrepancies_are_a_table(example_store: Any, experiment: dict[str, Any]) -> None:
    collection = collect(example_store.inputs, experiment["rounds"])
    html = render_page(collection, experiment, trajectories=2)
    text = Text(html).text
    assert "learning rate of SFT 1e-5 2e-5 the code's" in text
    assert 'href="#discrepancies"' in html
    assert 'id="claims"' not in html


def test_a_bound_and_an_open_end_are_shown_as_such(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    def run(after: int) -> dict[str, Any]:
        rows = [
            {
                "trajectories": 50 * (at + 1),
                "return": {"mean": -20.0 if at < after else -10.0, "sd": 1.0, "n": 50},
            }
            for at in range(20)
        ]
        return {"curve": rows}

    common = {"metric": "trajectories_to", "reach": -17, "percent": False, "n": None, "table": None}
    claims = [
        claim("share", **common, relation="below", value=0.5, difference_from="slow"),
        claim("alone", **common, relation="above", value=500, stage="slow"),
    ]
    judged = judge_all(
        claims, {"here": run(4), "slow": run(20)}, VerdictRules(confidence=0.95, power=0.8), None
    )
    document = {"claims": judged, "confidence": 0.95, "power": 0.8, "scale": None}
    example_store.add("claims", "verdicts", "Verdicts", {"claims.json": json.dumps(document)})
    collection = collect(example_store.inputs, experiment["rounds"])
    text = Text(render_page(collection, experiment, trajectories=2)).text
    assert "trajectories_to of here / slow, return of -17" in text
    assert "measured ≤ 0.250 [0.000, 0.250] 1 run" in text
    assert "measured ≥ 1000 [1000, open] 1 run" in text
