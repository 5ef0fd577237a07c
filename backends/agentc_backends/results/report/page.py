"""Puts the page together: the view model, the template, the inlined style and script.

Everything that comes from a spec or a model is data: the template escapes it, the script shows it
as text, and a content security policy lets no other script run and nothing be loaded."""

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
from agentc.runtime.smoke import smoke_headline
from agentc_backends.results.report import (
    curves,
    drawings,
    episode_browser,
    evaluation_tables,
    exports,
    fact_tables,
    job_graph,
    job_tables,
    trained_tokens,
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
    script = "".join(map(_file, ("page.js", "charts.js", "episodes.js")))
    episodes = episode_browser.episode_stages(collection, trajectories)
    jobs, servers = job_tables.jobs(collection), job_tables.servers(collection)
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
        "duration": drawings.duration,
        "number": _number,
        "percent": _percent,
        "moment": _moment,
        "count": _count,
    }
    environment.globals["episodes"] = episode_browser.episodes_link
    template = environment.get_template("page.html.j2")
    return template.render(
        experiment=experiment,
        paper=_paper(experiment.get("paper") or {}),
        missing=missing,
        links=exports.download_links(found, str(experiment.get("name", "agentc"))),
        origin=origin(collection, experiment),
        unchanged_models=job_tables.unchanged_models(collection),
        health=job_tables.health(collection),
        smoke=smoke_headline(
            experiment.get("scale"),
            len(jobs),
            len(jobs) + len(missing),
            [node.manifest for node in collection.nodes],
        ),
        job_warnings=job_tables.job_warnings(collection),
        evaluations=evaluation_tables.evaluations(collection),
        claims=evaluation_tables.claim_tables(collection),
        sweeps=evaluation_tables.sweep_tables(collection, experiment),
        comparisons=evaluation_tables.comparisons(collection),
        curves=curves.curve_charts(collection, experiment),
        runs=curves.run_charts(collection, experiment),
        searches=fact_tables.searches(collection),
        revisions=fact_tables.revisions(collection),
        mixtures=fact_tables.mixtures(collection),
        hidden_texts=fact_tables.hidden_texts(collection),
        sampled=fact_tables.sampled(collection),
        ranked=fact_tables.ranked(collection),
        turn_pairs=fact_tables.turn_pairs(collection),
        training=curves.training_charts(collection, experiment),
        trained=trained_tokens.trained_rows(collection),
        distributions=[episode_browser.rewards(n) for n in collection.of_type("Trajectories")],
        made_pages=episode_browser.page_pictures(collection),
        graph=job_graph.draw_graph(collection),
        types=[kind for kind in _DRAWN if collection.of_type(kind)],
        jobs=jobs,
        servers=servers,
        totals=job_tables.totals([*jobs, *servers]),
        on_gpus=any(
            row[name] is not None
            for row in (*jobs, *servers)
            for name in ("gpu_hours", "gpu_memory_mb")
        ),
        total_s=job_tables.total_seconds(collection),
        software=job_tables.software(collection),
        machines=job_tables.machines(collection),
        data=embedded_json(episodes),
        blocks=blocks,
        played=episode_browser.played_by(collection),
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


# The header. What belongs to one run only (its params, the commit) is added by whoever shows the
# page, `agentc.run.report_page`.


def origin(collection: Collection, experiment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, text) of each fact that is known: scale, when, agentc's versions, hosts."""
    manifests = [node.manifest for node in collection.nodes]
    versions = {str(m["agentc"]) for m in manifests if m.get("agentc")}
    hosts = {str((m.get("hardware") or {}).get("host") or "") for m in manifests}
    facts = [
        ("scale", str(experiment.get("scale") or "full")),
        ("made", _when(manifests)),
        ("agentc", ", ".join(sorted(versions))),
        ("host", ", ".join(sorted(hosts - {""}))),
    ]
    return [(name, text) for name, text in facts if text]


def _when(manifests: list[Mapping[str, Any]]) -> str:
    """From the start of the first job to the end of the last one."""
    began = [float(m["started"]) for m in manifests if m.get("started") is not None]
    if not began:
        return ""
    ends = [
        float(m["started"]) + float(m.get("wall_s") or 0.0)
        for m in manifests
        if m.get("started") is not None
    ]
    first, last = (datetime.fromtimestamp(t, tz=timezone.utc) for t in (min(began), max(ends)))
    until = last.strftime("%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M")
    return f"{first:%Y-%m-%d %H:%M} to {until} UTC"
