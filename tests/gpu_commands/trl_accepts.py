"""Run by the Python of TRL: its configurations of jobs, as the job programs make them, and the
model that each would train.

python trl_accepts.py < JSON list of jobs     prints a JSON line for each
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Begun(Exception):  # noqa: N818 - not an error
    """Raised where the trainer would be made; holds what it is given."""


def main() -> None:
    from agentc_backends.data.models.checkpoint import configure_libraries

    configure_libraries()
    import torch
    from meta_model import facts_of, meta_model
    from trl import DPOConfig, SFTConfig

    from agentc_backends.trainers.trl import session

    def weightless(directory: Path, layout: Any) -> Any:
        return meta_model(str(directory), dtype=torch.float32, attn_implementation=layout.attention)

    setattr(session, "load_with_layout", weightless)  # noqa: B010 - mypy
    for each in json.load(sys.stdin):
        with tempfile.TemporaryDirectory() as folder:
            job = _job(each, Path(folder))
            given = _begun(
                session,
                job,
                {"trl.sft": SFTConfig, "trl.dpo": DPOConfig, "trl.critic": DPOConfig},
                each,
            )
        args, model = given["args"], given["model"]
        if args.gradient_checkpointing:
            model.gradient_checkpointing_enable(args.gradient_checkpointing_kwargs)
        facts = {
            **facts_of(model),
            "adapters": given["peft_config"] is not None,
            "batch": args.per_device_train_batch_size * args.gradient_accumulation_steps,
            "bf16": args.bf16,
            "lr": args.learning_rate,
            "length": args.max_length,
            "optimizer": args.optim.value,
        }
        print(json.dumps(facts))


def _job(each: dict[str, Any], folder: Path) -> Any:
    from agentc.program.job import JobConfig

    config = JobConfig(each["config"])
    for name in each["config"]:
        config.get(name)  # what is about rows is read where they are
    return SimpleNamespace(
        config=config,
        gpus=0,  # the machine that builds this has none
        placement=each["placement"],
        work=folder,
        out=folder,
        input=lambda role: Path(each["model"]),
        inputs=lambda role: [Path(each["model"])],
    )


def _begun(session: Any, job: Any, classes: dict[str, Any], each: dict[str, Any]) -> Any:
    """What the job hands to its trainer."""

    def begin(**given: Any) -> None:
        raise Begun(given)

    def columns(empty: int) -> dict[str, list[Any]]:
        return {"input_ids": [[0]] * (1 + empty)}

    encoder = SimpleNamespace(tokenizer=None, pad=0)
    try:
        session.train_with(
            job, encoder, None, classes[each["backend"]], begin, columns, [1], [1], None
        )
    except Begun as begun:
        return begun.args[0]
    raise AssertionError("no trainer was made")


if __name__ == "__main__":
    main()
