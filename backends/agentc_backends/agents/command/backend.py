"""Declares `rollout.command` and lowers a rollout stage to its one job, which runs the program of
the user's own for each episode; the text of the program's files stands in the plan.

`command_job` also serves `evaluate.command`, which keeps episodes without a proof, too.
"""

from __future__ import annotations

from agentc.backend_api import (
    JobDraft,
    LeaseDraft,
    LowerContext,
    Software,
    StageBackend,
    StageView,
)
from agentc.kinds.field import Json
from agentc.kinds.interaction import RepeatedEpisodes
from agentc.kinds.settings import fields_of
from agentc_backends.agents.command.settings import CommandOptions
from agentc_backends.agents.common.lowering import (
    environment_leases,
    episode_config,
    prompt_config,
    refuse_marker,
)
from agentc_backends.agents.common.settings import PromptSeeds
from agentc_backends.agents.recording.lowering import recorded_job, refuse_drop_oldest, token_server
from agentc_backends.software import LIGHT
from agentc_backends.user_files.files import (
    file_entries,
    program_files,
    program_software,
    program_words,
    script_header,
)

_NEEDED = ("httpx2", "starlette", "uvicorn")
"""What the job itself needs of the software that it shares with the program."""

ID = "rollout.command"
VERSION = 2

OPTIONS = fields_of(CommandOptions)

UNUSED = {
    "prefix": "a program begins every episode at its start",
    "on_invalid": "the program reads its own replies",
}


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job that plays the episodes."""
    return (command_job(stage, context, name="", keeps_all=False),)


def command_job(stage: StageView, context: LowerContext, *, name: str, keeps_all: bool) -> JobDraft:
    """The job that lets the user's program play, reading through a view of its own. `keeps_all`:
    episodes of which no row can be proved are rows, too, marked as such."""
    view = stage.scoped()
    facts, prompt = context.environment_facts(view), context.prompt(view)
    words, main = program_words(view, ID, in_options=True)
    files = dict(program_files(view, main))
    header = script_header(view, files.get(main or "", ""), main)
    given = view.get("params")
    for path in ("run", "command", "sources"):
        view.get(path)
    server, tells = token_server(view, context, keeps_all=keeps_all)
    _refuse(view)
    refuse_marker(view, prompt)
    if prompt is not None and prompt.memory != "all":
        view.refuse(
            "prompt",
            f"prompt `{prompt.name}` forgets (`memory`), and a program keeps its own history",
            fix="give this stage a prompt without `memory`",
        )
    refuse_drop_oldest(view, "the program")
    software = _software(view)
    config: dict[str, Json] = {
        **episode_config(view, facts, prompt, RepeatedEpisodes),
        **view.config_of(PromptSeeds),
        "words": [*words],
        "python": main is not None,
        "files": file_entries(files),
        "params": header.merged_params(given if isinstance(given, dict) else {}),
    }
    return recorded_job(
        view,
        facts=facts,
        config=config,
        identity={
            "prompt": prompt_config(prompt),
            "files": {file: context.digest_of(file) for file in files},
        },
        tells=tells,
        keeps_all=keeps_all,
        name=name,
        backend=ID,
        version=VERSION,
        software=software,
        program=("-m", "agentc_backends.agents.command.job_command"),
        inputs={"model": stage.inputs["model"]},
        leases=(server, *_environment(view, context, software)),
    )


def _refuse(view: StageView) -> None:
    """What a program of others decides by itself."""
    if view.inputs.get("prefixes"):
        view.refuse("prefixes", "a program begins its own episodes", fix="remove it")
        # What is set for episodes without them is not reported as well.
        view.inputs = {role: made for role, made in view.inputs.items() if role != "prefixes"}
    if view.integer("candidates") > 1:
        view.refuse("candidates", "a program chooses its own replies", fix="remove it")


def _environment(
    view: StageView, context: LowerContext, software: Software
) -> tuple[LeaseDraft, ...]:
    """In the job's own process where that has the light jobs' software, else a server."""
    if software is LIGHT:
        return environment_leases(view, context)
    view.text("environment_at")
    return context.environment_leases(view, ())


def _software(view: StageView) -> Software:
    software = program_software(view)
    lacking = [name for name in _NEEDED if f"\n{name}==" not in f"\n{software.text}"]
    if lacking:
        view.refuse(
            "requirements",
            f"the lock lacks {' and '.join(lacking)}, which the job needs beside the program",
            fix="compile the lock with " + ", ".join(_NEEDED),
        )
    return software


BACKEND = StageBackend(
    id=ID,
    example="options: {run: agent.py}",
    kind="rollout",
    version=VERSION,
    doc="Episodes that a program of the user's own plays: it calls the policy through OpenAI's "
    "API, "
    "and acts through a door of the job. Rows are rebuilt of what was recorded, token by token; "
    "episodes without a proof are counted and left out.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"react", "react_inline", "action_only", "text", "resume",
                            "infrastructure_errors"}),
    options=OPTIONS,
    inputs=("model",),
    unused=UNUSED,
)  # fmt: skip
