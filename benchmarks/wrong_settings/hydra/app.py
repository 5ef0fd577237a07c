"""Both stages as a Hydra application with a typed (structured) configuration."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import hydra
from hydra.core.config_store import ConfigStore


@dataclass
class Sft:
    lr: float = 2e-5


@dataclass
class Dpo:
    split: str = "train"
    lr: float = 1e-6
    scheduler: str = "linear"
    warmup_ratio: float = 0.0
    global_batch: int = 8
    micro_batch: int = 4


@dataclass
class Config:
    sft: Sft = field(default_factory=Sft)
    dpo: Dpo = field(default_factory=Dpo)


ConfigStore.instance().store(name="schema", node=Config)


@hydra.main(version_base=None, config_path=".", config_name="config")
def main(config: Config) -> None:
    stage, dpo = str(Path(__file__).parent.with_name("stage.py")), config.dpo
    words = ["--data", "data/train.jsonl", "--lr", str(config.sft.lr), "--out", "out/sft"]
    subprocess.run([sys.executable, stage, *words], check=True)
    words = ["--data", f"data/{dpo.split}.jsonl", "--lr", str(dpo.lr), "--out", "out/dpo"]
    words += ["--scheduler", dpo.scheduler, "--warmup-ratio", str(dpo.warmup_ratio)]
    words += ["--global-batch", str(dpo.global_batch), "--micro-batch", str(dpo.micro_batch)]
    subprocess.run([sys.executable, stage, *words], check=True)


if __name__ == "__main__":
    main()
