"""How methods and steps of other tools are written that are no kind of their own here."""

from __future__ import annotations

from agentc.diagnostics.synonyms import folded

KIND_ADVICE: dict[str, str] = {
    **dict.fromkeys(
        (
            "rft",
            "rejection_sampling",
            "rejection_sampling_fine_tuning",
            "rest",
            "raft",
            "star",
            "expert_iteration",
        ),
        "rejection fine-tuning is `kind: sft` on the data of a rollout, with `min_reward: 1` or "
        "`best_per_task: 1`",
    ),
    **dict.fromkeys(
        ("lora", "qlora", "peft"),
        "LoRA is a setting of `kind: sft` and other trainers: write `lora: {rank: 16}` there",
    ),
    "ppo": "PPO is `kind: online_rl` with `algorithm: ppo`",
    "grpo": "GRPO is `kind: online_rl` with `algorithm: grpo`",
    "rloo": "RLOO is `kind: online_rl` with `algorithm: rloo`",
    "reinforce": "RLOO, of REINFORCE's family, is `kind: online_rl` with `algorithm: rloo`",
    "archer": "ArCHer is `kind: online_rl` with `algorithm: archer`",
    "chai": "CHAI is `kind: online_rl` with `algorithm: chai`",
    "filtered_bc": "filtered BC is `kind: online_rl` with `algorithm: filtered_bc`",
    **dict.fromkeys(("rl", "rlhf", "rlvr"), "write `kind: online_rl`, or `offline_rl` on data"),
    **dict.fromkeys(
        ("awr", "ilql", "offline_archer"),
        "write `kind: offline_rl`: a critic and advantage-weighted regression on played episodes",
    ),
    "ipo": "IPO is `kind: dpo` with `loss: ipo`",
    "hinge": "this is `kind: dpo` with `loss: hinge` (SLiC)",
    "slic": "SLiC is `kind: dpo` with `loss: hinge`",
    "rpo": "RPO is `kind: dpo` with `nll_weight`",
    "step_dpo": "this is `kind: dpo` on pairs of `kind: pair` with `contrast: step`",
    **dict.fromkeys(
        ("kto", "orpo", "simpo", "cpo", "bco", "sppo"),
        "not supported; preferences are trained by `kind: dpo` (`loss`: sigmoid, hinge or ipo, "
        "`nll_weight` for an SFT term)",
    ),
    **dict.fromkeys(
        ("rm", "reward_model", "reward_modeling", "prm", "orm"),
        "a model that scores is `kind: critic`, trained on pairs; rewards themselves come from "
        "the environment",
    ),
    **dict.fromkeys(
        ("pt", "pretrain", "pretraining", "cpt"),
        "pretraining is not supported; `kind: sft` trains on conversations",
    ),
    "eto": "ETO is rounds of `rollout`, `pair` and `dpo`: `agentc init` has specs/quickstart.yaml",
    **dict.fromkeys(
        ("distill", "distillation", "gkd"),
        "write `kind: rollout` with the teacher as `model`, and `kind: sft` on its episodes",
    ),
    **dict.fromkeys(
        ("serve", "server", "vllm"),
        "servers are entries of `servers:`; a stage that acts starts what it needs",
    ),
    **dict.fromkeys(
        ("merge", "merge_lora", "export"),
        "not needed: a checkpoint of `lora` is merged when it is saved; `agentc push` uploads it",
    ),
}


def advice_for_kind(kind: str) -> str | None:
    """How a method or a step is written that is no kind of its own."""
    return KIND_ADVICE.get(folded(kind))
