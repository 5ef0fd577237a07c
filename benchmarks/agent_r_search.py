"""`python -m benchmarks.agent_r_search --released CHECKOUT`: the released Agent-R search and ours.

The same TextCraft server, the same replies, the same ties. First a scripted policy, for which both
must grow the same trees, then the same with a fixed time for each reply, then the quickstart's
model on the batching server. CHECKOUT is a work tree of github.com/bytedance/Agent-R;
`released_search.py` runs a copy of it. Run it from the top of the repository, after `make
environments`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from agentc.kinds.interaction import OBSERVATION_PREFIX
from agentc.store.paths import open_store
from benchmarks.processes import CommandError
from benchmarks.reduced import ROOT, Size, write_reduced
from benchmarks.workplace import Workplace, jobs_of, object_folder

NEEDS = """\
The released search is not part of agentc. Get it, and say where it lies:

  git clone https://github.com/bytedance/Agent-R /tmp/Agent-R
  python -m benchmarks.agent_r_search --released /tmp/Agent-R
"""
CONTEXT = 4096
"""Of the model that is served: whole conversations fit, so that neither side cuts them."""
INSTRUCTION = "Craft the goal."
SEED, TIE_SEED = 11, 5
REPLY_S = 0.05
"""Of an ideal batching server; a large model takes longer."""
_WOOD = "([a-z ]+)"
RULES: list[dict[str, Any]] = [
    # Enough ways to win, to lose and to say the same twice.
    {"match": f"^Observation: Got 1 {_WOOD} logs", "reply": [
        r"Thought: saw\nAction: craft 4 \1 planks using 1 \1 logs",
        r"Thought: look\nAction: inventory", r"Thought: more\nAction: get 1 \1 logs",
        r"Thought: more\nAction: get 1 \1 planks"]},
    {"match": f"Goal: craft {_WOOD} planks", "reply": [
        r"Thought: wood\nAction: get 1 \1 logs", r"Thought: look\nAction: inventory",
        r"Thought: wood\nAction: get 2 \1 logs"]},
    {"match": "^Observation: (Could|Inv)", "reply": [
        "Thought: again\nAction: inventory", "Thought: try\nAction: get 3 stick", "dance",
        "Thought: try\nAction: get 1 diamond"]},
    {"reply": [f"Thought: {n}\nAction: get {n} {item}" for n in (1, 2)
               for item in ("oak logs", "iron ingot", "stone", "string")]},
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What both sides search: the paper's shape unless told otherwise."""

    tasks: int
    depth: int = 20
    iterations: int = 8
    children: int = 4
    max_tokens: int = 64
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side did: its trees by task, as lists of lines, and its cost."""

    trees: Mapping[str, Any]
    environment_calls: int
    model_calls: int
    wall_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output; 1 when trees of the scripted policy differ or something
    failed, 2 without the released search."""
    parser = argparse.ArgumentParser(prog="benchmarks.agent_r_search", description=__doc__)
    parser.add_argument("--released", type=Path, metavar="CHECKOUT")
    parser.add_argument("--tasks", type=int, default=4, help="trees of each comparison")
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--only", choices=("scripted", "model"), help="one kind of policy")
    parser.add_argument("--model", type=Path, help="a checkpoint to serve instead of making one")
    options = parser.parse_args(arguments)
    if options.released is None or not (options.released / "mcts_collection.py").exists():
        print(NEEDS, end="", file=sys.stderr)
        return 2
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    load = Load(tasks=options.tasks, depth=options.depth, iterations=options.iterations)
    with tempfile.TemporaryDirectory(prefix="agentc-agent-r-") as name:
        folder = Path(name)
        try:
            same = True
            for delay in (0.0, REPLY_S) if options.only != "model" else ():
                title = f"scripted, {delay * 1000:.0f} ms for each reply, however many at once"
                command = scripted_server(folder, delay)
                same = compare(title, folder, options.released, load, command) and same
            if options.only != "scripted":
                model, python = served_model(folder, options.model)
                command = model_server(model, python)
                load = replace(load, stop=("\n",))
                compare("quickstart's model", folder, options.released, load, command)
        except CommandError as error:
            print(error, file=sys.stderr)
            return 1
    return 0 if same else 1


def compare(title: str, folder: Path, released: Path, load: Load, command: Sequence[str]) -> bool:
    """Run both sides on fresh servers, print the table; whether all trees are the same."""
    place = Path(tempfile.mkdtemp(dir=folder))
    with ExitStack() as stack:
        environment = stack.enter_context(
            started(place / "environment", [sys.executable, *_ENVIRONMENT])
        )
        policy = stack.enter_context(started(place / "policy", list(command), "policy-token"))
        tasks, goals = tasks_of(environment, load.tasks)
        theirs = run_released(place, released, load, environment, policy, tasks, goals)
        ours = run_ours(place, load, environment, policy)
        alone = run_ours(place, load, environment, policy, concurrency=1)
    same = sum(ours.trees[task] == theirs.trees[task] for task in tasks)
    nodes = sum(map(len, ours.trees.values()))
    print(f"\n{title}: {len(tasks)} trees, {nodes} nodes; {same} of {len(tasks)} trees are equal")
    print("| side | environment calls | model calls | wall time |\n|---|---|---|---|")
    rows = {"released": theirs, "agentc, one tree at a time": alone, "agentc": ours}
    for name, side in rows.items():
        ratios = [
            f" ({theirs.environment_calls / side.environment_calls:.1f}x fewer)",
            f" ({theirs.wall_s / side.wall_s:.1f}x less)",
        ]
        calls, wall = ratios if side is not theirs else ("", "")
        print(
            f"| {name} | {side.environment_calls}{calls} | {side.model_calls} | "
            f"{side.wall_s:.1f} s{wall} |"
        )
    return same == len(tasks) and alone.trees == ours.trees


_ENVIRONMENT = ("-m", "agentc_backends.environments.textcraft.job_serve", "--max-depth", "1",
                "--max-expert-steps", "4", "--distractors", "3")  # fmt: skip
"""Short prompts, as in the quickstart."""


def scripted_server(folder: Path, delay_s: float = 0.0) -> list[str]:
    rules = folder / "rules.json"
    rules.write_text(json.dumps(RULES), encoding="utf-8")
    program = ["-m", "agentc_backends.servers.scripted.job_serve", "--rules-file", str(rules)]
    return [sys.executable, *program, "--delay", str(delay_s)]


def model_server(model: Path, python: Path) -> list[str]:
    program = ["-m", "agentc_backends.servers.transformers.job_serve", "--model", str(model)]
    return [str(python), *program]


def served_model(folder: Path, given: Path | None) -> tuple[Path, Path]:
    """A checkpoint, and the Python that can serve it: the quickstart's model after a short
    supervised fine-tuning, with a context that holds whole conversations."""
    workplace = Workplace(folder)
    spec = write_reduced(folder / "model.yaml", Size(sft_steps=200, expert_tasks=200))
    text = yaml.safe_load(spec.read_text(encoding="utf-8"))
    text["models"]["base"]["context"] = CONTEXT
    spec.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    workplace.agentc("bundle", "--bare", str(spec), "-o", str(folder / "model"))
    plan = folder / "model" / "plan.json"
    lock = json.loads(plan.read_text(encoding="utf-8"))["environments"]["torch"]["lock"]
    store = workplace.store("model")
    python = open_store(str(store)).software_stack(lock) / "bin" / "python"
    if given is not None:
        if not python.exists():
            raise CommandError(f"no software stack {python}: `make software` builds it")
        return given, python
    workplace.agentc("run", str(spec), "--store", str(store), "--until", "sft", "--plain")
    job = next(one for one in jobs_of(plan) if one["id"] == "sft")
    return object_folder(store, job) / "data", python


@contextmanager
def started(place: Path, command: list[str], token: str = "") -> Iterator[dict[str, Any]]:
    """A server, ready; ended afterwards. Gives its lease."""
    ready = place.with_suffix(".ready.json")
    log = place.with_suffix(".log")
    command = [*command, "--port", "0", "--ready-file", str(ready), "--die-with-parent"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=_variables(AGENTC_TOKEN=token), stdout=out, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + 120
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise CommandError(f"{' '.join(command)}:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        address = json.loads(ready.read_text(encoding="utf-8"))
        url = f"http://{address['host']}:{address['port']}"
        yield {"url": url, "token": token, "model": "policy", "log": str(log)}
    finally:
        process.terminate()
        process.wait(30)


def tasks_of(environment: Mapping[str, Any], count: int) -> tuple[list[str], list[str]]:
    """The first training tasks, and all goals in the order that AgentGym's indices count."""
    from agentc_backends.environments.textcraft.environment import TextCraftEnvironment

    with urllib.request.urlopen(environment["url"] + "/meta") as answer:
        tasks = json.load(answer)["splits"]["train"][:count]
    return tasks, list(TextCraftEnvironment().catalogue.book.goals)


def run_released(
    place: Path,
    released: Path,
    load: Load,
    environment: Mapping[str, Any],
    policy: Mapping[str, Any],
    tasks: Sequence[str],
    goals: Sequence[str],
) -> Side:
    """The released search in a copy of its checkout, on the same tasks."""
    copy = place / "released"
    shutil.copytree(released, copy, ignore=shutil.ignore_patterns(".git"))
    indices = {str(goals.index(task)): task for task in tasks}
    data = copy / "mcts_utils" / "textcraft"
    (data / "textcraft_train_clean.json").write_text(json.dumps(dict.fromkeys(indices, 1)))
    (data / "textcraft_test.json").write_text("[]")
    counts = place / "counts.json"
    settings = {
        "environment": environment,
        "policy": policy,
        "instruction": INSTRUCTION,
        "max_tokens": load.max_tokens,
        "stop": load.stop,
        "seed": SEED,
        "tie_seed": TIE_SEED,
        "tasks": indices,
        "counts": str(counts),
    }
    (place / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    variables = {
        "TASK": "textcraft",
        "MAX_DEPTH": str(load.depth),
        "ITERA": str(load.iterations),
        "N_GEN": str(load.children),
        "TEMP": "1",
        "MAX_TOKEN_LENGTH": "1000000",
        "MODEL_DIR": "served",
    }
    driver = [sys.executable, str(ROOT / "benchmarks" / "released_search.py")]
    wall = _run([*driver, str(place / "settings.json")], copy, place / "released.log", **variables)
    counted = json.loads(counts.read_text(encoding="utf-8"))
    trees = {
        task: _released_lines(
            json.loads(
                (copy / f"mcts_result/textcraft/released/search_results_{index}.json").read_text()
            )
        )
        for index, task in indices.items()
    }
    return Side(
        trees=trees,
        environment_calls=counted["environment_calls"],
        model_calls=counted["model_calls"],
        wall_s=wall,
    )


def run_ours(
    place: Path,
    load: Load,
    environment: Mapping[str, Any],
    policy: Mapping[str, Any],
    concurrency: int = 16,
) -> Side:
    """The search job, as the runtime starts it."""
    staging = place / f"ours-{secrets.token_hex(4)}"
    for name in ("data", "work", "logs"):
        (staging / name).mkdir(parents=True)
    config = {
        "split": "train", "limit": load.tasks, "depth": load.depth, "children": load.children,
        "iterations": load.iterations, "c_uct": 0.25, "dedup": "reply",
        "decode": {"temperature": 1.0, "top_p": 1.0, "max_tokens": load.max_tokens,
                   "stop": load.stop},
        "on_overflow": "drop_oldest", "flatten_observations": True, "seed": SEED,
        "tie_seed": TIE_SEED, "prompt_seed": 0, "reward_range": [0, 1], "success_at": 1,
        "prompt": {"instruction": INSTRUCTION, "acknowledgement": "Ok.", "examples": [],
                   "reply_format": "react", "system": None,
                   "observation_prefix": OBSERVATION_PREFIX, "output_marker": None,
                   "memory": "all"},
        "action_span": "last", "action_space": "optional", "no_action": "last_line",
        "turn_numbers": "drop",
        "invalid_message": "Could not execute ",
        "invalid_reward": "keep",
    }  # fmt: skip
    job = {
        "id": "search", "key": "0" * 32, "kind": "search", "config": config, "contract": {},
        "placement": {"reach": "auto", "verify_share": 0.02, "same_state": "observation",
                      "sessions_per_tree": None,
                      "concurrency": concurrency, "error_budget": 0.0},
        "inputs": {}, "input_objects": {},
        "leases": {"environment": environment, "policy": policy},
        **{name: str(staging / name) for name in ("work", "logs")}, "out": str(staging / "data"),
        "facts": str(staging / "facts.json"), "progress": str(staging / "progress.json"),
    }  # fmt: skip
    (staging / "job.json").write_text(json.dumps(job), encoding="utf-8")
    program = [sys.executable, "-m", "agentc_backends.agents.search.job_search"]
    wall = _run([*program, str(staging / "job.json")], staging, staging / "log.txt")
    facts = json.loads((staging / "facts.json").read_text(encoding="utf-8"))
    rows = (staging / "data" / "trees.jsonl").read_text(encoding="utf-8").splitlines()
    return Side(
        trees={row["task_id"]: _own_lines(row) for row in map(json.loads, rows)},
        environment_calls=facts["environment_calls"],
        model_calls=facts["model_calls"],
        wall_s=wall,
    )


def _run(command: list[str], cwd: Path, log: Path, **variables: str) -> float:
    """Seconds of a whole process. Raises CommandError."""
    began = time.perf_counter()
    with log.open("wb") as out:
        done = subprocess.run(
            command, cwd=cwd, env=_variables(**variables), stdout=out, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise CommandError(f"{' '.join(command)}:\n{log.read_text(errors='replace')[-3000:]}")
    return time.perf_counter() - began


def _variables(**variables: str) -> dict[str, str]:
    path = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1", **variables}


def _released_lines(node: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """A tree as lines, in depth-first order: what both sides store of a node."""
    reply = "" if node["depth"] == 0 else node["llm_response"]
    names = ("depth", "obs", "env_score", "visits", "value", "is_terminal")
    lines = [(reply, *(node[name] for name in names))]
    for child in node["children"]:
        lines += _released_lines(child)
    return lines


def _own_lines(row: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    children: dict[Any, list[Mapping[str, Any]]] = {}
    for node in row["nodes"]:
        children.setdefault(node["parent"], []).append(node)
    names = ("reply", "depth", "observation", "reward", "visits", "value", "terminal")

    def below(node: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        lines = [tuple(node[name] for name in names)]
        for child in children.get(node["id"], ()):
            lines += below(child)
        return lines

    return below(row["nodes"][0])


if __name__ == "__main__":
    sys.exit(main())
