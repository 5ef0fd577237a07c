"""XTuner itself, in its own software stack: a whole small experiment, what its loader builds
from a job's files, and training that is cut off, shared by processes, or diverges."""

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

from agentc.program.settings import settings_from
from agentc_backends.software import TORCH, XTUNER
from agentc_backends.trainers.xtuner.config_file import MachineSettings, render
from agentc_backends.trainers.xtuner.schedule import length_of
from agentc_backends.trainers.xtuner.settings import XtunerSettings

HERE = Path(__file__).parent
SPEC = HERE / "small.yaml"
sys.path.insert(0, str(HERE.parents[1] / "support"))

from small_experiment import (  # noqa: E402
    Experiment,
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
    with_lost_gradient,
    without_pad_token,
)

pytestmark = pytest.mark.slow
STEPS, ACCUMULATION, BATCH = 6, 2, 2


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of XTuner's software stack."""
    return interpreter(XTUNER, SPEC)


@pytest.fixture(scope="module")
def experiment(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return run_experiment(SPEC, tmp_path_factory.mktemp("xtuner"))


Start = Callable[..., tuple["subprocess.Popen[str]", Path]]


def begin(
    python: Path,
    experiment: Experiment,
    staging: Path,
    *,
    processes: int = 1,
    time_left: float | None = None,
    model: Path | None = None,
    **settings: Any,
) -> subprocess.Popen[str]:
    """Start the training job of the experiment again, with other settings."""
    config = experiment.manifest("sft")["config"]
    return start_job(
        python,
        "agentc_backends.trainers.xtuner.job_sft",
        staging,
        kind="sft",
        config={**config, "settings": {**config["settings"], **settings}},
        inputs={
            "model": [model or experiment.place("model") / "data"],
            "data": [experiment.place("dataset") / "data"],
        },
        processes=processes,
        time_left=time_left,
    )


@pytest.fixture
def start(python: Path, experiment: Experiment, tmp_path: Path) -> Start:
    """`start(processes=..., setting=...)` -> the job's process and its staging folder."""

    def started(**settings: Any) -> tuple[subprocess.Popen[str], Path]:
        return begin(python, experiment, tmp_path / "job", **settings), tmp_path / "job"

    return started


@pytest.fixture(scope="module")
def again(python: Path, experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The staging folder of the same job, which was killed after its first checkpoint, and which
    then ran to its end; its work folder is there."""
    staging = tmp_path_factory.mktemp("again") / "job"

    def start(**settings: Any) -> subprocess.Popen[str]:
        return begin(python, experiment, staging, save_steps=2, **settings)

    note = staging / "work" / "xtuner-1" / "last_checkpoint"
    process = start()
    limit = time.monotonic() + PATIENCE_S
    while not note.exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(0.2)
    assert Path(note.read_text()).name != f"iter_{STEPS * ACCUMULATION}.pth", "killed too late"
    (staging / "work" / "xtuner-1" / "iter_99.pth").write_bytes(b"cut off while it was written")
    assert "Advance dataloader" in finish(start())
    return staging


@pytest.fixture(scope="module")
def found(python: Path, experiment: Experiment, again: Path) -> dict[str, Any]:
    """What XTuner builds from the files of that job."""
    given = {**experiment.manifest("sft")["config"]["settings"], "dtype": "bfloat16"}
    settings = settings_from(XtunerSettings, given)
    machine = MachineSettings(
        model="m", rows="r", work_dir="w", job_file="j", gpu=True, processes=8
    )
    with_gpus = again / "with_gpus.py"
    with_gpus.write_text(render(settings, length_of(settings, 64, 8), machine))
    config = again / "logs" / "xtuner_config.py"
    done = subprocess.run(
        [python, HERE / "built.py", with_gpus, config, "--launcher", "none"],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    value: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return value


def test_the_experiment_trains_and_is_evaluated(experiment: Experiment) -> None:
    manifest = experiment.manifest("sft")
    assert manifest["backend"] == "xtuner.sft"
    facts = manifest["facts"]
    assert (facts["rows"], facts["steps"], facts["world_size"]) == (16, STEPS, 1)
    # What the training process itself imported is recorded, not only what the job did.
    imported = manifest["software"]["imported"]
    assert {"xtuner", "mmengine"} <= set(imported)
    assert imported["transformers"] == "4.48.0"
    steps = steps_of(experiment.place("sft"))
    assert [line["step"] for line in steps] == list(range(1, STEPS + 1))
    assert steps[-1]["loss"] < steps[0]["loss"]
    assert experiment.manifest("evaluate")["inputs"]
    metrics = json.loads((experiment.place("evaluate") / "data/metrics.json").read_text())
    assert (metrics["n"], metrics["n_error"]) == (4, 0)
    # The embedded server gives what the trainer gave, and so do both tokenizers.
    agreement = experiment.manifest("rollout")["facts"]["log_prob_agreement"]
    assert (agreement["rows"], agreement["prompts"], agreement["other_prompts"]) == (8, 8, 0)
    assert agreement["mean"] < 1e-3


def test_the_checkpoint_is_the_input_with_other_weights(experiment: Experiment) -> None:
    before, after = (experiment.place(kind) / "data" for kind in ("model", "sft"))
    names = {path.name for path in before.iterdir()}
    assert {path.name for path in after.iterdir()} == {*names, "agentc_log_probs.json"}
    for name in names - {"model.safetensors"}:
        assert (after / name).read_bytes() == (before / name).read_bytes(), name
    assert (after / "model.safetensors").read_bytes() != (before / "model.safetensors").read_bytes()


def test_xtuner_builds_what_the_settings_say(again: Path, found: dict[str, Any]) -> None:
    assert found["optimizer"] == {
        "wrapper": "OptimWrapper",
        "class": "AdamW",
        "betas": [0.9, 0.95],
        "weight_decay": 0.1,
        "eps": 1e-8,
        "clip": {"max_norm": 0.5, "error_if_nonfinite": False},
        "accumulation": ACCUMULATION,
    }
    # Warm-up over ceil(0.2 * 6) steps, then a cosine over the four that are left.
    shares = [1e-5, 0.5, *(0.5 * (1 + math.cos(math.pi * k / 4)) for k in range(4))]
    assert found["lr"] == pytest.approx([2e-3 * share for share in shares], abs=2e-7)
    assert [line["lr"] for line in steps_of(again)] == pytest.approx(found["lr"], rel=1e-9)
    assert found["dtypes"] == ["torch.float32"]


def test_marked_replies_have_no_labels_in_the_data_that_xtuner_builds(
    again: Path, found: dict[str, Any]
) -> None:
    vocabulary = tokens_of(again / "work" / "model" / "tokenizer.json")
    for number, row in enumerate(found["rows"]):
        assert all(b in (a, -100) for a, b in zip(row["input_ids"], row["labels"], strict=True))
        everything = text_of(vocabulary, row["input_ids"])
        trained = text_of(vocabulary, [label for label in row["labels"] if label != -100])
        assert "a mistake" in everything
        replies = ["Thought: that was wrong. Action: craft 1", "<|im_end|>"]
        if number % 2 == 0:
            replies = ["Thought: a mistake.", *replies]
        assert all(reply in trained for reply in replies)
        assert ("a mistake" in trained) == (number % 2 == 0)
        assert "Could not find" not in trained
        assert trained.count("<|im_end|>") == 2 - number % 2
        assert not everything.startswith("<|endoftext|>"), "no token is put before the row"
    # Tokens without a label have no part in the loss, and so in no gradient.
    assert found["loss"]["xtuner"] == pytest.approx(found["loss"]["labelled"], abs=1e-5)
    labelled = sum(label != -100 for row in found["rows"] for label in row["labels"][1:])
    facts = json.loads((again / "facts.json").read_text())
    assert facts["trained_tokens"] == labelled
    # 24 rows were trained: all 16, and 8 of the second pass.
    assert labelled < sum(line["trained_tokens"] for line in steps_of(again)) < 2 * labelled


def test_the_rows_are_those_of_the_other_trainers(
    experiment: Experiment, found: dict[str, Any]
) -> None:
    """Tokenised by another release of transformers and tokenizers: the same ids and labels."""
    program = (
        "import json, sys\nfrom pathlib import Path\n"
        "from agentc.program.job import read_rows\n"
        "from agentc_backends.data.chat.rows import MaskRules, encode_rows\n"
        "from agentc_backends.data.chat.tokens import load_encoder\n"
        "rules = MaskRules(**json.loads(sys.argv[3]))\n"
        "rows = read_rows(Path(sys.argv[2]))\n"
        "sides, _ = encode_rows(load_encoder(Path(sys.argv[1])), rows, rules)\n"
        "print(json.dumps([{'input_ids': s.ids, 'labels': s.labels()} for s in sides]))"
    )
    argv = [
        interpreter(TORCH, SPEC), "-c", program, experiment.place("model") / "data",
        experiment.place("dataset") / "data" / "rows.jsonl",
        json.dumps(experiment.manifest("sft")["config"]["mask"]),
    ]  # fmt: skip
    done = subprocess.run(argv, env=variables(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert found["rows"] == json.loads(done.stdout.splitlines()[-1])


def tokens_of(path: Path) -> dict[int, str]:
    value = json.loads(path.read_text())
    found = {number: token for token, number in value["model"]["vocab"].items()}
    return {**found, **{one["id"]: one["content"] for one in value["added_tokens"]}}


def text_of(vocabulary: dict[int, str], ids: list[int]) -> str:
    """Byte-level tokens as text; enough for ASCII."""
    return "".join(vocabulary[i] for i in ids).replace("Ġ", " ").replace("Ċ", "\n")


def test_the_settings_of_a_machine_with_gpus_load_too(found: dict[str, Any]) -> None:
    """XTuner's loader resolves every class of the file; what needs a GPU is not built."""
    assert found["with_gpus"] == ["AmpOptimWrapper", "bfloat16", "nccl"]


def test_a_run_that_was_killed_ends_with_the_same_bits(experiment: Experiment, again: Path) -> None:
    whole, resumed = steps_of(experiment.place("sft")), steps_of(again)
    assert [line["step"] for line in resumed] == list(range(1, STEPS + 1))
    assert weights(again) == weights(experiment.place("sft"))
    assert resumed[-1]["num_tokens"] == whole[-1]["num_tokens"]


def test_two_processes_train_as_one(experiment: Experiment, start: Start) -> None:
    # Both stop at the same step for their time limit, and go on.
    process, staging = start(processes=2, accumulative_counts=1, time_left=0)
    finish_out_of_time(process, staging, STEPS)
    process, staging = start(processes=2, accumulative_counts=1)
    assert "Advance dataloader" in finish(process)
    one, two = steps_of(experiment.place("sft")), steps_of(staging)
    for name in ("loss", "lr", "grad_norm"):
        assert [line[name] for line in two] == pytest.approx([line[name] for line in one], rel=1e-4)
    for name in ("num_tokens", "trained_tokens"):
        assert [line[name] for line in two] == [line[name] for line in one]
    assert json.loads((staging / "facts.json").read_text())["world_size"] == 2
    # What both trained is put together before it is scored.
    found = rescored(interpreter(TORCH, SPEC), staging)
    assert (found["rows"], found["prompts"], found["dtype"]) == (8, 8, "float32")
    assert found["tokens"] > 8
    assert found["max"] < 1e-4


def test_each_number_is_what_the_rows_of_its_step_give(
    experiment: Experiment, start: Start, tmp_path: Path
) -> None:
    """Micro-batches of unequal numbers of trained tokens; a line of two steps is their mean. That
    processes share them to the same numbers is the test before."""
    model = without_pad_token(experiment.place("model") / "data", tmp_path / "model")
    process, staging = start(lr=1e-12, log_steps=2, model=model)
    finish(process)
    rows = (experiment.place("dataset") / "data" / "rows.jsonl").read_text().splitlines()
    expected = windows(
        by_hand(
            interpreter(TORCH, SPEC),
            "micro_batches",
            model=model,
            rows=[json.loads(row) for row in rows],
            mask=experiment.manifest("sft")["config"]["mask"],
            steps=STEPS,
            global_batch=ACCUMULATION * BATCH,
            micro_batch=BATCH,
            seed=3,
        ),
        every=2,
    )
    found = {line["step"]: line for line in steps_of(staging)}
    assert found.keys() == expected.keys()
    for number, numbers in expected.items():
        values = {name: found[number][name] for name in numbers}
        assert values == pytest.approx(numbers, rel=1e-4), number


def test_adapters_are_merged_and_packing_is_counted(experiment: Experiment, start: Start) -> None:
    lora = {"rank": 4, "alpha": 8.0, "dropout": 0.0, "targets": ["q_proj", "down_proj"]}
    process, staging = start(
        lora=lora, pack_to_max_length=True, max_length=64, batch_size=1, dtype="bfloat16"
    )
    finish(process)
    facts = json.loads((staging / "facts.json").read_text())
    assert facts["sequences"] == facts["tokens"] // 64
    before, after = (
        tensors(place / "data" / "model.safetensors")
        for place in (experiment.place("model"), staging)
    )
    changed = {name for name in before if before[name] != after[name]}
    layers = [f"model.layers.{number}" for number in range(2)]
    assert changed == {
        f"{layer}.{name}.weight"
        for layer in layers
        for name in ("self_attn.q_proj", "mlp.down_proj")
    }
    assert all(line["num_tokens"] % 64 == 0 for line in steps_of(staging))


def test_a_loss_that_is_no_number_ends_the_job_with_advice(start: Start) -> None:
    process, staging = start(lr=1e30, warmup_ratio=0.0, max_norm=0.0)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    last = output.strip().splitlines()[-1]
    assert last.startswith("xtuner.sft: the loss is nan at step ")
    assert last.endswith("lower lr, raise warmup_ratio or lower max_grad_norm")
    assert not (staging / "data" / "model.safetensors").exists()


@pytest.mark.long
def test_a_gradient_that_is_lost_ends_the_job_before_the_loss_is(
    experiment: Experiment, start: Start, tmp_path: Path
) -> None:
    """Its norm would be written as `Infinity`, which is no JSON."""
    model = with_lost_gradient(experiment.place("model") / "data", tmp_path / "model")
    process, staging = start(model=model)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    last = output.strip().splitlines()[-1]
    assert last.startswith("xtuner.sft: the loss is ")
    assert " at step 1, grad_norm inf; lower lr" in last
    assert not (staging / "logs" / "steps.jsonl").exists()
