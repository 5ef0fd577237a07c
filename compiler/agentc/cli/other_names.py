"""What to type in place of a command that agentc does not have: a former command of its own, a
command of another tool, or a typing slip."""

from __future__ import annotations

from collections.abc import Collection, Mapping

FORMER: Mapping[str, str] = {
    "import": "init --from-archer",
    "cost": "plan --cost",
    "preflight": "plan --preflight",
    "compile": "bundle --bare",
    "runs": "status --all-runs",
    "claims": "report --claims",
    "provenance": "why --full",
    "list": "explain --list",
    "templates": "init --templates",
    "schema": "dev schema",
    "conformance": "dev conformance",
    "env": "software",
    "env-serve": "serve",
    "export": "dev export",
    "completion": "dev completion",
}
"""Former commands, and what replaced each."""

_OTHER_TOOLS: Mapping[tuple[str, ...], str] = {
    ("train", "fit", "eval", "evaluate", "test", "launch", "start", "exec"): (
        "trainings and evaluations are stages of a spec: `agentc run SPEC` runs them, "
        "`agentc run SPEC --until STAGE` up to one"
    ),
    ("resume", "continue", "retry"): "`agentc run SPEC` again resumes a run",
    ("clean", "rm", "remove", "delete", "prune", "gc"): (
        "`agentc store gc` lists what no run refers to, `agentc store gc --delete` removes it; "
        "`agentc software rm NAME` removes a software stack"
    ),
    ("log", "tail"): "`agentc logs STAGE` prints the log of a job, with -f as it grows",
    ("ls", "ps", "history"): (
        "`agentc status --all-runs` lists runs, `agentc store ls` results, `agentc status` the "
        "jobs of a run"
    ),
    ("show", "results"): "`agentc report` has the results of a run, `agentc plan SPEC` its jobs",
    ("validate", "lint"): "`agentc check SPEC` checks a spec",
    ("install", "sync"): "`agentc software sync SPEC` builds the software stacks of a spec",
    ("kill", "stop", "abort"): "`agentc cancel` ends a run",
    ("new", "create"): "`agentc init` lists the bundled specs and writes a new one",
    ("estimate", "price"): "`agentc plan --cost SPEC` estimates time, GPU-hours and disk",
    ("doctor", "verify"): "`agentc plan --preflight SPEC` looks for what a run would fail of",
    ("dag", "draw"): "`agentc graph SPEC` draws the stages of a spec",
    ("man", "docs"): "`agentc help COMMAND` describes a command, `agentc explain NAME` a setting",
}
"""Commands of other tools, and what does the same here."""


def former_command(typed: str) -> str | None:
    """The message about a former command: what replaced it."""
    return f"agentc {typed}: now `agentc {FORMER[typed]}`" if typed in FORMER else None


def hint_for(typed: str, commands: Collection[str]) -> str:
    """What to type in place of a command that does not exist."""
    from agentc.diagnostics.suggest import did_you_mean

    hint = next((text for names, text in _OTHER_TOOLS.items() if typed in names), None)
    return hint or did_you_mean(typed, commands) or f"commands: {', '.join(commands)}"
