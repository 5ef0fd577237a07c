"""Declares `env.colbench_backend`: ColBench's programming tasks, served by `job_serve.py`.

Splits of files are resolved here, so that lists which share a task are a compile error and keys
follow what files hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentc.backend_api import (
    EnvironmentBackend,
    ExpectedExpert,
    LeaseDraft,
    OptionView,
    SimulatorRole,
)
from agentc.kinds.field import Json
from agentc_backends.environments.colbench.humans.prompt import PLACES, lacking_places
from agentc_backends.environments.colbench.settings import INVENTED, ColBenchSettings
from agentc_backends.environments.colbench.splits import (
    DEFAULT,
    OWN,
    SHARES,
    SplitRule,
    read_rules,
    resolve,
)
from agentc_backends.environments.colbench.tasks import (
    CodeTask,
    TasksError,
    digest,
    read_tasks,
)
from agentc_backends.environments.declaration import effective, environment_lease, fields_of
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import SplitError
from agentc_backends.software import LIGHT, SANDBOX

_ROUNDS = ColBenchSettings().rounds
_OF_INVENTED = ("family", "invented_tasks", "invented_seed", "careless", "wander")
_OF_MODEL = ("human_temperature", "human_max_tokens", "human_prompt")
_WHERE = (
    "ColBench's tasks are facebook/collaborative_agent_bench on Hugging Face (not ours to ship); "
    "without `tasks` they are invented"
)


def _lease(options: OptionView) -> LeaseDraft:
    invented = options.text("tasks") == INVENTED
    left = _left(options, invented)
    settings = effective(options, ColBenchSettings, left)
    rules = _rules(options, settings)
    identity = options.identity()
    expect: dict[str, Json] = {"options": {**rules_of(settings), "invented": invented}}
    if not invented or any(rule.file for rule in rules.values()):
        found = _digest(options, settings, rules)
        settings = replace(settings, tasks_sha256=found)
        # Keys follow what files hold, wherever they lie.
        identity = {name: v for name, v in identity.items() if name not in ("tasks", "splits")}
        identity["tasks_sha256"] = expect["tasks_sha256"] = found
    digest_of_prompt = _prompt_digest(options, settings)
    if digest_of_prompt is not None:
        settings = replace(settings, human_prompt_sha256=digest_of_prompt)
        identity = {**identity, "human_prompt": digest_of_prompt}
    expect["human_prompt_sha256"] = digest_of_prompt
    lease = environment_lease(
        BACKEND,
        options,
        settings,
        left=left,
        identity=identity,
        expect=expect,
        # Boxes are tried, references run, and other jobs may start at the same time.
        ready_timeout_s=300.0,
        needs=("simulator",) if settings.human == "model" else (),
    )
    return replace(lease, software=LIGHT if invented else SANDBOX)


def _left(options: OptionView, invented: bool) -> dict[str, str]:
    """Settings that have no effect, and why."""
    left: dict[str, str] = {}
    if not invented:
        left |= dict.fromkeys(_OF_INVENTED, "`tasks` names a file: nothing is invented")
    if not invented or options.text("family") != "prices":
        left["custom"] = "only `family: prices` has customs"
    if options.text("human") != "model":
        left |= dict.fromkeys(_OF_MODEL, "`human: scripted` asks no model")
    return left


def _prompt_digest(options: OptionView, settings: ColBenchSettings) -> str | None:
    """Of the file with a model's prompt, which has to have all places."""
    if settings.human_prompt is None:
        return None
    content = options.file(settings.human_prompt)
    wrong = "cannot be read" if content is None else ""
    try:
        lacking = lacking_places((content or b"").decode("utf-8"))
    except UnicodeDecodeError:
        wrong, lacking = "is no text in UTF-8", []
    if lacking and not wrong:
        wrong = f"has no place {{{lacking[0]}}}"
    if content is None or wrong:
        options.refuse(
            "human_prompt",
            f"{settings.human_prompt} {wrong}",
            fix="name a text with {" + "}, {".join(PLACES) + "} in it",
        )
        return None
    return hashlib.sha256(content).hexdigest()


def _rules(options: OptionView, settings: ColBenchSettings) -> dict[str, SplitRule]:
    try:
        rules = read_rules(settings.splits)
    except SplitError as error:
        options.refuse("splits", str(error))
        return {}
    if settings.is_invented:
        for name, rule in rules.items():
            end = rule.bounds[1] if rule.bounds is not None and rule.file is None else 0
            if rule.file is not None:
                options.refuse(
                    "splits",
                    f"the split `{name}` names a file, and `tasks: {INVENTED}` invents them",
                    fix="name a file in `tasks` as well, or ranges alone",
                )
            elif end > settings.invented_tasks:
                options.refuse(
                    "splits",
                    f"the split `{name}` ends at {end}; {settings.invented_tasks} are invented",
                    fix=f"write `invented_tasks: {end}`",
                )
    return rules


def _digest(options: OptionView, settings: ColBenchSettings, rules: Mapping[str, SplitRule]) -> str:
    if options.refusals:
        return ""
    files: dict[str, tuple[CodeTask, ...]] = {}

    def tasks_of(file: str | None) -> Sequence[CodeTask]:
        path = file or settings.tasks
        if path not in files:
            content = options.file(path)
            if content is None:
                raise TasksError(f"there is no file {path} that can be read")
            files[path] = read_tasks(content, path)
        return files[path]

    try:
        return digest(resolve(rules, tasks_of))
    except TasksError as error:
        options.refuse("tasks", str(error), fix=_WHERE)
    except SplitError as error:
        options.refuse("splits", str(error))
    return ""


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    splits, rounds = given.get("splits"), given.get("rounds")
    invented = given.get("tasks", INVENTED) == INVENTED
    return replace(
        BACKEND,
        splits=tuple(splits) if isinstance(splits, dict) and splits else OWN,
        max_turns=rounds if isinstance(rounds, int) and rounds > 0 else _ROUNDS,
        capabilities=BACKEND.capabilities - (frozenset() if invented else {"expert"}),
    )


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    """How large splits are: exact of ranges, about as the hash has it of parts; of whole files
    nothing is known here."""
    splits, count = given.get("splits"), given.get("invented_tasks")
    total = count if isinstance(count, int) else ColBenchSettings().invented_tasks
    invented = given.get("tasks", INVENTED) == INVENTED
    found: dict[str, tuple[float, float]] = {}
    for name, value in (splits if isinstance(splits, dict) else DEFAULT).items():
        match value:
            case {"range": [int(first), int(end)]}:
                found[name] = (float(max(end - first, 1)), 1.0)
            case {"own": str(part)} if invented and part in SHARES:
                found[name] = (max(SHARES[part] * total, 1.0), 1.3)
    return found


def _expected_expert(given: Mapping[str, Json]) -> ExpectedExpert:
    """Means over invented tasks: two or three questions, and a function of six lines."""
    careless = given.get("careless")
    share = careless if isinstance(careless, int | float) else 0.0
    return ExpectedExpert(
        turns=1 + 2.5 * (1 - share), prompt=40, reply=25, observation=8, factor=1.3
    )


BACKEND = EnvironmentBackend(
    id="env.colbench_backend",
    version=1,
    doc="ColBench's programming tasks: an agent asks a human who knows the reference, and answers "
    "with a Python function, which is tested in a sandbox. Invented tasks, or ColBench's own from "
    "a file.",
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
)
