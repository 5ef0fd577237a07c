"""Declares `env.colbench_backend`: ColBench's programming tasks, served by `job_serve.py`.

Splits of files are resolved here, so that lists which share a task are a compile error and keys
follow what files hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import (
    EnvironmentBackend,
    ExpectedExpert,
    LeaseDraft,
    OptionView,
    SimulatorRole,
)
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.environments.colbench.declaration import (
    configured,
    expected_tasks,
    split_rules,
    split_tasks,
    text_digest,
)
from agentc_backends.environments.colbench.settings import PLACES, ColBenchSettings, lacking_places
from agentc_backends.environments.colbench.tasks import INVENTED, OWN, digest, read_tasks
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.published_data import COLBENCH_BACKEND
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.software import LIGHT, SANDBOX

_ROUNDS = ColBenchSettings().rounds


_ORIGIN = (
    f"`agentc data fetch {COLBENCH_BACKEND.name}` gets ColBench's tasks; without `tasks` they are "
    "invented"
)


def _lease(options: OptionView) -> LeaseDraft:
    invented = options.text("tasks") == INVENTED
    settings = effective(options, ColBenchSettings)
    rules = split_rules(options, settings)
    identity = options.identity()
    expect: dict[str, Json] = {"options": {**rules_of(settings), "invented": invented}}
    if not invented or any(rule.file for rule in rules.values()):
        tasks = split_tasks(options, settings, rules, read_tasks, _ORIGIN)
        found = "" if tasks is None else digest(tasks)
        settings = replace(settings, tasks_sha256=found)
        # Keys follow what files hold, wherever they lie.
        identity = {name: v for name, v in identity.items() if name not in ("tasks", "splits")}
        identity["tasks_sha256"] = expect["tasks_sha256"] = found
    digest_of_prompt = text_digest(
        options,
        "human_prompt",
        settings.human_prompt,
        _prompt_fault,
        fix="name a text with {" + "}, {".join(PLACES) + "} in it",
    )
    if digest_of_prompt is not None:
        settings = replace(settings, human_prompt_sha256=digest_of_prompt)
        identity = {**identity, "human_prompt": digest_of_prompt}
    expect["human_prompt_sha256"] = digest_of_prompt
    lease = environment_lease(
        BACKEND,
        options,
        settings,
        identity=identity,
        expect=expect,
        # Boxes are tried, references run, and other jobs may start at the same time.
        ready_timeout_s=300.0,
        needs=("simulator",) if settings.human == "model" else (),
    )
    return replace(lease, software=LIGHT if invented else SANDBOX)


def _prompt_fault(words: str) -> str:
    lacking = lacking_places(words)
    return f"has no place {{{lacking[0]}}}" if lacking else ""


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    return configured(BACKEND, given)


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    return expected_tasks(given, ColBenchSettings().invented_tasks)


def _expected_expert(given: Mapping[str, Json]) -> ExpectedExpert:
    """Means over invented tasks: two or three questions, and a function of six lines."""
    careless = given.get("careless")
    share = careless if isinstance(careless, int | float) else 0.0
    return ExpectedExpert(
        turns=1 + 2.5 * (1 - share), prompt=40, reply=25, observation=8, factor=1.3
    )


BACKEND = EnvironmentBackend(
    id="env.colbench_backend",
    # 1: values of other types than Python's plain ones equalled nothing, and `published` forbade no
    # words
    version=2,
    doc="ColBench's programming tasks: an agent questions a human who knows the reference, and "
    "answers with a "
    "Python function, which is tested in a sandbox. Invented tasks, or ColBench's own from a file.",
    software=LIGHT,
    builds=(SANDBOX,),
    lease=_lease,
    fields=fields_of(ColBenchSettings),
    splits=OWN,
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=_ROUNDS,
    expected_tasks=_expected_tasks,
    expected_expert=_expected_expert,
    configured=_configured,
    sandbox_setting="sandbox",
    simulators=(SimulatorRole(name="simulator", doc="The human, under `human: model`."),),
    capabilities=frozenset({"expert", "fork", "snapshot", "privileged"}),
    data_sets=(COLBENCH_BACKEND,),
)
