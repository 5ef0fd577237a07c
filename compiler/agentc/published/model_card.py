"""A model card from what the store knows: manifests, evaluations with intervals, verdicts.

Nothing in it is typed by hand, so nothing in it can differ from what was run. `agentc push`
(`agentc.cli.push`) gathers the facts and writes the folder.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from agentc.run.claims import render_verdicts
from agentc.store.objects import Lineage, seeds_of
from agentc.text import aligned

_METRIC_KEYS = {"mean", "low", "high", "n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardEvaluation:
    """An evaluation of the model: the stage's id and its metrics.json."""

    stage: str
    metrics: Mapping[str, Any]

    def intervals(self) -> dict[str, Mapping[str, Any]]:
        """Metrics that are means with an interval, by name."""
        return {
            name: value
            for name, value in self.metrics.items()
            if isinstance(value, Mapping) and value.keys() >= _METRIC_KEYS
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What a card says. `stage` is what the run calls the model's job (another run may have made
    it, as another cell); `experiment` is that of the plan; `spec` the text of the spec and `commit`
    that of the folder it lies in, where they are at hand; `rerun` are the words of the command that
    makes the model again."""

    repository: str
    stage: str
    lineage: Lineage
    evaluations: Sequence[CardEvaluation]
    experiment: Mapping[str, Any]
    rerun: Sequence[str]
    spec_name: str
    spec_sha256: str
    verdicts: Mapping[str, Any] | None = None
    spec: str | None = None
    commit: str | None = None
    license: str | None = None
    tags: Sequence[str] = field(default=("agentc",))


def model_card(facts: CardFacts) -> str:
    """The README.md of a model repository: metadata in YAML between two lines `---`, then pages of
    Markdown."""
    metadata = yaml.safe_dump(_metadata(facts), sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{metadata}---\n\n" + "\n".join(_lines(facts)).rstrip() + "\n"


def _metadata(facts: CardFacts) -> dict[str, Any]:
    bases = _repositories(facts.lineage, "model")
    data = _repositories(facts.lineage, "dataset")
    found: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "license": facts.license,
        "base_model": bases or None,
        "datasets": data or None,
        "tags": [*facts.tags, str(facts.lineage.objects[0].manifest["kind"])],
    }
    results = [_result(evaluation) for evaluation in facts.evaluations if evaluation.intervals()]
    if results:
        name = facts.repository.rpartition("/")[2]
        found["model-index"] = [{"name": name, "results": results}]
    return {name: value for name, value in found.items() if value is not None}


def _result(evaluation: CardEvaluation) -> dict[str, Any]:
    """One entry of a model index; its metrics have no place for intervals but their names."""
    metrics = evaluation.metrics
    environment, split = str(metrics["environment"]), str(metrics["split"])
    return {
        "task": {"type": "text-generation", "name": f"acting in {environment}"},
        "dataset": {"type": environment, "name": f"{environment}, split {split}", "split": split},
        "metrics": [
            {"type": name, "value": value["mean"], "name": f"{name} ({_interval(value)})"}
            for name, value in evaluation.intervals().items()
        ],
    }


def _repositories(lineage: Lineage, kind: str) -> list[str]:
    """Hub repositories that objects of a kind were taken from, in the order of the lineage."""
    return list(
        dict.fromkeys(
            str(repo)
            for stored in lineage.objects
            if stored.manifest["kind"] == kind
            if (
                repo := _settings(stored.manifest).get("repo")
                or _source(stored.manifest).get("repo")
            )
        )
    )


def _lines(facts: CardFacts) -> Iterator[str]:
    model = facts.lineage.objects[0]
    experiment = facts.experiment
    yield f"# {facts.repository.rpartition('/')[2]}\n"
    if experiment.get("description"):
        yield f"{' '.join(str(experiment['description']).split())}\n"
    yield f"This model is stage `{facts.stage}` of the experiment, object `{model.name}`."
    if experiment.get("scale"):
        yield (
            f"\n**It was made at the reduced scale `{experiment['scale']}`**: its numbers are not"
            " those of the method."
        )
    paper = experiment.get("paper")
    if paper:
        yield f"\nThe method is of: {_paper(paper)}."
    yield from _evaluation_lines(facts.evaluations)
    if facts.verdicts and facts.verdicts.get("claims"):
        yield "\n## Claims\n\nWhat was claimed, what was measured, and the verdict.\n"
        yield from _block("text", render_verdicts(facts.verdicts, colour=False))
    yield from _origin_lines(facts)
    yield "\n## Again\n"
    yield from _block("sh", " ".join(map(shlex.quote, facts.rerun)))
    commit = f", at commit `{facts.commit}`" if facts.commit else ""
    yield f"\nThe spec is `{facts.spec_name}`, sha256 `{facts.spec_sha256}`{commit}."
    if facts.spec is not None:
        yield ""
        yield from _block("yaml", facts.spec.rstrip())


def _evaluation_lines(evaluations: Sequence[CardEvaluation]) -> Iterator[str]:
    yield "\n## Evaluations\n"
    if not evaluations:
        yield "None of this model is in the store that it was pushed from."
        return
    yield "| stage | environment, split | metric | mean | interval |\n|---|---|---|---|---|"
    for evaluation in evaluations:
        metrics = evaluation.metrics
        for name, value in evaluation.intervals().items():
            where = f"{metrics['environment']}, {metrics['split']}"
            mean = f"{value['mean']:.4g}"
            yield f"| {evaluation.stage} | {where} | {name} | {mean} | {_interval(value)} |"


def _origin_lines(facts: CardFacts) -> Iterator[str]:
    yield "\n## What it was made from\n\nChildren before parents; `provenance.json` has it whole.\n"
    for stored in facts.lineage.objects:
        manifest = stored.manifest
        said = f"- `{manifest['id']}` ({manifest['kind']}, {stored.name}): {manifest['backend']}"
        yield f"{said} version {manifest['version']}, agentc {manifest.get('agentc', 'unknown')}"
        for title, pairs in (("settings", _settings(manifest)), ("seeds", seeds_of(manifest))):
            if pairs:
                words = ", ".join(f"`{key}: {_short(value)}`" for key, value in pairs.items())
                yield f"  - {title}: {words}"
        yield from _quantisation_lines(manifest)
    for name in facts.lineage.missing:
        yield f"- {name} is not in the store any more"
    versions = (facts.lineage.objects[0].manifest.get("facts") or {}).get("versions") or {}
    if versions:
        yield "\nIt was trained with:\n"
        yield from _block("text", "\n".join(aligned(list(versions.items()))))


def _block(language: str, text: str) -> Iterator[str]:
    """Code, in a fence that is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    yield f"{fence}{language}\n{text}\n{fence}"


def _interval(value: Mapping[str, Any]) -> str:
    share = f"{100 * value.get('confidence', 0.95):.4g}%"
    return f"{share} interval {value['low']:.4g} to {value['high']:.4g}, n = {value['n']}"


def _paper(paper: Mapping[str, Any]) -> str:
    authors = ", ".join(map(str, paper.get("authors") or ()))
    parts = (authors, paper.get("title"), paper.get("venue"), paper.get("year"))
    return ", ".join(str(part) for part in parts if part)


def _settings(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (manifest.get("identity") or {}).get("settings") or {}
    return found


def _source(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a converted model is from."""
    found: Mapping[str, Any] = (manifest.get("facts") or {}).get("source") or {}
    return found


def _quantisation_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What a model that was quantised before it was converted has lost, and its file."""
    facts = manifest.get("facts") or {}
    if "quantisation" in facts:
        place = ", ".join(f"`{key}: {_short(value)}`" for key, value in _source(manifest).items())
        yield (
            f"  - weights: dequantised from {facts['quantisation']} (GGUF), not the original ones; "
            f"{place}, SHA-256 `{facts['gguf_sha256']}`"
        )
        if facts.get("licence"):
            yield f"  - licence of the file: {facts['licence']}"


def _short(value: object) -> str:
    text = " ".join(str(value).replace("`", "'").split())
    return text if len(text) <= 80 else f"{text[:77]}..."
