"""`python -m benchmarks.sweet_seeds --seeds 0 1 2`: specs/sweet_rl/tiny.yaml over seeds, one table.

Runs `agentc run` for each seed (what the store has is reused) and reads what evaluations hold:
tests passed, and what a mean of rewards hides, how many episodes end in an answer that runs and
how many questions are asked. Intervals are those of `benchmarks.seeds`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from benchmarks.reduced import ROOT
from benchmarks.seeds import interval

SPEC = ROOT / "specs" / "sweet_rl" / "tiny.yaml"
BASELINES = ("evaluate_start", "evaluate_random_pairs")


@dataclass(frozen=True, slots=True)
class Played:
    """One evaluation of one seed: mean tests passed by task, and shares over episodes."""

    tests: Mapping[str, float]
    perfect: float
    questions: float
    formed: float


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output, else the exit code of the run that failed."""
    parser = argparse.ArgumentParser(prog="benchmarks.sweet_seeds", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    parser.add_argument(
        "--baselines", nargs="+", default=BASELINES, metavar="EVALUATION",
        help="what all evaluations are compared with, paired by seed and task",
    )  # fmt: skip
    parser.add_argument("--store", type=Path, default=ROOT / ".agentc" / "store")
    options = parser.parse_args(arguments)
    played: dict[str, list[Played]] = {}
    for seed in options.seeds:
        words = ["run", str(SPEC), "-p", f"seed={seed}", "--store", str(options.store), "--plain"]
        words += [] if options.scale is None else ["--scale", options.scale]
        agentc = str(Path(sys.executable).with_name("agentc"))
        code = subprocess.run([agentc, *words], stdout=sys.stderr, check=False).returncode
        if code:
            return code
        for stage, one in evaluations(options.scale, seed, options.store).items():
            played.setdefault(stage, []).append(one)
    print("\n".join(table(played, options.baselines)))
    return 0


def evaluations(scale: str | None, seed: int, store: Path) -> dict[str, Played]:
    """By stage; the run of that seed is whole."""
    plan = compile_spec(SPEC, {"seed": str(seed)}, load_backends(), scale=scale).plan
    assert plan is not None
    folders = {job.id: store / "objects" / job.object / "data" for job in plan.jobs}
    found = {}
    for job in plan.jobs:
        if job.draft.kind == "evaluate":
            metrics = json.loads((folders[job.id] / "metrics.json").read_text(encoding="utf-8"))
            text = (folders[f"{job.id}:rollout"] / "trajectories.jsonl").read_text("utf-8")
            episodes = [json.loads(line) for line in text.splitlines()]
            found[job.stage] = of_episodes(metrics["tasks"], episodes)
    return found


def of_episodes(
    tasks: Mapping[str, Mapping[str, float]], episodes: Sequence[Mapping[str, object]]
) -> Played:
    """An answer runs if every test of it came to a value, right or wrong; all replies of the agent
    but the last are questions."""
    return Played(
        tests={task: float(row["reward"]) for task, row in tasks.items()},
        perfect=sum(float(row["success"]) for row in tasks.values()) / len(tasks),
        questions=sum(_replies(each) - 1 for each in episodes) / len(episodes),
        formed=sum(_runs(each) for each in episodes) / len(episodes),
    )


def table(
    played: Mapping[str, Sequence[Played]], baselines: Sequence[str] = BASELINES
) -> list[str]:
    """Markdown lines."""
    seeds, tasks = len(next(iter(played.values()))), len(next(iter(played.values()))[0].tests)
    some = "1 seed" if seeds == 1 else f"{seeds} seeds"
    named = [f"`{name}`" for name in baselines]
    lines = [
        f"{some}, {tasks} held-out tasks; 95 % intervals, bootstrap over seeds and tasks.",
        "",
        f"| evaluation | tests | difference from {' | from '.join(named)} | perfect "
        "| questions | answers that run | tests of each seed |",
        "|---" * (6 + len(named)) + "|",
    ]
    for stage, runs in played.items():
        mean, low, high = interval([one.tests for one in runs])
        apart = " | ".join(_apart(stage, runs, name, played[name]) for name in baselines)
        shares = " | ".join(
            f"{sum(values) / len(runs):.{digits}f}"
            for values, digits in (
                ([one.perfect for one in runs], 3),
                ([one.questions for one in runs], 2),
                ([one.formed for one in runs], 3),
            )
        )
        each = ", ".join(f"{sum(one.tests.values()) / len(one.tests):.3f}" for one in runs)
        lines.append(
            f"| `{stage}` | {mean:.3f} [{low:.3f}, {high:.3f}] | {apart} | {shares} | {each} |"
        )
    return lines


def _apart(stage: str, runs: Sequence[Played], name: str, others: Sequence[Played]) -> str:
    if stage == name:
        return "-"
    pairs = zip(runs, others, strict=True)
    differences = [{task: a.tests[task] - b.tests[task] for task in a.tests} for a, b in pairs]
    mean, low, high = interval(differences)
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def _replies(episode: Mapping[str, object]) -> int:
    messages, opening = episode["messages"], episode["prompt_length"]
    assert isinstance(messages, list)
    assert isinstance(opening, int)
    return sum(message["role"] == "assistant" for message in messages[opening:])


def _runs(episode: Mapping[str, object]) -> bool:
    report = episode.get("report")
    verdicts = report["verdicts"] if isinstance(report, dict) else []
    return bool(verdicts) and set(verdicts) <= {"pass", "fail"}


if __name__ == "__main__":
    sys.exit(main())
