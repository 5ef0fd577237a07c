"""Declares `env.colbench_frontend`: ColBench's pages, served by `job_serve.py`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import (
    DataSet,
    DataSource,
    EnvironmentBackend,
    ExpectedExpert,
    LeaseDraft,
    OptionView,
    SimulatorRole,
)
from agentc.kinds.artifacts import VISION_ENCODER
from agentc.kinds.field import Json
from agentc.kinds.metric_names import RewardName
from agentc.kinds.settings import fields_of
from agentc.lease_roles import LeaseRole
from agentc_backends.environments.colbench.declaration import (
    configured,
    expected_tasks,
    split_rules,
    split_tasks,
    text_digest,
)
from agentc_backends.environments.colbench.frontend.pages import (
    TAILWIND,
    TAILWIND_FILE,
    TAILWIND_SHA256,
    digest,
    read_pages,
)
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.tasks import INVENTED, OWN
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.software import FRONTEND

STYLESHEET = DataSet(
    name="tailwind",
    doc="Tailwind 2.2.19's whole stylesheet, which every page of ColBench links.",
    licence="MIT",
    sources=(
        DataSource(
            name=TAILWIND_FILE,
            url="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css",
            size=2_934_019,
        ),
    ),
    unpacked_size=2_934_019,
    program=("-m", "agentc_backends.environments.server.job_copy", TAILWIND_FILE),
    contents={TAILWIND_FILE: TAILWIND_SHA256},
    use=f"`stylesheet: {{path}}/{TAILWIND_FILE}` "
    "under an environment with `backend: colbench_frontend`",
)


_DEFAULTS = FrontendSettings()
_FETCH = "`agentc data fetch tailwind` gets it and says what to write"
_ORIGIN = (
    "the paper's pages are the first 20,000 rows of WebSight v0.2 on Hugging Face, which `agentc "
    "data fetch` does not have: its rows as JSONL with `problem_description` and `ground_truth`; "
    "without `tasks` they are invented"
)


def _lease(options: OptionView) -> LeaseDraft:
    invented = options.text("tasks") == INVENTED
    settings = effective(options, FrontendSettings)
    rules = split_rules(options, settings)
    identity = options.identity()
    expect: dict[str, Json] = {"options": {**rules_of(settings), "invented": invented}}
    if not invented or any(rule.file for rule in rules.values()):
        found = split_tasks(options, settings, rules, read_pages, _ORIGIN)
        tasks = "" if found is None else digest(found)
        settings = replace(settings, tasks_sha256=tasks)
        # Keys follow what files hold, wherever they lie.
        hidden = ("tasks", "splits", "stylesheet")
        identity = {name: value for name, value in identity.items() if name not in hidden}
        identity["tasks_sha256"] = expect["tasks_sha256"] = tasks
        pages = () if found is None else [page for split in found.values() for page in split]
        if _has_stylesheet(options, settings, any(TAILWIND in p.reference for p in pages)):
            identity["stylesheet"] = TAILWIND_SHA256
    if len(settings.human_labels) not in (0, 3):
        options.refuse(
            "human_labels",
            f"names {len(settings.human_labels)} texts, and there are three places",
            fix="write the words before the agent's picture, before the wanted one, and in place "
            "of the agent's where there is none",
        )
    words = text_digest(options, "human_prompt", settings.human_prompt, _fault, "write some words")
    if words is not None:
        settings = replace(settings, human_prompt_sha256=words)
        identity = {**identity, "human_prompt": words}
    expect["human_prompt_sha256"] = words
    return environment_lease(
        BACKEND,
        options,
        settings,
        identity=identity,
        expect=expect,
        # A browser starts and references are rendered, and other jobs may start at the same time.
        ready_timeout_s=300.0,
        needs=_needs(settings),
    )


def _needs(settings: FrontendSettings) -> tuple[LeaseRole, ...]:
    human: tuple[LeaseRole, ...] = ("simulator",) if settings.human == "model" else ()
    return (*human, "scorer") if settings.similarity == "clip" else human


def _has_stylesheet(options: OptionView, settings: FrontendSettings, needed: bool) -> bool:
    """Whether it is the one that ColBench's pages link."""
    if settings.stylesheet is None:
        if needed:
            options.refuse(
                "stylesheet",
                "pages of these tasks link Tailwind 2.2.19, and none is named",
                fix=_FETCH,
            )
        return False
    content = options.file(settings.stylesheet)
    if content is None or hashlib.sha256(content).hexdigest() != TAILWIND_SHA256:
        wrong = "cannot be read" if content is None else "is not Tailwind 2.2.19's tailwind.min.css"
        options.refuse("stylesheet", f"{settings.stylesheet} {wrong}", fix=_FETCH)
        return False
    return True


def _fault(words: str) -> str:
    return "" if words.strip() else "is empty"


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    success = given.get("success_at")
    if not isinstance(success, int | float):
        success = _DEFAULTS.success_at
    cosine = given.get("similarity") == "clip"
    name: RewardName = "cosine" if cosine else "composite"
    other = {"composite": "similarity: composite"} if cosine else BACKEND.other_rewards
    return configured(
        BACKEND, given, success_at=float(success), reward_name=name, other_rewards=other
    )


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    return expected_tasks(given, _DEFAULTS.invented_tasks)


def _expected_expert(given: Mapping[str, Json]) -> ExpectedExpert:
    """Means over invented tasks: a page of ten lines, two or three of whose parts are guessed."""
    careless = given.get("careless")
    share = careless if isinstance(careless, int | float) else 0.0
    return ExpectedExpert(
        turns=1 + 1.6 * (1 - share), prompt=150, reply=260, observation=20, factor=1.3
    )


BACKEND = EnvironmentBackend(
    id="env.colbench_frontend",
    # 1: a browser of 2026-11 called one honest page in some hundred a crash; 2: the human saw pages
    # of earlier replies, and of two pages around the marker the second counted
    version=3,
    doc="ColBench's pages: an agent works with a human who sees its page and the one that is "
    "meant, and is rewarded by their likeness. Invented tasks, or ColBench's own from a file.",
    software=FRONTEND,
    lease=_lease,
    fields=fields_of(FrontendSettings),
    splits=OWN,
    reward_range=(0.0, 1.0),
    success_at=_DEFAULTS.success_at,
    max_turns=_DEFAULTS.rounds,
    expected_tasks=_expected_tasks,
    expected_expert=_expected_expert,
    configured=_configured,
    data_sets=(STYLESHEET,),
    browser=True,
    simulators=(
        SimulatorRole(
            name="simulator",
            doc="The human, under `human: model`: a model that takes pictures.",
            capability="vision",
        ),
        SimulatorRole(
            name="scorer",
            doc="The encoder whose features are compared, under `similarity: clip`.",
            capability="image_embeddings",
            accepts=VISION_ENCODER,
        ),
    ),
    reward_name="composite",
    other_rewards={"cosine": "similarity: clip, scorer: {server: NAME, model: NAME}"},
    task_settings=("tasks", "splits", "invented_tasks", "invented_seed"),
    capabilities=frozenset({"expert", "fork", "snapshot", "privileged"}),
)
