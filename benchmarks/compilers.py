"""`python -m benchmarks.compilers`: agentc, DVC and Snakemake on one graph of up to 10,000 jobs.

The graph is written for each tool as its users write it: `same_graph/`. Nothing of it has been run;
each command says what there is to do. Whole processes are measured, one at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.processes import CommandTimeoutError, Cost
from benchmarks.reduced import ROOT
from benchmarks.rivals import DVC, SNAKEMAKE, program
from benchmarks.workplace import Workplace, jobs_of

GRAPH = ROOT / "benchmarks" / "same_graph"
SIZES = (10, 100, 1000, 10000)
LIMIT_S = 120.0
REPEATS = 3
LONG_S = 20.0
"""A command that takes longer is measured once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line, and the directory to start it in."""

    name: str
    argv: tuple[str, ...]
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one command took for one size of the graph: best of a few; None when it was cut off."""

    jobs: int
    command: str
    wall_s: float | None
    cpu_s: float | None
    peak_mb: float | None
    load: float


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output."""
    parser = argparse.ArgumentParser(prog="benchmarks.compilers", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="JOBS")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S", help="default: 120")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="agentc-compilers-") as folder:
        for size in options.sizes:
            place = Path(folder, str(size))
            place.mkdir()
            rows += measure_size(Workplace(place), size, options.limit)
    print(f"DVC {DVC.version}, Snakemake {SNAKEMAKE.version}, Python {sys.version.split()[0]}\n")
    print(table(rows, options.limit))
    if options.json is not None:
        text = json.dumps([asdict(row) for row in rows], indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


def measure_size(workplace: Workplace, size: int, limit_s: float) -> Iterator[Row]:
    """Every command on a graph of about `size` jobs."""
    rounds = max(1, math.ceil((size - 7) / 5))
    jobs = 0
    for lay_out in (_agentc, _dvc, _snakemake):
        for command in lay_out(workplace, rounds):
            if not jobs:
                jobs = len(jobs_of(workplace.folder / "compiled" / "plan.json"))
            row = _measure(workplace, command, jobs, limit_s)
            taken = f"cut at {limit_s:.0f} s" if row.wall_s is None else f"{row.wall_s:.2f} s"
            print(f"{jobs} jobs: {command.name}: {taken}", file=sys.stderr, flush=True)
            yield row


def table(rows: Sequence[Row], limit_s: float) -> str:
    """A markdown table: a row for each command, a column for each size."""
    sizes = list(dict.fromkeys(row.jobs for row in rows))
    lines = [
        "| command | " + " | ".join(f"{size:,} jobs" for size in sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for name in dict.fromkeys(row.command for row in rows):
        by_size = {row.jobs: row for row in rows if row.command == name}
        cells = [_cell(by_size.get(size), limit_s) for size in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    loads = [row.load for row in rows]
    lines.append(f"\nload average (1 minute) while measuring: {min(loads):.1f} to {max(loads):.1f}")
    return "\n".join(lines)


def _cell(row: Row | None, limit_s: float) -> str:
    if row is None:
        return ""
    if row.wall_s is None or row.cpu_s is None or row.peak_mb is None:
        return f"cut at {limit_s:.0f} s"
    return f"{row.wall_s:.2f} s (CPU {row.cpu_s:.2f} s), {row.peak_mb:.0f} MB"


def _measure(workplace: Workplace, command: Command, jobs: int, limit_s: float) -> Row:
    costs: list[Cost] = []
    load = os.getloadavg()[0]
    while len(costs) < REPEATS and not any(cost.wall_s > LONG_S for cost in costs):
        try:
            variables = {"DVC_NO_ANALYTICS": "true", "PYTHONPATH": ""}
            argv = list(command.argv)
            costs.append(workplace.run(argv, command.folder, limit_s=limit_s, **variables))
        except CommandTimeoutError:
            break
    return Row(
        jobs=jobs,
        command=command.name,
        wall_s=min((cost.wall_s for cost in costs), default=None),
        cpu_s=min((cost.cpu_s for cost in costs), default=None),
        peak_mb=min((cost.peak_mb for cost in costs), default=None),
        load=load,
    )


def _agentc(workplace: Workplace, rounds: int) -> list[Command]:
    folder = workplace.folder / "agentc"
    folder.mkdir()
    spec = str(shutil.copy(GRAPH / "eto.yaml", folder))
    words = ("-p", f"rounds={rounds}")
    compiled = workplace.folder / "compiled"
    workplace.agentc("compile", spec, *words, "-o", str(compiled))
    agentc = str(Path(sys.executable).with_name("agentc"))
    return [
        Command(name="`agentc check`", argv=(agentc, "check", spec, *words), folder=folder),
        Command(name="`agentc plan`", argv=(agentc, "plan", spec, *words), folder=folder),
        Command(
            name="`agentc compile`",
            argv=(agentc, "compile", spec, *words, "-o", str(folder / "out")),
            folder=folder,
        ),
        Command(
            name="`snakemake -n` of what agentc compiled",
            argv=(program(SNAKEMAKE, "snakemake"), "-n", "-q", "rules", "-c1"),
            folder=compiled,
        ),
    ]


def _dvc(workplace: Workplace, rounds: int) -> list[Command]:
    folder = workplace.folder / "dvc"
    folder.mkdir()
    dvc = program(DVC, "dvc")
    workplace.run([dvc, "init", "--no-scm", "-q"], folder, DVC_NO_ANALYTICS="true")
    shutil.copy(GRAPH / "dvc.yaml", folder)
    policies = ["out/sft", *(f"out/dpo/{number}" for number in range(1, rounds))]
    listed = [{"number": n, "policy": policy} for n, policy in enumerate(policies, 1)]
    text = json.dumps({"beta": 0.1, "lr": 1e-6, "rounds": listed}, indent=1)
    (folder / "params.yaml").write_text(text + "\n", encoding="utf-8")
    return [
        Command(name="`dvc dag --dot`", argv=(dvc, "dag", "--dot"), folder=folder),
        Command(name="`dvc dag`", argv=(dvc, "dag"), folder=folder),
        Command(name="`dvc status`", argv=(dvc, "status"), folder=folder),
    ]


def _snakemake(workplace: Workplace, rounds: int) -> list[Command]:
    folder = workplace.folder / "snakemake"
    folder.mkdir()
    shutil.copy(GRAPH / "Snakefile", folder)
    words = ("-n", "-q", "rules", "-c1", "--config", f"rounds={rounds}")
    snakemake = program(SNAKEMAKE, "snakemake")
    return [Command(name="`snakemake -n`, hand-written", argv=(snakemake, *words), folder=folder)]


if __name__ == "__main__":
    sys.exit(main())
