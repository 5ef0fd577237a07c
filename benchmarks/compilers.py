"""`python -m benchmarks.compilers`: agentc, DVC and Snakemake on one graph of up to 10,000 jobs.

Two graphs are written for each tool as its users write them: `same_graph/rounds`, one long chain,
and `same_graph/sweep`, three rounds under many seeds. Nothing of them has been run; each command
says what there is to do. Whole processes are measured, one at a time.
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
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import agentc as agentc_package
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
class Shape:
    """A graph that grows with one number: `fixed` jobs, and `each` for one more of `param`."""

    name: str
    param: str
    fixed: int
    each: int

    def number(self, jobs: int) -> int:
        """The value of the param for about so many jobs."""
        return max(1, math.ceil((jobs - self.fixed) / self.each))

    @property
    def folder(self) -> Path:
        """Where it is written for each tool."""
        return GRAPH / self.name


SHAPES = {
    "rounds": Shape(name="rounds", param="rounds", fixed=7, each=5),
    "sweep": Shape(name="sweep", param="seeds", fixed=6, each=16),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line, the directory to start it in, and variables of its own."""

    name: str
    argv: tuple[str, ...]
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one command took for one size of the graph: best of a few; None when it was cut off."""

    shape: str
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
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S", help="default: 120")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="agentc-compilers-") as folder:
        for name, size in product(options.shapes, options.sizes):
            place = Path(folder, f"{name}-{size}")
            place.mkdir()
            rows += measure_size(Workplace(place), SHAPES[name], size, options.limit)
    print(f"DVC {DVC.version}, Snakemake {SNAKEMAKE.version}, Python {sys.version.split()[0]}\n")
    for name in options.shapes:
        print(f"{name}:\n\n{table([r for r in rows if r.shape == name], options.limit)}\n")
    if options.json is not None:
        text = json.dumps([asdict(row) for row in rows], indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


def measure_size(workplace: Workplace, shape: Shape, size: int, limit_s: float) -> Iterator[Row]:
    """Every command on a graph of about `size` jobs."""
    number = shape.number(size)
    jobs = 0
    for lay_out in (agentc_commands, _dvc, _snakemake):
        for command in lay_out(workplace, shape, number):
            if not jobs:
                jobs = len(jobs_of(workplace.folder / "compiled" / "plan.json"))
            row = _measure(workplace, command, shape, jobs, limit_s)
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
    memory = "" if math.isnan(row.peak_mb) else f", {row.peak_mb:.0f} MB"
    return f"{row.wall_s:.2f} s (CPU {row.cpu_s:.2f} s){memory}"


def _measure(
    workplace: Workplace, command: Command, shape: Shape, jobs: int, limit_s: float
) -> Row:
    costs: list[Cost] = []
    load = os.getloadavg()[0]
    while len(costs) < REPEATS and not any(cost.wall_s > LONG_S for cost in costs):
        try:
            variables = {"DVC_NO_ANALYTICS": "true", "PYTHONPATH": "", **command.variables}
            argv = list(command.argv)
            costs.append(workplace.run(argv, command.folder, limit_s=limit_s, **variables))
        except CommandTimeoutError:
            break
    return Row(
        shape=shape.name,
        jobs=jobs,
        command=command.name,
        wall_s=min((cost.wall_s for cost in costs), default=None),
        cpu_s=min((cost.cpu_s for cost in costs), default=None),
        peak_mb=min((cost.peak_mb for cost in costs), default=None),
        load=load,
    )


BESIDE_SNAKEMAKE = {"PYTHONPATH": str(Path(agentc_package.__file__).parents[1])}
"""Snakemake is that of the hand-written file; what agentc compiles imports agentc."""


def compiled_by_agentc(workplace: Workplace, shape: Shape, number: int) -> tuple[Path, Path]:
    """A spec in a folder of its own, and the folder that it was compiled to."""
    folder = workplace.folder / "agentc"
    folder.mkdir()
    spec, compiled = folder / "eto.yaml", workplace.folder / "compiled"
    spec.write_text(agentc_spec(shape, number), encoding="utf-8")
    workplace.agentc("bundle", "--bare", str(spec), "-o", str(compiled))
    return spec, compiled


def agentc_commands(workplace: Workplace, shape: Shape, number: int) -> list[Command]:
    """agentc's own, and Snakemake on what it compiled, which lies there afterwards."""
    path, compiled = compiled_by_agentc(workplace, shape, number)
    folder, spec = path.parent, str(path)
    agentc = str(Path(sys.executable).with_name("agentc"))
    return [
        Command(name="`agentc check`", argv=(agentc, "check", spec), folder=folder),
        Command(name="`agentc plan`", argv=(agentc, "plan", spec), folder=folder),
        Command(
            name="`agentc bundle --bare`",
            argv=(agentc, "bundle", "--bare", spec, "-o", str(folder / "out")),
            folder=folder,
        ),
        Command(
            name="`snakemake -n` of what agentc compiled",
            argv=(program(SNAKEMAKE, "snakemake"), "-n", "-q", "rules", "-c1"),
            folder=compiled,
            variables=BESIDE_SNAKEMAKE,
        ),
    ]


def _dvc(workplace: Workplace, shape: Shape, number: int) -> list[Command]:
    folder = workplace.folder / "dvc"
    folder.mkdir()
    dvc = program(DVC, "dvc")
    workplace.run([dvc, "init", "--no-scm", "-q"], folder, DVC_NO_ANALYTICS="true")
    shutil.copy(shape.folder / "dvc.yaml", folder)
    text = json.dumps({"beta": 0.1, "lr": 1e-6, **dvc_params(shape, number)}, indent=1)
    (folder / "params.yaml").write_text(text + "\n", encoding="utf-8")
    return [
        Command(name="`dvc dag --dot`", argv=(dvc, "dag", "--dot"), folder=folder),
        Command(name="`dvc dag`", argv=(dvc, "dag"), folder=folder),
        Command(name="`dvc status`", argv=(dvc, "status"), folder=folder),
    ]


def agentc_spec(shape: Shape, number: int) -> str:
    """The spec with another default of its param, or another range of its matrix."""
    text = (shape.folder / "eto.yaml").read_text(encoding="utf-8")
    text = text.replace(
        "rounds: {type: int, default: 1,", f"rounds: {{type: int, default: {number},"
    )
    return text.replace("range(1, 2)", f"range(1, {number + 1})")


def dvc_params(shape: Shape, number: int) -> dict[str, Any]:
    """What DVC's templates cannot count: the rounds, and the seeds of a sweep."""
    if shape.name == "rounds":
        policies = ["out/sft", *(f"out/dpo/{n}" for n in range(1, number))]
        return {"rounds": [{"number": n, "policy": p} for n, p in enumerate(policies, 1)]}
    seeds = list(range(1, number + 1))
    listed = [
        {"seed": seed, "number": n, "policy": "out/sft" if n == 1 else f"out/dpo/{seed}/{n - 1}"}
        for seed, n in product(seeds, (1, 2, 3))
    ]
    return {"seeds": seeds, "rounds": listed}


def _snakemake(workplace: Workplace, shape: Shape, number: int) -> list[Command]:
    folder = workplace.folder / "snakemake"
    folder.mkdir()
    shutil.copy(shape.folder / "Snakefile", folder)
    words = ("-n", "-q", "rules", "-c1", "--config", f"{shape.param}={number}")
    snakemake = program(SNAKEMAKE, "snakemake")
    return [Command(name="`snakemake -n`, hand-written", argv=(snakemake, *words), folder=folder)]


if __name__ == "__main__":
    sys.exit(main())
