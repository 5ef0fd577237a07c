"""What `benchmarks.mistakes` puts into each tool: a right configuration, and the edits that make
it wrong. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.rivals import AXOLOTL, DVC, HYDRA, LLAMA_FACTORY, OUMI, SNAKEMAKE, Rival

FOLDER = Path(__file__).resolve().parent

MISTAKES = {
    "key": "a misspelt key: `warmup_ration`",
    "idle": "a setting that has no effect: the strength of a preference loss on supervised "
    "training",
    "ignored": "a setting that the trainer would ignore: `warmup_ratio` under a constant schedule",
    "batch": "an impossible batch",
    "split": "a split that the data do not have: `dev`",
    "type": "a wrong type: the learning rate `fast`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replaces the one place in a file where `old` stands. `quote` is a regular expression for
    what the tool says about it; "" for a tool that says nothing."""

    file: str
    old: str
    new: str
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`files` are copied to a fresh directory, names without their folders. `steps` are commands
    with the moment that each stands for; `{bin}` is the folder of the tool's programs. A later
    step is tried only when those before it had nothing to say."""

    name: str
    rival: Rival | None
    files: tuple[str, ...]
    steps: tuple[tuple[str, tuple[str, ...]], ...]
    edits: dict[str, Edit]
    tiny_model: bool = False


BEFORE, START, STAGE = "before the start", "at the start of the run", "when its stage starts"

_TYPED = r"(?m)^.*(could not convert|could not be converted|invalid float value|not of type).*$"

_WORKFLOW_BATCH = r"(?m)^.*stage.py: error: .*$"

TOOLS = (
    Tool(
        name="agentc",
        rival=None,
        files=("agentc/spec.yaml",),
        steps=((BEFORE, ("{bin}/agentc", "check", "spec.yaml")),),
        edits={
            "key": Edit(
                file="spec.yaml",
                old="warmup_ratio: 0.1",
                new="warmup_ration: 0.1",
                quote=r"(?s)spec.yaml:\d+.*warmup_ratio`\?",
            ),
            "idle": Edit(
                file="spec.yaml",
                old="    lr: 2e-5",
                new="    lr: 2e-5\n    beta: 0.5",
                quote=r"(?s)spec.yaml:\d+.*kind dpo",
            ),
            "ignored": Edit(
                file="spec.yaml",
                old="scheduler: linear",
                new="scheduler: constant",
                quote=r"(?s)spec.yaml:\d+.*help: [^\n]*",
            ),
            "batch": Edit(
                file="spec.yaml",
                old="    global_batch: 8\n    micro_batch: 4",
                new="    global_batch: 10\n    micro_batch: 4",
                quote=r"(?s)spec.yaml:\d+.*help: [^\n]*",
            ),
            "split": Edit(
                file="spec.yaml",
                old="split: test",
                new="split: dev",
                quote=r"(?s)spec.yaml:\d+.*expected: [^\n]*",
            ),
            "type": Edit(
                file="spec.yaml",
                old="lr: 1e-6",
                new="lr: fast",
                quote=r"(?s)spec.yaml:\d+.*expected: [^\n]*",
            ),
        },
    ),
    Tool(
        name=f"DVC {DVC.version}",
        rival=DVC,
        files=("dvc/dvc.yaml", "dvc/params.yaml", "stage.py"),
        steps=(
            (BEFORE, ("{bin}/dvc", "status")),
            (STAGE, ("{bin}/dvc", "repro")),
        ),
        edits={
            "key": Edit(
                file="params.yaml",
                old="warmup_ratio: 0.1",
                new="warmup_ration: 0.1",
                quote=r"(?m)^.*warmup_ratio.*$",
            ),
            "idle": Edit(file="params.yaml", old="lr: 2.0e-5", new="lr: 2.0e-5\n  beta: 0.5"),
            "ignored": Edit(file="params.yaml", old="scheduler: linear", new="scheduler: constant"),
            "batch": Edit(
                file="params.yaml",
                old="global_batch: 8",
                new="global_batch: 10",
                quote=_WORKFLOW_BATCH,
            ),
            "split": Edit(
                file="params.yaml",
                old="split: train",
                new="split: dev",
                quote=r"(?m)^ERROR.*$",
            ),
            "type": Edit(
                file="params.yaml", old="lr: 1.0e-6", new="lr: fast", quote=_WORKFLOW_BATCH
            ),
        },
    ),
    Tool(
        name=f"Snakemake {SNAKEMAKE.version}, with a schema",
        rival=SNAKEMAKE,
        files=(
            "snakemake/Snakefile",
            "snakemake/config.yaml",
            "snakemake/config.schema.yaml",
            "stage.py",
        ),
        steps=(
            (BEFORE, ("{bin}/snakemake", "-n", "-c1")),
            (STAGE, ("{bin}/snakemake", "-c1")),
        ),
        edits={
            "key": Edit(
                file="config.yaml",
                old="warmup_ratio: 0.1",
                new="warmup_ration: 0.1",
                quote=r"(?m)^.*Additional properties.*$",
            ),
            "idle": Edit(
                file="config.yaml",
                old="lr: 2.0e-5",
                new="lr: 2.0e-5\n  beta: 0.5",
                quote=r"(?m)^.*Additional properties.*$",
            ),
            "ignored": Edit(file="config.yaml", old="scheduler: linear", new="scheduler: constant"),
            "batch": Edit(
                file="config.yaml",
                old="global_batch: 8",
                new="global_batch: 10",
                quote=_WORKFLOW_BATCH,
            ),
            "split": Edit(
                file="config.yaml",
                old="split: train",
                new="split: dev",
                quote=r"(?ms)^Missing input files.*?dev\.jsonl$",
            ),
            "type": Edit(file="config.yaml", old="lr: 1.0e-6", new="lr: fast", quote=_TYPED),
        },
    ),
    Tool(
        name=f"Hydra {HYDRA.version}, with a typed configuration",
        rival=HYDRA,
        files=("hydra/app.py", "hydra/config.yaml", "stage.py"),
        steps=(
            (BEFORE, ("{bin}/python", "app.py", "--cfg", "job", "--resolve")),
            (STAGE, ("{bin}/python", "app.py")),
        ),
        edits={
            "key": Edit(
                file="config.yaml",
                old="warmup_ratio: 0.1",
                new="warmup_ration: 0.1",
                quote=r"(?m)^.*Key 'warmup_ration'.*$",
            ),
            "idle": Edit(
                file="config.yaml",
                old="lr: 2.0e-5",
                new="lr: 2.0e-5\n  beta: 0.5",
                quote=r"(?m)^.*Key 'beta'.*$",
            ),
            "ignored": Edit(file="config.yaml", old="scheduler: linear", new="scheduler: constant"),
            "batch": Edit(
                file="config.yaml",
                old="global_batch: 8",
                new="global_batch: 10",
                quote=_WORKFLOW_BATCH,
            ),
            "split": Edit(
                file="config.yaml",
                old="split: train",
                new="split: dev",
                quote=r"(?m)^FileNotFoundError.*$",
            ),
            "type": Edit(file="config.yaml", old="lr: 1.0e-6", new="lr: fast", quote=_TYPED),
        },
    ),
    Tool(
        name=f"LLaMA-Factory {LLAMA_FACTORY.version}",
        rival=LLAMA_FACTORY,
        files=("trainers/llamafactory.yaml", "trainers/dataset_info.json"),
        steps=((START, ("{bin}/llamafactory-cli", "train", "llamafactory.yaml")),),
        edits={
            "key": Edit(
                file="llamafactory.yaml",
                old="warmup_ratio: 0.1",
                new="warmup_ration: 0.1",
                quote=r"(?m)^.*warmup_ration.*$",
            ),
            "idle": Edit(
                file="llamafactory.yaml", old="stage: sft", new="stage: sft\npref_beta: 0.5"
            ),
            "ignored": Edit(
                file="llamafactory.yaml",
                old="lr_scheduler_type: linear",
                new="lr_scheduler_type: constant",
            ),
            "batch": Edit(
                file="llamafactory.yaml",
                old="per_device_train_batch_size: 4",
                new="per_device_train_batch_size: 0",
                quote=r"(?m)^ValueError.*batch.*$",
            ),
            "split": Edit(
                file="dataset_info.json",
                old='"split": "train"',
                new='"split": "dev"',
                quote=r"(?m)^ValueError.*$",
            ),
            "type": Edit(
                file="llamafactory.yaml",
                old="learning_rate: 2.0e-5",
                new="learning_rate: fast",
                quote=r"(?m)^\w*Error.*$",
            ),
        },
        tiny_model=True,
    ),
    Tool(
        name=f"axolotl {AXOLOTL.version}",
        rival=AXOLOTL,
        files=("trainers/axolotl.yaml",),
        steps=(
            (BEFORE, ("{bin}/axolotl", "preprocess", "axolotl.yaml")),
            (START, ("{bin}/axolotl", "train", "axolotl.yaml")),
        ),
        edits={
            "key": Edit(
                file="axolotl.yaml",
                old="warmup_ratio: 0.1",
                new="warmup_ration: 0.1",
                quote=r"(?m)^.*(?i:unknown|extra|unrecognized|ignored).*warmup_ration.*$",
            ),
            "idle": Edit(file="axolotl.yaml", old="max_steps: 1", new="max_steps: 1\nrl_beta: 0.5"),
            "ignored": Edit(
                file="axolotl.yaml", old="lr_scheduler: linear", new="lr_scheduler: constant"
            ),
            "batch": Edit(
                file="axolotl.yaml",
                old="gradient_accumulation_steps: 2",
                new="batch_size: 10",
                quote=r"(?m)^.*batch_size is not recommended.*$",
            ),
            "split": Edit(
                file="axolotl.yaml",
                old="split: train",
                new="split: dev",
                quote=r"(?m)^ValueError.*$",
            ),
            "type": Edit(
                file="axolotl.yaml",
                old="learning_rate: 2.0e-5",
                new="learning_rate: fast",
                quote=_TYPED,
            ),
        },
        tiny_model=True,
    ),
    Tool(
        name=f"oumi {OUMI.version}",
        rival=OUMI,
        files=("trainers/oumi.yaml",),
        steps=((START, ("{bin}/oumi", "train", "-c", "oumi.yaml")),),
        edits={
            "key": Edit(
                file="oumi.yaml",
                old="warmup_ratio: 0.1",
                new="warmup_ration: 0.1",
                quote=r"(?ms)^Error.*?'TrainingParams'$",
            ),
            "idle": Edit(
                file="oumi.yaml", old="max_steps: 1", new="max_steps: 1\n  grpo: {temperature: 0.5}"
            ),
            "ignored": Edit(
                file="oumi.yaml",
                old="lr_scheduler_type: linear",
                new="lr_scheduler_type: constant",
            ),
            "batch": Edit(
                file="oumi.yaml",
                old="per_device_train_batch_size: 4",
                new="per_device_train_batch_size: 0",
                quote=r"(?m)^ValueError.*batch.*$",
            ),
            "split": Edit(file="oumi.yaml", old="split: train", new="split: dev"),
            "type": Edit(
                file="oumi.yaml",
                old="learning_rate: 2.0e-5",
                new="learning_rate: fast",
                quote=r"(?ms)^Error.*?to Float$",
            ),
        },
        tiny_model=True,
    ),
)
