"""Puts the page together: the view model, the template, the inlined style and script.

Everything that comes from a spec or a model is data: the template escapes it, the script shows it
as text, and a content security policy lets no other script run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from agentc.result_tables import ResultTable
from agentc_backends.results.report import (
    browser,
    charts,
    claims,
    costs,
    exports,
    graph,
    origin,
    pages,
    runs,
    searches,
    sweep,
    tables,
    training,
    turns,
)
from agentc_backends.results.report.collect import Collection

_DRAWN = (
    "Checkpoint",
    "PolicyRun",
    "Trajectories",
    "SearchTrees",
    "SFTDataset",
    "PreferencePairs",
    "PrivilegedInformation",
    "CriticCheckpoint",
    "Candidates",
    "CandidateScores",
    "RewardedTurns",
    "Metrics",
    "Comparison",
    "Verdicts",
)
"""Types of artifacts with a colour of their own in the graph."""


def render_page(
    collection: Collection,
    experiment: Mapping[str, Any],
    *,
    trajectories: int,
    missing: Sequence[Mapping[str, Any]] = (),
    found: Sequence[ResultTable] | None = None,
) -> str:
    """The HTML of the report. `missing` are jobs without a result: {"id", "kind", "state"}; `found`
    are its tables, where they are known already."""
    if found is None:
        found = exports.result_tables(collection, experiment)
    script = "".join(map(_file, ("page.js", "episodes.js")))
    episodes = browser.episode_stages(collection, trajectories)
    jobs, servers = tables.jobs(collection), costs.servers(collection)
    blocks = episodes.pop("blocks")
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_file),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "change": _change,
        "chance": _chance,
        "moved": _moved,
        "tried": _tried,
        "duration": graph.duration,
        "number": _number,
        "percent": _percent,
        "moment": _moment,
        "count": _count,
    }
    environment.globals["episodes"] = browser.episodes_link
    template = environment.get_template("page.html.j2")
    return template.render(
        experiment=experiment,
        paper=_paper(experiment.get("paper") or {}),
        missing=missing,
        links=exports.download_links(found, str(experiment.get("name", "agentc"))),
        origin=origin.origin(collection, experiment),
        kept_models=tables.kept_models(collection),
        health=tables.health(collection),
        job_warnings=tables.job_warnings(collection),
        evaluations=tables.evaluations(collection),
        claims=claims.claim_tables(collection),
        sweeps=sweep.sweep_tables(collection, experiment),
        comparisons=tables.comparisons(collection),
        curves=charts.curve_charts(collection, experiment),
        runs=runs.run_charts(collection, experiment),
        searches=searches.searches(collection),
        revisions=searches.revisions(collection),
        mixtures=searches.mixtures(collection),
        hidden_texts=turns.hidden_texts(collection),
        sampled=turns.sampled(collection),
        ranked=turns.ranked(collection),
        turn_pairs=turns.turn_pairs(collection),
        training=training.training_charts(collection, experiment),
        distributions=[browser.rewards(n) for n in collection.of_type("Trajectories")],
        made_pages=pages.page_pictures(collection),
        graph=graph.draw_graph(collection),
        types=[kind for kind in _DRAWN if collection.of_type(kind)],
        jobs=jobs,
        servers=servers,
        totals=costs.totals([*jobs, *servers]),
        total_s=tables.total_seconds(collection),
        software=tables.software(collection),
        machines=tables.machines(collection),
        data=embedded_json(episodes),
        blocks=blocks,
        played=browser.played_by(collection),
        style=Markup(_file("style.css")),
        script=Markup(script),
        script_hash=_digest(script),
    )


def embedded_json(value: object) -> Markup:
    """JSON that is safe between <script type="application/json"> and </script>: no `<`, `>` or `&`
    is left in it, so no text can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _file(name: str) -> str:
    folder = resources.files("agentc_backends.results.report").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _paper(paper: Mapping[str, Any]) -> dict[str, Any]:
    """The paper's facts; only web addresses become links."""
    links = []
    arxiv, doi = paper.get("arxiv"), paper.get("doi")
    for label, address in (
        ("paper", paper.get("url")),
        ("arXiv", f"https://arxiv.org/abs/{arxiv}" if arxiv else None),
        ("DOI", f"https://doi.org/{doi}" if doi else None),
        ("code", paper.get("code")),
    ):
        if address and urlsplit(str(address)).scheme in ("http", "https"):
            links.append((label, str(address)))
    return {
        "title": paper.get("title"),
        "authors": ", ".join(map(str, paper.get("authors") or ())),
        "where": " ".join(str(paper[k]) for k in ("venue", "year") if paper.get(k)),
        "links": links,
    }


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _count(value: float | None) -> str:
    """A whole number with thin spaces between its thousands."""
    return "–" if value is None else f"{round(value):,}".replace(",", "\u202f")


def _change(difference: Mapping[str, Any]) -> str:
    """Up or down, where the test rejects no difference for all rows of the table together."""
    if difference["p_holm"] >= 1 - difference["confidence"]:
        return ""
    return "up" if difference["mean"] > 0 else "down"


def _chance(p: float) -> str:
    """A p-value with four digits; none is zero."""
    return _number(p, 4) if p >= 0.0001 else "< 0.0001"


def _moved(difference: Mapping[str, Any], graded: bool = True) -> list[tuple[str, str]]:
    """(sign, text): tasks by the sign of their difference, which is no grade where less is not
    worse."""
    signs = ("better", "worse", "equal")
    words = signs if graded else ("up", "down", "equal")
    return [(sign, f"{difference[sign]} {word}") for sign, word in zip(signs, words, strict=True)]


def _tried(row: Mapping[str, Any]) -> str:
    """Tasks, and how often each was tried; episodes beside them where that is no whole number."""
    tasks, episodes = row["n_tasks"], row["n"]
    if tasks and episodes % tasks == 0:
        return f"{tasks} × {episodes // tasks}"
    return f"{tasks} ({episodes} episodes)"


def _percent(value: float, low: float = 0.0, high: float = 1.0) -> str:
    """A place on a scale, as CSS wants it."""
    share = (value - low) / (high - low) if high > low else 0.0
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _moment(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
