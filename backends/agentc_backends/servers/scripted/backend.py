"""Declares `serve.scripted`: replies by rule, in the light environment."""

from __future__ import annotations

import json
import re

from agentc.backend_api import LeaseDraft, OptionView, ServerBackend
from agentc.kinds.settings import fields_of
from agentc_backends.servers.scripted.settings import ScriptedServer
from agentc_backends.software import LIGHT

_PLACEHOLDERS = ("host", "port", "ready_file", "model", "served_name")


def _lease(options: OptionView) -> LeaseDraft:
    program = ["-m", "agentc_backends.servers.scripted.job_serve", "--die-with-parent"]
    program += ["--model", "{model}", "--served-name", "{served_name}"]
    program += ["--host", "{host}", "--port", "0", "--ready-file", "{ready_file}"]
    program += ["--rules", _rules(options)]
    program += ["--max-model-len", str(options.integer("max_model_len"))]
    program += ["--delay", str(options.number("delay_s"))]
    return LeaseDraft(
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=tuple(program),
        identity=options.identity(),
        port="chosen",
        probe="/health",
        identity_check="model",
        ready_timeout_s=60.0,
        capabilities=BACKEND.capabilities,
    )


def _rules(options: OptionView) -> str:
    rules = options.get("rules")
    assert isinstance(rules, list)
    for index, rule in enumerate(rules):
        pattern = rule.get("match") if isinstance(rule, dict) else None
        try:
            re.compile(str(pattern or ""))
        except (re.error, RecursionError, OverflowError) as error:
            options.refuse(
                f"rules.{index}",
                f"`match` of rule {index} is no regular expression: {error}",
                fix=f"write `{re.escape(str(pattern))}` for the text itself",
            )
    text = json.dumps(rules, sort_keys=True)
    for name in _PLACEHOLDERS:
        # A reply may speak of {model}; the runtime fills placeholders in every word.
        text = text.replace("{" + name + "}", "\\u007b" + name + "}")
    return text


BACKEND = ServerBackend(
    id="serve.scripted",
    version=1,
    doc="Replies by rule, whatever the checkpoint: for tests and dry runs of a pipeline.",
    software=LIGHT,
    lease=_lease,
    fields=fields_of(ScriptedServer),
    capabilities=frozenset(
        {"chat", "completions", "logprobs", "token_ids", "scoring", "seed", "stop", "reload", "cpu"}
        | {"tools"}
    ),
    loads_model=False,
)
