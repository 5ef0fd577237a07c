"""OpenRLHF itself, in its own software stack: a whole small experiment, what its parsers make
of the flags, and training that is cut off, cut into micro-batches, or shared by processes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import StageBackend, StageView
from agentc.kinds import kind_named
from agentc_backends.software import OPENRLHF, TORCH
from agentc_backends.trainers.openrlhf.backend import DPO, SFT

HERE = Path(__file__).parent
SPEC = HERE / "small.yaml"
sys.path.insert(0, str(HERE.parents[1] / "support"))

from small_experiment import (  # noqa: E402
    ITEMS,
    Experiment,
    conversation,
    interpreter,
    run_experiment,
    start_job,
)
from tests.support.patience import PATIENCE_S  # noqa: E402
from training_job import (  # noqa: E402
    by_hand,
    finish,
    finish_out_of_time,
    rescored,
    steps_of,
    tensors,
    variables,
    weights,
    windows,
    without_pad_token,
)

pytestmark = pytest.mark.slow
STEPS = 6
SETTINGS: dict[str, dict[str, Any]] = {
    "sft": {"lr": 2e-3, "global_batch": 6, "max_length": 512, "dtype": "bfloat16"},
    "dpo": {"lr": 1e-3, "global_batch": 6, "max_length": 512, "dtype": "bfloat16", "beta": 0.1,
            "nll_weight": 0.5}}  # fmt: skip


def pair(number: int) -> dict[str, Any]:
    """A preference between two continuations of unequal length."""
    item = ITEMS[number % 4]
    good = {"role": "assistant", "content": f"Thought: right. Action: craft {number} {item}"}
    bad = {"role": "assistant", "content": f"Thought: that was wrong. Action: get {item}"}
    seen = {"role": "user", "content": f"Could not find {item}"}
    return {
        "id": f"p{number}",
        "prompt": conversation(number)[:1],
        "chosen": [good],
        "rejected": [bad, seen, good] if number % 2 else [bad],
    }


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of OpenRLHF's software stack."""
    return interpreter(OPENRLHF, SPEC)


@pytest.fixture(scope="module")
def experiment(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return run_experiment(SPEC, tmp_path_factory.mktemp("openrlhf"))


def lowered(backend: StageBackend, **settings: Any) -> dict[str, Any]:
    """The config of a stage with SETTINGS and `settings`."""
    kind = kind_named(backend.kind)
    assert kind is not None
    view = StageView(
        table=(*kind.fields, *backend.options),
        values={**SETTINGS[backend.kind], **settings},
        kind=backend.kind,
        inputs={},
    )
    (draft,) = backend.lower(view, None)  # type: ignore[arg-type]
    assert view.refusals == []
    return dict(draft.config)


Start = Callable[..., tuple["subprocess.Popen[str]", Path]]


@pytest.fixture
def start(python: Path, experiment: Experiment, tmp_path: Path) -> Start:
    return starts(python, experiment, tmp_path)


@pytest.fixture(scope="module")
def whole(python: Path, experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The staging folder of a DPO of two epochs that nothing disturbed."""
    process, staging = starts(python, experiment, tmp_path_factory.mktemp("dpo"))("dpo", epochs=2)
    finish(process)
    return staging


def starts(python: Path, experiment: Experiment, folder: Path) -> Start:
    """Starts a training job on the model of the experiment: the process and its staging folder,
    which a second start with the same name continues."""

    def begin(
        kind: str,
        name: str = "job",
        *,
        time_left: float | None = None,
        pairs: int = 16,
        models: dict[str, list[Path]] | None = None,
        **settings: Any,
    ) -> tuple[subprocess.Popen[str], Path]:
        staging = folder / name
        data = experiment.place("dataset") / "data"
        if kind == "dpo":
            data = staging / "rows"
            data.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(pair(number)) + "\n" for number in range(pairs)]
            (data / "pairs.jsonl").write_text("".join(lines))
        process = start_job(
            python,
            f"agentc_backends.trainers.openrlhf.job_{kind}",
            staging,
            kind=kind,
            config=lowered({"sft": SFT, "dpo": DPO}[kind], **settings),
            inputs={
                "model": [experiment.place("model") / "data"],
                "data": [data],
                **(models or {}),
            },
            processes=settings.get("processes", 1),
            time_left=time_left,
        )
        return process, staging

    return begin


def dtypes(path: Path) -> set[str]:
    """The types of the tensors of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return {one["dtype"] for name, one in header.items() if name != "__metadata__"}


def test_the_experiment_trains_and_is_evaluated(experiment: Experiment) -> None:
    manifest = experiment.manifest("sft")
    assert manifest["backend"] == "openrlhf.sft"
    facts = manifest["facts"]
    # 16 rows, 6 a step: the last step of each of the two epochs has 4.
    assert (facts["rows"], facts["steps"], facts["world_size"]) == (16, STEPS, 1)
    assert 0 < facts["trained_tokens"] < facts["tokens"]
    imported = manifest["software"]["imported"]
    assert (imported["openrlhf"], imported["deepspeed"]) == ("0.11.2", "0.19.6")
    steps = steps_of(experiment.place("sft"))
    assert [line["step"] for line in steps] == list(range(1, STEPS + 1))
    assert steps[-1]["loss"] < steps[0]["loss"]
    assert steps[-1]["num_tokens"] == 2 * facts["tokens"]
    # Warm-up over ceil(0.2 * 6) steps, then a cosine over the four that are left.
    shares = [0.0, 0.5, *(0.5 * (1 + math.cos(math.pi * k / 4)) for k in range(4))]
    assert [line["lr"] for line in steps] == pytest.approx([2e-3 * share for share in shares])
    metrics = json.loads((experiment.place("evaluate") / "data/metrics.json").read_text())
    assert (metrics["n"], metrics["n_error"]) == (4, 0)
    # The embedded server gives what the trainer gave, and so do both tokenizers.
    agreement = experiment.manifest("rollout")["facts"]["log_prob_agreement"]
    assert (agreement["rows"], agreement["prompts"], agreement["other_prompts"]) == (8, 8, 0)
    assert agreement["mean"] < 0.02


def test_the_checkpoint_is_the_input_with_other_weights(experiment: Experiment) -> None:
    before, after = (experiment.place(kind) / "data" for kind in ("model", "sft"))
    names = {path.name for path in before.iterdir()}
    assert {path.name for path in after.iterdir()} == {*names, "agentc_log_probs.json"}
    for name in names - {"model.safetensors", "config.json"}:
        assert (after / name).read_bytes() == (before / name).read_bytes(), name
    configs = [json.loads((place / "config.json").read_text()) for place in (before, after)]
    assert configs[1] == {**configs[0], "dtype": "bfloat16"}
    assert dtypes(after / "model.safetensors") == {"BF16"}


FLAGS: dict[str, Any] = {
    "processes": 2,
    "micro_batch": 1,
    "adam_beta2": 0.95,
    "gradient_checkpointing": True,
    "lora": {"rank": 4, "dropout": 0.25, "targets": ["q_proj", "v_proj"]},
    "seed": 7,
}


@pytest.fixture(scope="module")
def library(python: Path) -> dict[str, Any]:
    """What OpenRLHF makes of both command lines, and of some pairs."""
    lines = {one.kind: [*map(str, lowered(one, **FLAGS)["flags"])] for one in (SFT, DPO)}
    done = subprocess.run(
        [python, HERE / "library.py", json.dumps(lines)],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("backend", [SFT, DPO], ids=lambda backend: backend.id)
def test_openrlhf_reads_the_flags_as_they_were_meant(
    library: dict[str, Any], backend: StageBackend
) -> None:
    found = library[backend.kind]
    listed = json.loads((HERE / "flags_0.11.2.json").read_text())
    assert found["flags"] == listed[backend.kind]
    expected = {
        "--train.batch_size": 6,
        "--train.micro_batch_size": 1,
        "--train.seed": 7,
        "--adam.lr": SETTINGS[backend.kind]["lr"],
        "--adam.betas": [0.9, 0.95],
        "--max_norm": 1.0,
        "--lr_scheduler": "linear",
        "--lr_warmup_ratio": 0.0,
        "--ds.param_dtype": "bf16",
        "--ds.zero_stage": 2,
        "--ds.lora.rank": 4,
        "--ds.lora.alpha": 16,
        "--ds.lora.dropout": 0.25,
        "--ds.lora.target_modules": ["q_proj", "v_proj"],
        "--model.gradient_checkpointing_enable": True,
    }
    if backend is DPO:
        expected |= {"--model.beta": 0.1, "--model.nll_loss_coef": 0.5}
        assert found["values"]["--model.ipo_enable"] is False
    assert {flag: found["values"][flag] for flag in expected} == expected


def test_pairs_without_masks_or_empty_places_are_scored_as_in_stock_openrlhf(
    library: dict[str, Any],
) -> None:
    found = library["losses"]
    for theirs, ours in (found["sums"], found["means"]):
        assert ours == pytest.approx(theirs, abs=1e-6)
    stock, whole, filled = found["losses"]
    assert whole == stock
    # Two pairs beside two empty places: their mean is the loss of the step.
    assert filled == pytest.approx(stock, rel=1e-6)


def test_a_dpo_that_its_limit_ends_and_one_killed_go_on_and_end_with_the_same_bits(
    start: Start, whole: Path
) -> None:
    lines = steps_of(whole)
    assert lines[0]["rewards/margins"] == 0
    assert lines[0]["loss"] == pytest.approx(math.log(2) + 0.5 * lines[0]["nll_loss"], abs=1e-5)
    assert lines[-1]["loss"] < lines[0]["loss"]

    process, cut = start("dpo", "cut", epochs=2, save_every=4, time_left=0)
    finish_out_of_time(process, cut, STEPS)
    assert (cut / "work" / "checkpoints" / "global_step1" / "complete").exists()

    process, cut = start("dpo", "cut", epochs=2, save_every=1)
    mark = cut / "work" / "checkpoints" / "global_step3" / "complete"
    limit = time.monotonic() + PATIENCE_S
    while not mark.exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(steps_of(cut)) < STEPS, "killed too late"
    process, _ = start("dpo", "cut", epochs=2, save_every=1)
    output = finish(process)
    assert "Loaded the checkpoint" in output
    assert weights(cut) == weights(whole)
    for resumed, line in zip(steps_of(cut), lines, strict=True):
        assert (resumed["loss"], resumed["lr"]) == (line["loss"], line["lr"])


def test_neither_micro_batches_nor_processes_change_the_result(start: Start, whole: Path) -> None:
    """They are placement fields and never enter a key. Gradients are summed in bfloat16, so the
    sums differ in its last digits; the last step of an epoch (4 rows of 6) is the hard case."""
    settings = {"processes": 2, "micro_batch": 1, "epochs": 2}
    # Both processes stop at the same step for their time limit.
    process, staging = start("dpo", time_left=0, **settings)
    finish_out_of_time(process, staging, STEPS, status=0)
    process, staging = start("dpo", **settings)
    assert "Loaded the checkpoint" in finish(process)
    assert json.loads((staging / "facts.json").read_text())["world_size"] == 2
    for one, parts in zip(steps_of(whole), steps_of(staging), strict=True):
        assert parts["loss"] == pytest.approx(one["loss"], abs=2e-3)
        assert parts["grad_norm"] == pytest.approx(one["grad_norm"], rel=2e-2)
    assert_scored_as_left(staging)


@pytest.mark.long
def test_processes_that_share_the_weights_leave_scores_of_the_whole_model(start: Start) -> None:
    """With stage 3 no process has all weights: they score the same rows together."""
    process, staging = start("sft", processes=2, micro_batch=1, zero_stage=3, epochs=1)
    finish(process)
    assert_scored_as_left(staging)


def assert_scored_as_left(staging: Path) -> None:
    """The model is left in 16 bits, in which it was scored."""
    found = rescored(interpreter(TORCH, SPEC), staging)
    assert (found["rows"], found["prompts"], found["dtype"]) == (8, 8, "bfloat16")
    assert found["tokens"] > 8
    assert found["mean"] < 0.02


def assert_by_hand(staging: Path, lines: list[dict[str, float]], every: int) -> None:
    """OpenRLHF computes in bfloat16, which has three digits."""
    expected = windows(lines, every)
    found = {line["step"]: line for line in steps_of(staging)}
    assert found.keys() == expected.keys()
    for number, line in found.items():
        names = line.keys() - {"step", "lr", "tokens_per_s", "grad_norm", "nll_loss"}
        for name in names:
            near = pytest.approx(expected[number][name], rel=3e-2, abs=3e-2)
            assert line[name] == near, (number, name)
        assert line["num_tokens"] == expected[number]["num_tokens"]


def test_each_number_of_a_dpo_is_what_the_pairs_of_its_step_give(
    start: Start, experiment: Experiment, tmp_path: Path
) -> None:
    """13 pairs, 6 a step, 3 a process: in the last step one process has empty places alone."""
    policy, reference = (
        without_pad_token(experiment.place(kind) / "data", tmp_path / kind)
        for kind in ("model", "sft")
    )
    models = {"model": [str(policy)], "reference": [str(reference)]}
    settings = {"epochs": 1, "lr": 1e-12, "processes": 2, "micro_batch": 3, "nll_weight": 0.0}
    process, staging = start("dpo", pairs=13, models=models, **settings)
    finish(process)
    lines = by_hand(
        interpreter(TORCH, SPEC),
        "dpo",
        model=policy,
        reference=reference,
        rows=[pair(number) for number in range(13)],
        mask=lowered(DPO)["mask"],
        beta=0.1,
        nll_weight=0.0,
        global_batch=6,
        epochs=1,
    )
    assert_by_hand(staging, lines, every=1)


def test_each_number_of_an_sft_is_what_the_rows_of_its_step_give(
    start: Start, experiment: Experiment
) -> None:
    """16 rows, 6 a step: the last one of an epoch has 4. A line of two steps is their mean."""
    settings = {"epochs": 2, "lr": 1e-12, "micro_batch": 2, "log_every": 2}
    process, staging = start("sft", **settings)
    finish(process)
    rows = (experiment.place("dataset") / "data" / "rows.jsonl").read_text().splitlines()
    lines = by_hand(
        interpreter(TORCH, SPEC),
        "sft",
        model=experiment.place("model") / "data",
        rows=[json.loads(row) for row in rows],
        mask=lowered(SFT)["mask"],
        global_batch=6,
        epochs=2,
    )
    assert_by_hand(staging, lines, every=2)


def test_adapters_are_merged(start: Start, experiment: Experiment) -> None:
    process, staging = start("sft", lora={"rank": 4, "targets": ["q_proj"]}, lr=1e-2, epochs=2)
    finish(process)
    before, after = (
        tensors(place / "data" / "model.safetensors")
        for place in (experiment.place("model"), staging)
    )
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"model.layers.{layer}.self_attn.q_proj.weight" for layer in range(2)}
    assert not list((staging / "data").glob("adapter*"))


def test_an_update_that_deepspeed_leaves_out_ends_the_job_with_advice(start: Start) -> None:
    process, staging = start("sft", lr=1e30, max_grad_norm=0.0, epochs=2)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    last = output.strip().splitlines()[-1]
    assert last.startswith("openrlhf.sft: the gradient is not finite at step ")
    assert "lower lr, raise warmup_ratio or lower max_grad_norm" in last
    assert not (staging / "data" / "model.safetensors").exists()
