"""Declares `env.twenty_questions` and `env.guess_my_city`, served by `job_serve.py`.

The facts of contracts (reward range, steps, splits) follow from a spec's settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView, SimulatorRole
from agentc.kinds.field import Field, Json
from agentc.kinds.settings import fields_of
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.guessing_games.settings import QUESTIONS, GuessingSettings
from agentc_backends.environments.published_data import GUESS_MY_CITY as DIALOGUES
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.software import LIGHT

_SPLITS = ("train", "validation", "test")
_FIELDS = fields_of(GuessingSettings)
_SIZES = {"twenty_questions": (111, 15, 31), "guess_my_city": (64, 8, 19)}


def _lease_of(name: str) -> Callable[[OptionView], LeaseDraft]:
    def lease(options: OptionView) -> LeaseDraft:
        settings = effective(options, GuessingSettings, game=name)
        if settings.objects == "subset" and settings.splits != "together":
            options.refuse(
                "objects",
                "ten objects of ten categories leave nothing to hold out",
                fix="set `splits: together`, as the paper has it",
            )
        oracle = _oracle(options, settings)
        key = options.secret("oracle_key") if settings.oracle == "server" else None
        if key is not None and str(oracle["url"]).startswith("http://") and not _loopback(oracle):
            options.refuse(
                "oracle_url",
                "a key would be sent unencrypted",
                fix="use https://, or leave oracle_key out",
            )
        identity = options.identity()
        if "dialogues" in identity:
            # The content counts, wherever it lies.
            identity["dialogues"] = oracle["dialogues_sha256"]
        return environment_lease(
            _BACKENDS[name],
            options,
            settings,
            identity=identity,
            expect={"options": {**rules_of(settings), "oracle": oracle}},
            inside=settings.oracle in ("table", "recorded"),
            needs=("simulator",) if settings.oracle == "model" else (),
            secrets={} if key is None else {"AGENTC_ORACLE_KEY": key},
        )

    return lease


def _oracle(options: OptionView, settings: GuessingSettings) -> dict[str, Json]:
    """What the server's identity must say of its oracle."""
    if settings.oracle == "server":
        for needed in ("oracle_url", "oracle_model"):
            if getattr(settings, needed) is None:
                options.refuse(needed, f"`oracle: server` needs `{needed}`", fix=f"give `{needed}`")
        return {"kind": "server", "url": settings.oracle_url, "model": settings.oracle_model}
    if settings.oracle == "model":  # which one is in the key of the lease that it needs
        return {"kind": "model"}
    oracle: dict[str, Json] = {"kind": settings.oracle, "unknown": settings.unknown}
    if settings.oracle == "recorded":
        content = None if settings.dialogues is None else options.file(settings.dialogues)
        if content is None:
            options.refuse(
                "dialogues",
                "`oracle: recorded` needs a file of dialogues that can be read",
                fix="give its absolute path",
            )
        oracle["dialogues_sha256"] = hashlib.sha256(content or b"").hexdigest()
        oracle["min_similarity"] = settings.min_similarity
    return oracle


def _loopback(oracle: Mapping[str, Json]) -> bool:
    host = str(oracle["url"]).split("://", 1)[1].split("/", 1)[0]
    return host.rsplit(":", 1)[0] in ("127.0.0.1", "localhost", "[::1]")


def _sizes(name: str, given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    counts = _SIZES[name]
    if given.get("splits") == "together":
        subset = given.get("objects") == "subset"
        return {"all": (10.0 if subset else float(sum(counts)), 1.0)}
    return {split: (float(count), 1.0) for split, count in zip(_SPLITS, counts, strict=True)}


def _declared(name: str, fields: tuple[Field, ...], doc: str) -> EnvironmentBackend:
    def configured(given: Mapping[str, Json]) -> EnvironmentBackend:
        questions = given.get("questions")
        most = questions if isinstance(questions, int) and questions > 0 else QUESTIONS
        per_question = given.get("reward") == "per_question"
        low, high = (-float(most), 0.0) if per_question else (0.0, float(most))
        return replace(
            plain,
            splits=("all",) if given.get("splits") == "together" else _SPLITS,
            reward_range=(low, high),
            success_at=low + 1.0,
            max_turns=most,
        )

    plain = EnvironmentBackend(
        id=f"env.{name}",
        # 2: `upstream_v1` joined blanks, and refused in words of ours
        version=3,
        doc=doc,
        software=LIGHT,
        lease=_lease_of(name),
        fields=fields,
        splits=_SPLITS,
        reward_range=(0.0, float(QUESTIONS)),
        success_at=1.0,
        max_turns=QUESTIONS,
        expected_tasks=lambda given: _sizes(name, given),
        configured=configured,
        capabilities=frozenset({"expert", "fork", "snapshot", "privileged"}),
        simulators=(SimulatorRole(name="simulator", doc="Who answers under `oracle: model`."),),
        data_sets=(DIALOGUES,) if name == "guess_my_city" else (),
    )
    return plain


TWENTY_QUESTIONS = _declared(
    "twenty_questions",
    _FIELDS,
    "Twenty Questions over ArCHer's 157 objects: find the object by yes/no questions, answered "
    "from a committed table of facts, recorded dialogues or a language model.",
)
GUESS_MY_CITY = _declared(
    "guess_my_city",
    tuple(field for field in _FIELDS if field.name != "objects"),
    "Guess My City over ArCHer's 91 cities: find the home town by questions, answered from a "
    "committed table of facts, recorded dialogues or a language model.",
)
_BACKENDS = {"twenty_questions": TWENTY_QUESTIONS, "guess_my_city": GUESS_MY_CITY}
