"""Low-rank adapters: which TRL takes, and PEFT's configuration of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc.backend_api import StageView
from agentc.kinds.field import Json

_HEAD = "lm_head"


def read_adapters(view: StageView) -> Json:
    """`lora` of a stage, for the config of its job. Refuses adapters on the output embeddings."""
    targets = view.get("lora.targets") if view.get("lora") is not None else None
    for target in targets if isinstance(targets, list) else ():
        if str(target).rpartition(".")[2] == _HEAD:
            view.refuse(
                "lora.targets",
                f"`lora.targets` names `{target}`: TRL multiplies by the weights of `{_HEAD}` "
                "itself, so that an adapter on it would never be trained",
                fix=f"leave `{_HEAD}` out",
            )
    return view.get("lora")


def lora_config(lora: Mapping[str, Any] | None) -> Any:
    """The PEFT configuration of a `lora` mapping, or None."""
    if lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=lora["rank"],
        lora_alpha=lora["alpha"],
        lora_dropout=lora["dropout"],
        target_modules=lora["targets"] or "all-linear",
        task_type="CAUSAL_LM",
    )
