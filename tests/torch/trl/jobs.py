"""Makes training jobs for these tests: a small model, small data, and settings lowered by the
real backends. Job programs run in this process, or as the runtime starts them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S
from tests.torch.trl.programs import PROGRAM

from agentc.backend_api import StageBackend, StageView
from agentc.kinds import kind_named
from agentc.kinds.training import EmptyInput
from agentc.program.job import Job
from agentc_backends.data.models.backend import SCRATCH
from agentc_backends.trainers.trl.backend import CRITIC, DPO, SFT

REPOSITORY = Path(__file__).resolve().parents[3]
_GOODS = ("oak log", "oak planks", "stick", "torch", "chest", "stone")


def prompt(task: int) -> list[dict[str, str]]:
    """The messages before the agent's first real reply."""
    goal = _GOODS[task % len(_GOODS)]
    extra = " ".join(_GOODS[: task % 5])
    return [
        {"role": "user", "content": f"Craft things. {extra} Say OK."},
        {"role": "assistant", "content": "OK"},
        {"role": "user", "content": f"Goal: craft {goal}."},
    ]


def replies(task: int, turns: int, action: str) -> list[dict[str, str]]:
    """An alternation of replies and observations that starts and ends with a reply."""
    rng = random.Random(f"{task}/{action}")
    messages = []
    for turn in range(turns):
        good = rng.choice(_GOODS)
        messages.append({"role": "assistant", "content": f"Action: {action} {turn} {good}"})
        messages.append({"role": "user", "content": f"Got {turn} {good}"})
    return messages[:-1]


def trajectories(count: int, **changes: Any) -> list[dict[str, Any]]:
    """Rows of trajectories.jsonl with conversations of unequal length."""
    return [
        {
            "id": f"t{task}#0",
            "task_id": f"t{task}",
            "messages": prompt(task) + replies(task, 1 + task % 4, "get"),
            "prompt_length": 3,
            "reward": 1.0,
            "end": "success",
            **changes,
        }
        for task in range(count)
    ]


def pairs(count: int) -> list[dict[str, Any]]:
    """Rows of pairs.jsonl."""
    return [
        {
            "id": f"t{task}",
            "task_id": f"t{task}",
            "prompt": prompt(task),
            "chosen": replies(task, 1 + task % 4, "get"),
            "rejected": replies(task, 1 + task % 3, "drop"),
        }
        for task in range(count)
    ]


def hidden_texts(count: int) -> list[dict[str, Any]]:
    """Rows of privileged.jsonl for the tasks of `pairs`."""
    return [
        {"id": f"t{task}", "task_id": f"t{task}", "split": "train", "media": "text/plain",
         "text": f"get {_GOODS[task % len(_GOODS)]}"}
        for task in range(count)
    ]  # fmt: skip


def write_rows(directory: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A data directory with one JSONL file."""
    directory.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (directory / name).write_text(text, encoding="utf-8")
    return directory


def make_job(
    root: Path,
    kind: str,
    config: Mapping[str, Any],
    inputs: Mapping[str, Sequence[Path]],
    placement: Mapping[str, Any] | None = None,
) -> Path:
    """The job file of a staging directory."""
    for name in ("data", "work", "logs"):
        (root / name).mkdir(parents=True, exist_ok=True)
    spec = {
        "id": kind,
        "key": "0" * 32,
        "kind": kind,
        "config": dict(config),
        "placement": dict(placement or {}),
        "contract": {},
        "inputs": {role: [str(p) for p in paths] for role, paths in inputs.items()},
        "input_objects": {},
        "leases": {},
        **{name: str(root / name) for name in ("work", "logs")},
        "out": str(root / "data"),
        "facts": str(root / "facts.json"),
        "progress": str(root / "progress.json"),
    }
    path = root / "job.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


SETTINGS: dict[str, dict[str, Any]] = {
    "sft": {"lr": 3e-3, "global_batch": 8, "max_length": 256},
    "dpo": {"lr": 1e-3, "global_batch": 8, "max_length": 256, "beta": 0.1},
    "critic": {"lr": 1e-3, "global_batch": 8, "max_length": 256, "beta": 0.1},
}


def lowered(
    kind: str, inputs: Iterable[str] = (), **settings: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(config, placement) of a stage with SETTINGS and `settings`, by the real lowering; `inputs`
    are roles that it has."""
    backend = {"sft": SFT, "dpo": DPO, "critic": CRITIC}[kind]
    return _lower(backend, {**SETTINGS[kind], **settings}, {role: (role,) for role in inputs})


def _lower(
    backend: StageBackend, values: dict[str, Any], inputs: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    declared = kind_named(backend.kind)
    assert declared is not None
    view = StageView(
        table=declared.fields,
        values=values,
        kind=backend.kind,
        inputs=inputs,
    )
    (draft,) = backend.lower(view, None)  # type: ignore[arg-type]
    assert not view.refusals, view.refusals
    return dict(draft.config), dict(draft.placement)


def trainer_job(
    root: Path, kind: str, inputs: Mapping[str, Sequence[Path]], **settings: Any
) -> Path:
    """A job file of trl.sft, trl.dpo or trl.critic."""
    config, placement = lowered(kind, inputs, **settings)
    return make_job(root, kind, config, inputs, placement)


def run_here(job_file: Path) -> Job:
    """Run a trainer's job in this process."""
    import importlib

    job = Job(job_file)
    job.config.read_as(EmptyInput)  # as the program around `train` does
    importlib.import_module(PROGRAM + job.spec["kind"]).train(job)
    return job


def start(job_file: Path, module: str | None = None) -> subprocess.Popen[str]:
    """Start a job program, a trainer's where none is named, as the runtime does, in a process group
    of its own."""
    module = module or PROGRAM + json.loads(job_file.read_text())["kind"]
    environment = dict(os.environ)
    paths = [str(REPOSITORY / "compiler"), str(REPOSITORY / "backends")]
    if module.startswith("tests."):
        paths.append(str(REPOSITORY))
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", module, str(job_file)],
        cwd=job_file.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_step(root: Path, step: int, process: Any) -> None:
    """Return once a running job has made so many steps."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        progress = root / "progress.json"
        if progress.exists() and json.loads(progress.read_text())["done"] >= step:
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    raise AssertionError("the job made no progress")


def launch(job_file: Path, module: str | None = None) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of a job program that is started as the runtime does it."""
    process = start(job_file, module)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def weights(root: Path) -> dict[str, Any]:
    """The tensors of a finished job."""
    from safetensors.torch import load_file

    return dict(load_file(root / "data" / "model.safetensors"))


def difference(first: Path, second: Path) -> float:
    """The largest absolute difference between the weights of two finished jobs."""
    a, b = weights(first), weights(second)
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


def steps(root: Path) -> list[dict[str, Any]]:
    """The lines of logs/steps.jsonl."""
    text = (root / "logs" / "steps.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def facts(root: Path) -> dict[str, Any]:
    """The facts that a job recorded."""
    return dict(json.loads((root / "facts.json").read_text(encoding="utf-8")))


def small_model(root: Path, rows: Sequence[dict[str, Any]] | None = None, **changes: Any) -> Path:
    """The checkpoint of a model.scratch job: a two-layer model over the words of these rows, or of
    these tests."""
    from agentc_backends.data.models.job_scratch import create_model

    corpus = write_rows(root / "corpus", "trajectories.jsonl", rows or trajectories(24))
    settings = {"hidden_size": 32, "layers": 2, "heads": 2, "context": 256, "vocab_size": 400}
    config, _ = _lower(SCRATCH, {**settings, **changes}, {"corpus": ("corpus",)})
    job = Job(make_job(root, "model", config, {"corpus": [corpus]}))
    create_model(job)
    return job.out


def without_pad_token(model: Path, folder: Path) -> Path:
    """A copy of a llama-2 model whose tokenizer is built as Llama's is (BPE with a fallback to
    bytes, `<unk>`, `<s>` and `</s>`), which has no token to pad with."""
    import shutil

    from tokenizers import Tokenizer, decoders, models, normalizers, trainers
    from transformers import AutoTokenizer, LlamaTokenizerFast

    vocabulary = len(AutoTokenizer.from_pretrained(str(model)))
    special = ["<unk>", "<s>", "</s>"]
    octets = [f"<0x{number:02X}>" for number in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    texts = [message["content"] for row in trajectories(24) for message in row["messages"]]
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=[*special, *octets], show_progress=False
        ),
    )
    # The bytes are ordinary tokens, which the trainer can only make as added ones.
    value = json.loads(tokenizer.to_str())
    value["added_tokens"] = [one for one in value["added_tokens"] if one["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(value))
    shutil.copytree(model, folder)
    fast = LlamaTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    fast.save_pretrained(str(folder))
    loaded = AutoTokenizer.from_pretrained(str(folder))
    assert (loaded.pad_token_id, loaded.eos_token) == (None, "</s>")
    assert len(loaded) <= vocabulary
    return folder


def limited(job: Path, seconds: float | None) -> Path:
    """The job, with so many seconds left; with None it has no limit."""
    spec = json.loads(job.read_text())
    spec.pop("stop_by", None)
    if seconds is not None:
        spec["stop_by"] = time.time() + seconds
    job.write_text(json.dumps(spec))
    return job
