"""How a critic stage is lowered: the arguments of its trainer, and the description of the critic
that is published with its weights (agentc_critic.json)."""

from __future__ import annotations

from agentc.backend_api import StageView
from agentc.kinds.field import Json
from agentc.kinds.training import CriticLikelihood, CriticScore
from agentc_backends.trainers.common.lowering import token_mask


def critic_config(view: StageView, arguments: dict[str, Json]) -> dict[str, Json]:
    """The config of the job; `arguments` are those that all of TRL's trainers take."""
    if view.text("on_empty") == "keep_model":
        view.refuse(
            "on_empty",
            "a model that was trained on nothing ranks nothing",
            fix="leave it out: the stage fails where there is no pair",
        )
    head = view.text("parameterisation") == "value_head"
    compares = not head or view.text("objective") == "bradley_terry"
    without = {} if compares else {"beta": "`objective: binary_cross_entropy` compares no scores"}
    beta = _beta(view) if compares else 1.0
    if head:
        _refuse_beside_a_head(view)
    elif view.text("objective") != "bradley_terry":
        view.refuse(
            "objective",
            "log-ratios compare trajectories; only a head predicts a reward",
            fix="set parameterisation: value_head, or leave objective out",
        )
    critic: dict[str, Json] = {
        "template": None,
        "normalisation": "none",
        "reference_sees": "history",
        **view.config_of(CriticScore, without=without),
        "beta": beta,
    }
    config: dict[str, Json] = {
        "arguments": arguments,
        "critic": critic,
        "mask": token_mask(view, "assistant"),
        "save_dtype": view.text("save_dtype"),
        "lora": view.get("lora"),
        **view.config_of(CriticLikelihood),
    }
    if head:
        del arguments["max_length"]
        return config
    arguments["beta"] = beta
    arguments["disable_dropout"] = True
    arguments["precompute_ref_log_probs"] = True
    return config


def _beta(view: StageView) -> float:
    """The factor of a difference of scores."""
    if view.get("beta") is None:
        view.refuse(
            "beta",
            "`objective: bradley_terry` needs it: differences of scores are multiplied by it",
            fix="set beta, such as 0.1",
        )
        return 1.0
    return view.number("beta")


def _refuse_beside_a_head(view: StageView) -> None:
    if view.text("sharding") != "none":
        view.refuse(
            "sharding",
            "trl.critic trains a head beside a model that every process holds whole",
            fix="leave sharding out, or set parameterisation: log_ratio",
        )
    if view.get("lora") is not None:
        view.refuse(
            "lora",
            "trl.critic trains a head with all weights of its model",
            fix="leave lora out, or set parameterisation: log_ratio",
        )
    if "reference" in view.inputs:
        view.refuse(
            "parameterisation",
            "a value head is compared with no reference",
            fix="leave `reference` out, or set parameterisation: log_ratio",
        )
    if "privileged" in view.inputs and view.text("template_at") != "first_message":
        view.refuse(
            "template_at",
            "a head reads hidden texts in the first message",
            fix="leave it out, or set parameterisation: log_ratio",
        )
