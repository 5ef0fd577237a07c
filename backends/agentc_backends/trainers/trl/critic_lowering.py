"""How a critic stage is lowered: the arguments of its trainer, and the description of the critic
that is published with its weights (agentc_critic.json)."""

from __future__ import annotations

from agentc.backend_api import StageView
from agentc.kinds.field import Json
from agentc_backends.trainers.common.lowering import token_mask

_PAIRS_ALONE = "a value head is no log-ratio"


def critic_config(view: StageView, arguments: dict[str, Json]) -> dict[str, Json]:
    """The config of the job; `arguments` are those that all of TRL's trainers take."""
    if view.text("on_empty") == "keep_model":
        view.refuse(
            "on_empty",
            "a model that was trained on nothing ranks nothing",
            fix="leave it out: the stage fails where there is no pair",
        )
    head = view.text("parameterisation") == "value_head"
    critic: dict[str, Json] = {
        "parameterisation": view.text("parameterisation"),
        "beta": _beta(view, head),
        "template": _template(view),
        **(_of_a_head(view) if head else _of_log_ratios(view)),
        **_template_at(view, head),
    }
    config: dict[str, Json] = {
        "arguments": arguments,
        "critic": critic,
        "mask": token_mask(view, "assistant"),
        "save_dtype": view.text("save_dtype"),
        "lora": view.get("lora"),
    }
    if head:
        del arguments["max_length"]
        return config
    arguments["beta"] = critic["beta"]
    arguments["disable_dropout"] = True
    arguments["precompute_ref_log_probs"] = True
    config["nll_weight"] = view.number("nll_weight")
    if not config["nll_weight"]:
        view.leave("nll_reduction", "no likelihood is added without `nll_weight`")
    elif view.text("nll_reduction") == "row":
        config["nll_reduction"] = "row"
    return config


def _beta(view: StageView, head: bool) -> float:
    """The factor of a difference of scores; 1 where a single score is a logit."""
    if head and view.text("objective") == "binary_cross_entropy":
        view.leave("beta", "`objective: binary_cross_entropy` compares no scores")
        return 1.0
    if view.get("beta") is None:
        view.refuse(
            "beta",
            "`objective: bradley_terry` needs it: differences of scores are multiplied by it",
            fix="set beta, such as 0.1",
        )
        return 1.0
    return view.number("beta")


def _template(view: StageView) -> Json:
    if "privileged" in view.inputs:
        return view.text("template")
    view.leave("template", "there is no `privileged` input whose texts it could hold")
    return None


def _template_at(view: StageView, head: bool) -> dict[str, Json]:
    """The place of the hidden text and its template, if it is not the first message."""
    if "privileged" not in view.inputs:
        view.leave("template_at", "there is no `privileged` input whose texts it could place")
        return {}
    if view.text("template_at") == "first_message":
        return {}
    if head:
        view.refuse(
            "template_at",
            "a head reads hidden texts in the first message",
            fix="leave it out, or set parameterisation: log_ratio",
        )
    return {"template_at": "before_begin_of_text"}


def _of_log_ratios(view: StageView) -> dict[str, Json]:
    if view.text("objective") != "bradley_terry":
        view.refuse(
            "objective",
            "log-ratios compare trajectories; a reward is told by a head",
            fix="set parameterisation: value_head, or leave objective out",
        )
    view.leave("pooling", "log-ratios pool no states")
    sees = "history"
    if "privileged" in view.inputs:
        sees = view.text("reference_sees")
    else:
        view.leave("reference_sees", "there is no `privileged` input that it could read")
    return {
        "objective": "bradley_terry",
        "normalisation": view.text("normalisation"),
        "reference_sees": sees,
    }


def _of_a_head(view: StageView) -> dict[str, Json]:
    for name in ("normalisation", "reference_sees", "nll_weight", "nll_reduction"):
        view.leave(name, _PAIRS_ALONE)
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
    return {
        "objective": view.text("objective"),
        "pooling": view.text("pooling"),
        "normalisation": "none",
        "reference_sees": "history",
    }
