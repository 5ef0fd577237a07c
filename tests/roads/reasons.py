"""Why each module has a value in hand: a module that comes onto a road has to be given a reason
here, or the value goes another way."""

from __future__ import annotations

from collections.abc import Mapping

_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "agentc/source": {
        "load": "makes a node with its place of each scalar of the text",
        "tree": "is that node; finds an entry by its key, past those of other keys",
        "scalars": "reads the text as a number, by YAML 1.2; says whether it holds an expression",
    },
    "agentc/schema": {
        "aliases": "replaces keys that other tools call differently, and keeps their values",
        "coerce": "holds the value to its field: type and bounds",
    },
    "agentc/front": {
        "expressions": "computes `{{ }}`, chooses the value of a round",
        "bind_stage": "takes the stage's value, that of `defaults`, or both of a group",
        "stage_values": "keeps what stages set, once for all rounds and cells",
        "resolve_entries": "makes the entries of `environments` and `servers`",
    },
    "agentc/backend_api": {
        "view": "gives the value to the backend, notes that it was read, makes the identity",
        "declare": "says which tasks an environment has under these settings",
        "parallel": "works out the sizes that a spec leaves open",
    },
    "agentc/ir": {
        "module": "is the body of stages, with the values that they share",
    },
    "agentc/passes": {
        "lower": "makes the jobs of all stages of a body",
    },
    "agentc/program": {
        "job": "gives the program its config",
        "settings": "makes the dataclass of the plan's settings, and holds them to their limits",
    },
    "agentc/passes/checks": {
        "subject": "gives rules the value in effect",
        "preferences": "rule: a plausible `beta`",
        "parallel": "rules: GPUs and heads that the size divides, GPUs that it leaves idle",
    },
    "agentc/passes/lowering": {
        "trial": "gives a stage to each backend that might do it, and keeps what nobody read",
        "module_context": "makes plain values of what a body sets",
        "leases": "has the lease of an entry drafted; says what else is in it: software, a model",
    },
    "agentc/plan": {
        "canonical": "makes plain JSON: what keys hash, what plan.json holds",
        "keys": "hashes the identity of a lease",
        "render": "writes the lease into plan.json",
    },
    "agentc/runtime": {
        "program": "reads the job's file: its config",
        "provision": "starts the servers of a job, watches them, names their logs",
    },
    "agentc/runtime/machine": {
        "supervise": "starts the command and watches it",
        "process": "is the one place that starts processes",
    },
    "agentc/runtime/software": {
        "host_requirements": "looks whether a server's words let it compile code",
    },
    "agentc/runtime/servers": {
        "server_process": "fills in port and files; starts the server",
        "server_log": "reads the cause of a failed start from its log",
        "job_leases": "reads the plan's lease; tells the job how to open an environment; "
        "compares what was opened with the plan",
    },
    "agentc/runtime/store": {
        "plan_file": "reads the entry of one job from the plan",
    },
    "agentc_backends/agents/command": {"backend": "is asked as well, for it plays episodes too"},
    "agentc_backends/agents/recording": {"lowering": "asks whether the server tells tokens"},
    "agentc_backends/agents/verifiers": {"backend": "is asked as well, for it plays episodes too"},
    "agentc_backends/environments": {
        "declaration": "makes the dataclass of the view's values, and the lease of it",
    },
    "agentc_backends/environments/server": {
        "settings": "writes the dataclass as JSON; states it in the identity",
        "environment": "is the base class, whose identity states the settings",
        "program": "imports the world's program and opens it with the settings; serves it, too",
        "world": "shows the settings in its identity",
    },
    "agentc_backends/environments/textcraft": {
        "backend": "declares; says how many tasks so deep a tree leaves",
        "environment": "makes the recipes and the tasks of its settings",
        "tasks": "**acts**: keeps goals that are no deeper",
    },
    "agentc_backends/servers": {
        "start_limit": "is the field of all servers that read weights, and its value in seconds",
    },
    "agentc_backends/servers/vllm": {
        "backend": "writes the word of the command line",
        "job_serve": "**acts**: vLLM's own command line",
    },
    "agentc_backends/trainers/common": {
        "lowering": "reads what all trainers have, puts the config into a draft",
        "step_log": "turns losses and gradients of the steps into facts",
    },
    "agentc_backends/trainers/openrlhf": {"backend": "is asked as well, for it trains DPO too"},
    "agentc_backends/trainers/trl": {
        "backend": "puts it into the arguments of the trainer",
        "job_dpo": "is the program",
        "session": "reads the config",
        "trainer_base": "is what both trainers inherit: leaves a model that is sharded alone",
        "trainers": "**acts**: the loss",
    },
}


def reason_of(module: str) -> str:
    """What a module does with the value. Raises ValueError where nobody has said it."""
    folder, _, name = module.removesuffix(".py").rpartition("/")
    reason = _PACKAGES.get(folder, {}).get(name)
    if reason is None:
        raise ValueError(f"{module} has a value in hand: say what for in {__file__}, or shorten it")
    return reason
