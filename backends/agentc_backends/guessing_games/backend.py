"""Declares `env.twenty_questions` and `env.guess_my_city`, served by `job_serve.py`.

The facts of contracts (reward range, steps, splits) follow from a spec's settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Field, Json, choice, integer, number, secret, string
from agentc_backends.software import LIGHT

_QUESTIONS = 20
_SPLITS = ("train", "validation", "test")
_SIZES = {"twenty_questions": (111, 15, 31), "guess_my_city": (64, 8, 19)}

_COMMON: tuple[Field, ...] = (
    choice("judge", "Who wins. `upstream_v1`: as ArCHer released it, with what can be cheated "
           "there; `strict_v2`: a guess names one secret and nothing else, and its name decides.",
           ("strict_v2", "upstream_v1"), "strict_v2"),
    choice("oracle", "Who answers: the table of facts, the most similar recorded question "
           "(`dialogues`; the table where none is similar), or a language model at `oracle_url`.",
           ("table", "recorded", "server"), "table"),
    choice("unknown", "What the table answers to a question that it cannot read: `Invalid "
           "Question.` or `No.`; the question counts.", ("invalid", "no"), "invalid"),
    string("dialogues", "File of recorded dialogues (absolute path; JSON or JSONL, may be "
           "gzipped): ArCHer's and LMRL-Gym's layouts, or rows of secret, question, answer.",
           nullable=True, pattern="^/"),
    number("min_similarity", "Cosine from which a recorded question counts as the same.", 0.5,
           minimum=0, maximum=1),
    string("oracle_url", "Address of an OpenAI-compatible API that answers, such as "
           "`http://127.0.0.1:8000/v1`.", nullable=True, pattern="^https?://[^\\s#?@]+$"),
    string("oracle_model", "The model's name there.", nullable=True),
    secret("oracle_key", "Its key, by reference: `{secret: ORACLE_KEY}`; null: none is sent."),
    integer("questions", "Questions until the game is over.", _QUESTIONS, minimum=1, maximum=100),
    choice("reward", "`questions_left`: at the end, 20 for a win with the first question down to 1 "
           "with the last, 0 for none (the paper's return plus 20). `per_question`: the paper's -1 "
           "for each question and 0 for the winning one; episodes that a rollout ends early then "
           "seem good.", ("questions_left", "per_question"), "questions_left"),
    choice("observation", "What the agent reads after a question: the answer, or, as the paper "
           "has it, all questions and answers so far.", ("answer", "transcript"), "answer"),
    choice("splits", "`held_out`: train, validation and test of different secrets; `together`: one "
           "split `all`, as the paper has it.", ("held_out", "together"), "held_out"),
)  # fmt: skip
_OBJECTS = choice("objects", "All 157 objects, or the paper's subset of 10.", ("all", "subset"),
                  "all")  # fmt: skip
_WORDS = ("judge", "reward", "observation", "splits")


def _lease_of(name: str) -> Callable[[OptionView], LeaseDraft]:
    def lease(options: OptionView) -> LeaseDraft:
        rules: dict[str, Json] = {word: options.text(word) for word in _WORDS}
        rules["questions"] = options.integer("questions")
        rules["objects"] = options.text("objects") if name == "twenty_questions" else "all"
        if rules["objects"] == "subset" and rules["splits"] != "together":
            options.refuse(
                "objects",
                "ten objects of ten categories leave nothing to hold out",
                fix="set `splits: together`, as the paper has it",
            )
        program = ["-m", "agentc_backends.guessing_games.job_serve", "--port", "0"]
        program += ["--ready-file", "{ready_file}", "--game", name]
        for word, value in rules.items():
            program += [f"--{word}", str(value)]
        told, more = _oracle(options)
        key = options.secret("oracle_key") if told["kind"] == "server" else None
        if key is not None and str(told["url"]).startswith("http://") and not _loopback(told):
            options.refuse(
                "oracle_url",
                "a key would be sent unencrypted",
                fix="use https://, or leave oracle_key out",
            )
        identity = options.identity()
        if "dialogues" in identity:
            # The content counts, wherever it lies.
            identity["dialogues"] = told["dialogues_sha256"]
        return LeaseDraft(
            role="environment",
            backend=f"env.{name}",
            version=2,
            software=LIGHT,
            program=(*program, *more),
            identity=identity,
            port="chosen",
            probe="/health",
            identity_check="environment",
            inside=told["kind"] != "server",
            expect={"name": name, "options": {**rules, "oracle": told}},
            secrets={} if key is None else {"AGENTC_ORACLE_KEY": key},
            ready_timeout_s=60.0,
        )

    return lease


def _oracle(options: OptionView) -> tuple[dict[str, Json], list[str]]:
    """What the server's identity must say of its oracle, and arguments that make it so."""
    kind = options.text("oracle")
    told: dict[str, Json] = {"kind": kind}
    if kind != "recorded":
        for path in ("dialogues", "min_similarity"):
            options.leave(path, f"`oracle: {kind}` reads no dialogues")
    if kind != "server":
        for path in ("oracle_url", "oracle_model", "oracle_key"):
            options.leave(path, f"`oracle: {kind}` calls no server")
        told["unknown"] = options.text("unknown")
    else:
        options.leave("unknown", "`oracle: server` answers every question itself")
        for needed, flag in (("oracle_url", "url"), ("oracle_model", "model")):
            told[flag] = options.get(needed)
            if told[flag] is None:
                options.refuse(needed, f"`oracle: server` needs `{needed}`", fix=f"give `{needed}`")
    program = ["--oracle", kind]
    if "unknown" in told:
        program += ["--unknown", str(told["unknown"])]
    if kind == "server":
        program += ["--oracle-url", str(told["url"]), "--oracle-model", str(told["model"])]
    if kind == "recorded":
        file = options.get("dialogues")
        content = options.file(file) if isinstance(file, str) else None
        if content is None:
            options.refuse(
                "dialogues",
                "`oracle: recorded` needs a file of dialogues that can be read",
                fix="give its absolute path",
            )
        told["dialogues_sha256"] = hashlib.sha256(content or b"").hexdigest()
        told["min_similarity"] = options.number("min_similarity")
        program += ["--dialogues", str(file), "--min-similarity", str(told["min_similarity"])]
    return told, program


def _loopback(told: Mapping[str, Json]) -> bool:
    host = str(told["url"]).split("://", 1)[1].split("/", 1)[0]
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
        most = questions if isinstance(questions, int) and questions > 0 else _QUESTIONS
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
        version=2,
        doc=doc,
        software=LIGHT,
        lease=_lease_of(name),
        fields=fields,
        splits=_SPLITS,
        reward_range=(0.0, float(_QUESTIONS)),
        success_at=1.0,
        max_turns=_QUESTIONS,
        expected_tasks=lambda given: _sizes(name, given),
        configured=configured,
        capabilities=frozenset({"expert", "fork", "snapshot"}),
    )
    return plain


TWENTY_QUESTIONS = _declared(
    "twenty_questions",
    (*_COMMON, _OBJECTS),
    "Twenty Questions over ArCHer's 157 objects: find the object by yes/no questions, answered "
    "from a committed table of facts, recorded dialogues or a language model.",
)
GUESS_MY_CITY = _declared(
    "guess_my_city",
    _COMMON,
    "Guess My City over ArCHer's 91 cities: find the home town by questions, answered from a "
    "committed table of facts, recorded dialogues or a language model.",
)
