"""`python -m benchmarks.seeds [--spec SPEC] [--scale NAME] [--seeds N] [--first N]`: a spec over
seeds, as one table; with `--controls` or `--likelihood`, beside trainings without the contrast.

Runs `agentc run SPEC -p seed=K` for each seed (what the store has is reused), then
pools the evaluations: differences are paired by seed and task, and their interval comes from a
bootstrap that draws seeds and tasks, since neither repeats of a task nor tasks of one training
are independent.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from benchmarks.reduced import QUICKSTART, ROOT

Scores = Mapping[str, Sequence[Mapping[str, float]]]
"""Stage -> one mapping of task to mean reward for each seed."""

_RESAMPLES = 5000
_NO_CONTRAST = 1e-6


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output, else the exit code of the run that failed."""
    parser = argparse.ArgumentParser(prog="benchmarks.seeds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="how many seeds")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first of them")
    parser.add_argument("--spec", type=Path, default=QUICKSTART, help="has a param `seed`")
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    parser.add_argument(
        "--baseline",
        nargs="+",
        default=["evaluate_sft"],
        metavar="STAGE",
        help="what others are held against, each against the one on the same tasks",
    )
    parser.add_argument(
        "--controls", action="store_true", help="with the stages of benchmarks/controls.yaml"
    )
    parser.add_argument(
        "--likelihood",
        action="store_true",
        help="with a copy of the stage `eto` whose contrast is switched off",
    )
    parser.add_argument("--store", type=Path, default=ROOT / ".agentc" / "store")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="agentc-seeds-") as folder:
        spec = options.spec
        if options.controls:
            spec = with_controls(spec, Path(folder) / spec.name)
        if options.likelihood:
            spec = with_likelihood(spec, options.scale, Path(folder) / spec.name)
        seeds = range(options.first, options.first + options.seeds)
        return _run(spec, options.scale, seeds, options.store, options.baseline)


def with_controls(spec: Path, target: Path) -> Path:
    """Write a spec with the stages of `controls.yaml` added. Raises ValueError when it has one of
    them already."""
    content, controls = (
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in (spec, Path(__file__).with_name("controls.yaml"))
    )
    if twice := content["stages"].keys() & controls["stages"].keys():
        raise ValueError(f"{spec} has stages of its own named {', '.join(sorted(twice))}")
    content["stages"] |= controls["stages"]
    target.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), "utf-8")
    return target


def with_likelihood(spec: Path, scale: str | None, target: Path) -> Path:
    """Write a spec with its stage `eto` once more as `likelihood`: the same exploration and
    pairing, but a beta so small that only the likelihood of the expert's sides is trained."""
    content = yaml.safe_load(spec.read_text(encoding="utf-8"))
    tables = [content["stages"]]
    if scale is not None:
        tables.append(content["scales"][scale]["stages"])
    for stages in tables:
        copied = copy.deepcopy(stages["eto"])
        copied["repeat"]["stages"].setdefault("dpo", {})["beta"] = _NO_CONTRAST
        stages["likelihood"] = copied
    target.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), "utf-8")
    return target


def _run(
    spec: Path, scale: str | None, seeds: Sequence[int], store: Path, baselines: Sequence[str]
) -> int:
    scores: dict[str, list[dict[str, float]]] = {}
    for seed in seeds:
        words = ["run", str(spec), "-p", f"seed={seed}", "--store", str(store)]
        words += [] if scale is None else ["--scale", scale]
        agentc = str(Path(sys.executable).with_name("agentc"))
        code = subprocess.run(
            [agentc, *words, "--plain"], stdout=sys.stderr, check=False
        ).returncode
        if code:
            return code
        for stage, tasks in _evaluations(spec, scale, seed, store).items():
            scores.setdefault(stage, []).append(tasks)
    print("\n".join(table(scores, *baselines)))
    return 0


def table(scores: Scores, *baselines: str) -> list[str]:
    """Markdown lines: mean reward of each evaluation, its paired difference from the baseline on
    the same tasks, and each seed."""
    seeds = len(scores[baselines[0]])
    tasks = " and ".join(str(len(scores[each][0])) for each in baselines)
    named = ", ".join(f"`{each}`" for each in baselines)
    lines = [
        f"{seeds} seeds, {tasks} tasks; 95 % intervals, bootstrap over seeds and tasks.",
        "",
        f"| evaluation | mean reward | difference from {named} | of each seed |",
        "|---|---|---|---|",
    ]
    for stage, runs in scores.items():
        mean, low, high = interval(runs)
        apart = "-"
        baseline = next((b for b in baselines if scores[b][0].keys() == runs[0].keys()), stage)
        if stage != baseline:
            pairs = zip(runs, scores[baseline], strict=True)
            apart_mean, apart_low, apart_high = interval(
                [{task: run[task] - other[task] for task in run} for run, other in pairs]
            )
            apart = f"{apart_mean:+.3f} [{apart_low:+.3f}, {apart_high:+.3f}]"
        each = ", ".join(f"{sum(run.values()) / len(run):.3f}" for run in runs)
        lines.append(f"| `{stage}` | {mean:.3f} [{low:.3f}, {high:.3f}] | {apart} | {each} |")
    return lines


def _evaluations(
    spec: Path, scale: str | None, seed: int, store: Path
) -> dict[str, dict[str, float]]:
    plan = compile_spec(spec, {"seed": str(seed)}, load_backends(), scale=scale).plan
    assert plan is not None
    found = {}
    for job in plan.jobs:
        if job.draft.kind == "evaluate":
            path = store / "objects" / job.object / "data" / "metrics.json"
            tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
            found[job.stage] = {task: float(row["reward"]) for task, row in tasks.items()}
    return found


def interval(runs: Sequence[Mapping[str, float]]) -> tuple[float, float, float]:
    """Mean over seeds and tasks with its 95 % interval."""
    rng = random.Random(0)
    tasks = sorted(runs[0])
    rows = [[run[task] for task in tasks] for run in runs]
    means = []
    for _ in range(_RESAMPLES):
        columns = rng.choices(range(len(tasks)), k=len(tasks))
        drawn = rng.choices(rows, k=len(rows))
        means.append(sum(row[c] for row in drawn for c in columns) / (len(rows) * len(columns)))
    means.sort()
    mean = sum(map(sum, rows)) / (len(rows) * len(tasks))
    return mean, means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


if __name__ == "__main__":
    sys.exit(main())
