"""`python -m benchmarks.trainer_parity [--write PAGE]`: TRL, OpenRLHF and XTuner on the same rows,
initial weights, learning rates and steps; how far their losses are apart, step by step.

Builds the software stacks that are not there. A table in markdown is printed, or written
between the marks of a page.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc.backend_api import StageBackend, load_backends
from benchmarks.processes import CommandError
from benchmarks.reduced import ROOT
from benchmarks.training_jobs import Stages, write_rows

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
ROWS, BATCH = 24, 8
_ITEMS = ("oak planks", "stick", "bowl", "ladder", "chest", "torch")
_SHARED: Mapping[str, Any] = {
    "epochs": 2,
    "global_batch": BATCH,
    "max_length": 512,
    "scheduler": "cosine",
    "warmup_ratio": 0.2,
    "seed": 3,
}
_KIND: Mapping[str, Mapping[str, Any]] = {
    "sft": {"lr": 2e-3, "loss_on": "marked"},
    "dpo": {"lr": 1e-3, "beta": 0.1},
}
_WHOLE = {"micro_batch": BATCH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One training. `against` is the case whose losses it is compared with, `bound` how far the
    two may be apart at any step; without one `because` says why they are not held together."""

    name: str
    backend: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    against: str = ""
    bound: float | None = None
    because: str = ""


def _case(backend: str, dtype: str, words: str = "", **more: Any) -> Case:
    settings = {"dtype": dtype, **more.pop("settings", {})}
    name = f"{backend} {dtype}{f', {words}' if words else ''}"
    return Case(name=name, backend=backend, settings=settings, **more)


_NLL = {"nll_weight": 0.5}
_ALL = {"score_on": "completion"}
CASES: tuple[Case, ...] = (
    _case("trl.sft", "float32"),
    _case("trl.sft", "bfloat16", against="trl.sft float32", bound=5e-3),
    _case("openrlhf.sft", "bfloat16", against="trl.sft float32", bound=5e-3),
    _case(
        "openrlhf.sft",
        "bfloat16",
        "micro_batch 2",
        settings={"micro_batch": 2},
        against="trl.sft float32",
        bound=5e-3,
    ),
    _case(
        "xtuner.sft",
        "float32",
        f"micro_batch {BATCH}",
        settings=_WHOLE,
        against="trl.sft float32",
        bound=1e-4,
    ),
    _case(
        "xtuner.sft",
        "bfloat16",
        f"micro_batch {BATCH}",
        settings=_WHOLE,
        against="trl.sft float32",
        bound=5e-3,
    ),
    _case(
        "xtuner.sft",
        "float32",
        "micro_batch 1",
        settings={"micro_batch": 1},
        against="trl.sft float32",
        because="XTuner's loss is the mean over rows of means over tokens",
    ),
    _case("trl.dpo", "float32"),
    _case("trl.dpo", "bfloat16", against="trl.dpo float32", bound=5e-3),
    _case("openrlhf.dpo", "bfloat16", against="trl.dpo float32", bound=5e-3),
    _case("trl.dpo", "float32", "every token", settings=_ALL),
    _case(
        "openrlhf.dpo",
        "bfloat16",
        "every token",
        settings=_ALL,
        against="trl.dpo float32, every token",
        bound=5e-3,
    ),
    _case("trl.dpo", "float32", "NLL 0.5", settings=_NLL),
    _case(
        "openrlhf.dpo",
        "bfloat16",
        "NLL 0.5",
        settings=_NLL,
        against="trl.dpo float32, NLL 0.5",
        because="OpenRLHF's NLL term is the mean over pairs of means over tokens",
    ),
)


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses and learning rates of each step of a case."""

    loss: tuple[float, ...]
    lr: tuple[float, ...]

    def apart(self, other: Losses) -> float:
        """The largest distance of two losses of one step."""
        return max(abs(a - b) for a, b in zip(self.loss, other.loss, strict=True))


def measure(
    folder: Path, cases: Sequence[Case], say: Callable[[str], None] = lambda line: None
) -> dict[str, Losses]:
    """Losses by name of case. Raises CommandError."""
    table = load_backends()
    stages = Stages(folder)
    data = {
        "sft": write_rows(folder / "rows" / "sft", "rows.jsonl", map(conversation, range(ROWS))),
        "dpo": write_rows(folder / "rows" / "dpo", "pairs.jsonl", map(pair, range(ROWS))),
    }
    base = stages.run(
        "model",
        _backend(table.backends, "model.scratch"),
        {"hidden_size": 64, "layers": 2, "heads": 1, "context": 512, "vocab_size": 512},
        {"corpus": [data["sft"]]},
    )
    found: dict[str, Losses] = {}
    for number, case in enumerate(cases):
        say(case.name)
        backend = _backend(table.backends, case.backend)
        settings = {**_SHARED, **_KIND[backend.kind], **case.settings}
        inputs = {"model": [base / "data"], "data": [data[backend.kind]]}
        done = stages.run(f"case-{number}", backend, settings, inputs)
        text = (done / "logs" / "steps.jsonl").read_text(encoding="utf-8")
        steps = [json.loads(line) for line in text.splitlines()]
        found[case.name] = Losses(
            tuple(step["loss"] for step in steps), tuple(step["lr"] for step in steps)
        )
    return found


def _backend(backends: Mapping[str, Any], name: str) -> StageBackend:
    found = backends.get(name)
    if not isinstance(found, StageBackend):
        raise CommandError(f"there is no backend {name}")
    return found


def conversation(number: int) -> dict[str, Any]:
    """A row of rows.jsonl: a task with one to four replies, of which some are marked as not
    trained, and observations between them."""
    item = _ITEMS[number % len(_ITEMS)]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Craft the goal. " + " ".join(_ITEMS[: number % 5])},
        {"role": "assistant", "content": "OK"},
        {"role": "user", "content": f"Goal: craft {item}."},
    ]
    for turn in range(1 + number % 4):
        reply: dict[str, Any] = {"role": "assistant", "content": f"get {number} {turn} {item}"}
        if turn and (number + turn) % 3 == 0:
            reply["loss"] = False
        messages += [reply, {"role": "user", "content": f"Got {turn} of {item}"}]
    return {
        "id": f"r{number}",
        "task_id": f"r{number}",
        "messages": messages[:-1],
        "prompt_length": 3,
        "reward": 1.0,
        "source": "expert",
    }


def pair(number: int) -> dict[str, Any]:
    """A row of pairs.jsonl: two continuations of unequal length, with observations."""
    whole = conversation(number)["messages"]
    other = conversation(number + 5)["messages"]
    plain = [{"role": m["role"], "content": m["content"]} for m in whole]
    worse = [{"role": m["role"], "content": m["content"]} for m in other]
    return {
        "id": f"p{number}",
        "task_id": f"p{number}",
        "prompt": plain[:3],
        "chosen": plain[3:],
        "rejected": worse[3:],
    }


def markdown(cases: Sequence[Case], found: Mapping[str, Losses]) -> str:
    """The table: a line for each case."""
    lines = [
        "| trainer | loss at each step | apart | allowed | |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        mine = found[case.name]
        losses = " ".join(f"{loss:.4f}" for loss in mine.loss)
        if not case.against:
            lines.append(f"| **{case.name}** | {losses} | | | |")
            continue
        apart = mine.apart(found[case.against])
        bound = "" if case.bound is None else f"{case.bound:g}"
        lines.append(f"| {case.name} | {losses} | {apart:.1e} | {bound} | {case.because} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all that is held together agrees, 1 when not or when a training failed."""
    parser = argparse.ArgumentParser(prog="benchmarks.trainer_parity", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    options = parser.parse_args(arguments)
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    with tempfile.TemporaryDirectory(prefix="agentc-parity-") as folder:
        try:
            found = measure(Path(folder), CASES, lambda line: print(line, file=sys.stderr))
        except CommandError as error:
            print(error, file=sys.stderr)
            return 1
    table = markdown(CASES, found)
    if options.write is None:
        print(table)
    else:
        page = options.write.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        _, after = rest.split(END)
        text = f"{before}{BEGIN}\n{table}\n{END}{after}"
        options.write.write_text(text, encoding="utf-8")
    apart = [
        case.name
        for case in CASES
        if case.bound is not None and found[case.name].apart(found[case.against]) > case.bound
    ]
    for name in apart:
        print(f"{name}: further apart than allowed", file=sys.stderr)
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
