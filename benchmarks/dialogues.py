"""Rollouts with a human who is a model, many dialogues at a time and one by one, for the same
dialogues: `python -m benchmarks.dialogues [--tasks N]`.

ColBench's invented programming tasks; agent and human are untrained models of 0.4 million weights
on two servers of one job. In the second table the human takes a while for each reply, as one at an
endpoint does. Times are those of the rollout alone, without the starts of servers and boxes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.reduced import ROOT
from benchmarks.workplace import Workplace, jobs_of, manifest, object_folder

_SPEC = """\
agentc: 1
name: dialogues
environments:
  plain: {{backend: colbench_backend, rounds: 4}}
  code: {{backend: colbench_backend, rounds: 4, human: model, human_max_tokens: 32,
         simulator: {asked}}}
servers:
  policy: {{backend: transformers, max_model_len: 1024}}
  human: {human}
models:
  base: {{backend: scratch, corpus: expert, hidden_size: 128, layers: 2, heads: 4, context: 8192,
         vocab_size: 1024, initialisation: induction, seed: 0}}
prompts:
  talk: {{instruction: Ask, reply_format: text}}
stages:
  expert: {{kind: expert, environment: plain, split: train, limit: 32}}
  talk: {{kind: rollout, environment: code, server: policy, model: base, split: train,
         limit: {tasks}, concurrency: {concurrency}, decode: {{temperature: 1.0, max_tokens: 32}}}}
"""
_HUMANS = {
    "a model on a second server of the job": (
        "{server: human, model: base}",
        "{backend: transformers, max_model_len: 1024}",
    ),
    "0.2 s for each reply": (
        "{server: human, model: base}",
        "{backend: scripted, max_model_len: 8192, delay_s: 0.2, rules: [{reply: I do not know.}]}",
    ),
}


def main() -> None:
    """Prints a table in Markdown for each human."""
    parser = argparse.ArgumentParser(prog="benchmarks.dialogues", description=__doc__)
    parser.add_argument("--tasks", type=int, default=32)
    tasks = parser.parse_args().tasks
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="agentc-benchmarks-") as folder:
        for number, (what, (asked, human)) in enumerate(_HUMANS.items()):
            print(f"\nhuman: {what}; load {os.getloadavg()[0]:.0f}")
            workplace = Workplace(Path(folder, str(number)))
            workplace.folder.mkdir()
            words = {"asked": asked, "human": human, "tasks": tasks}
            _compare(workplace, words, (tasks, 1))


def _compare(workplace: Workplace, words: dict[str, Any], in_flight: tuple[int, ...]) -> None:
    print("| dialogues at a time | dialogues a second | tokens a second | seconds | equal rows |")
    print("|---|---|---|---|---|")
    base, first, rows = workplace.store("base"), 0.0, b""
    for number in in_flight:
        spec = workplace.folder / f"spec-{number}.yaml"
        spec.write_text(_SPEC.format(**words, concurrency=number), encoding="utf-8")
        compiled = workplace.folder / f"compiled-{number}"
        workplace.agentc("bundle", "--bare", str(spec), "-o", str(compiled))
        if not first:
            workplace.agentc("run", str(spec), "--store", str(base), "--until", "base", "--plain")
        store = workplace.store(str(number), like=base)
        workplace.job(compiled / "plan.json", store, "talk")
        job = next(one for one in jobs_of(compiled / "plan.json") if one["id"] == "talk")
        facts = manifest(store, job)["facts"]
        made = (object_folder(store, job) / "data" / "trajectories.jsonl").read_bytes()
        seconds = facts["completion_tokens"] / facts["tokens_per_s"]
        first, rows = first or seconds, rows or made
        speeds = f"{facts['episodes'] / seconds:.2f} | {facts['tokens_per_s']:.0f}"
        times = f"{seconds:.1f} ({seconds / first:.1f} times)"
        print(f"| {number} | {speeds} | {times} | {'yes' if made == rows else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
