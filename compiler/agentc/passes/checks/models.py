"""Rules about models: chat formats, model directories, models that must read the same tokens,
models without a chat template, and servers that show a model its functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentc.backend_api import StageBackend
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.diagnostic import Severity
from agentc.diagnostics.suggest import listed
from agentc.ir.module import Prompt, Stage
from agentc.kinds import kind_named
from agentc.kinds.artifacts import CHECKPOINT, CRITIC_CHECKPOINT
from agentc.kinds.table import (
    MODEL_SOURCES,
    PAIR_TRAINERS,
    REINFORCED,
    SERVED,
    TRAINERS,
    kinds_where,
)
from agentc.passes.checks.model_folders import ENCODER_SOURCES
from agentc.passes.checks.module_analysis import collected_by
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext, place
from agentc.runtime.model_folder.config import quantisation_of, seeing_model

_FAMILIES = (
    # The more telling word first: a name may hold several.
    ("vicuna", "vicuna"),
    ("llama-3", "tokenizer"),
    ("llama3", "tokenizer"),
    ("llama-2", "llama-2"),
    ("llama2", "llama-2"),
    ("mistral", "mistral"),
    ("qwen", "chatml"),
)
"""Words in the names of published models, and the format that those were trained with."""

_IN_PROCESS = "serve.transformers"
_QUANTISED = re.compile(r"[-_](awq|gptq|gguf|fp8|bnb-[48]bit|int[48])(?![a-z])", re.IGNORECASE)
"""Words in the names of repositories whose weights are quantised."""


def format_of_family(subject: StageContext) -> Iterator[Finding]:
    """`chat_format` is the one that a model of such a name was trained with."""
    if subject.stage.backend == "model.scratch":
        return  # a new model takes any format
    name = subject.settings.text("repo") or subject.settings.text("path") or ""
    written = subject.settings.text("chat_format")
    found = next(((w, f) for w, f in _FAMILIES if w in name.lower()), None)
    if found is None or written in (None, "tokenizer", found[1]):
        return
    own = f"`{found[1]}`" if found[1] != "tokenizer" else "one that only its tokenizer knows"
    yield Finding(
        message=f"`{name}` was probably trained with another chat format than `{written}`",
        path="chat_format",
        notes=(f"`{found[0]}` in its name speaks for {own}",),
        fix=f"set chat_format: {found[1]}, or tokenizer for the template that the model ships",
    )


def folder_holds_model(subject: StageContext) -> Iterator[Finding]:
    """A model directory holds configuration, fast tokenizer and weights that go together."""
    folder = subject.folders.get(subject.stage.id)
    if folder is None or not subject.stage.backend.endswith((".path", ".gguf")):
        return  # what another backend takes is its own business
    for fault in folder.content.faults:
        yield Finding(message=fault.message, path="path", fix=fault.fix)


def weights_loadable(subject: StageContext) -> Iterator[Finding]:
    """A model is trained, or served in process, only where its weights can be loaded for that."""
    if subject.stage.kind in (*TRAINERS, *REINFORCED):
        use, roles = "trained", ("model",)
    else:
        server = subject.server()
        if server is None or server[0].id != _IN_PROCESS:
            return
        use, roles = f"served by {_IN_PROCESS}", ("model",)
    for role in roles:
        model = subject.model(role)
        if model is None:
            continue
        folder = subject.folders.get(model.name)
        config = {} if folder is None else folder.content.config
        if kind := seeing_model(config):
            yield Finding(
                message=f"`{model.name}` is a model of pictures and text ({kind}), which cannot be "
                f"{use}",
                path=role,
                fix="give its language model, whose class ends with ForCausalLM"
                + ("" if use == "trained" else "; vLLM serves it as it is"),
            )
            continue
        repo, method = model.text("repo") or "", quantisation_of(config)
        by_name = None if method else _QUANTISED.search(repo)
        if not method and by_name is None:
            continue
        shown = method or f"`{by_name.group(1) if by_name else ''}` in `{repo}`"
        yield Finding(
            message=f"the weights of `{model.name}` are quantised ({shown}), and such weights "
            f"cannot be {use}",
            path=role,
            severity="error" if method else "warning",
            fix="start from the model that was quantised"
            if use == "trained"
            else "give the model that was quantised, or `backend: vllm`, which reads such weights",
        )


MODELS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC654",
            "another chat format than the model's",
            "A model trained with one format reads another as unfamiliar text: it answers worse, "
            "and nothing fails. The name of the model speaks for another format than the spec "
            "gives.",
        ),
        kinds=("model",),
        check=format_of_family,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC662",
            "a directory that is no whole model",
            "A model directory holds config.json, tokenizer.json and weights as safetensors. "
            "`agentc check` reads the first two and the headers of the third. Something is "
            "missing, incomplete or does not go together, so that the model's job would end, or a "
            "later one would.",
        ),
        kinds=(*MODEL_SOURCES, *ENCODER_SOURCES),
        check=folder_holds_model,
    ),
    Rule(
        code=Code(
            "AGC663",
            "weights that cannot be trained, or served in process",
            "Weights that are quantised (AWQ, GPTQ, bitsandbytes, FP8) have lost what gradients "
            "change, and `serve.transformers` does not read them: vLLM does. Models of pictures "
            "and text (LLaVA, Qwen-VL) are no causal language models: vLLM serves them, and none "
            "of the trainers takes them.",
        ),
        kinds=tuple(dict.fromkeys((*TRAINERS, *REINFORCED, *SERVED))),
        check=weights_loadable,
    ),
)


# Rules about models that read the same tokens: a trained one and its reference, a critic and the
# policy whose candidates it ranks.

_SAME_ROOT = "that descends from the same model"


def reference_tokenizes_alike(subject: StageContext) -> Iterator[Finding]:
    """The reference reads tokens and conversations as the model that is trained does."""
    trained, reference = subject.model("model"), subject.model("reference")
    if trained is not None and reference is not None:
        yield from _unlike(trained, reference, "the trained model", "the reference", "reference")


def critic_tokenizes_alike(subject: StageContext) -> Iterator[Finding]:
    """A critic reads the tokens that the policy of the candidates wrote.

    So does its reference then: where that is unlike the critic, it is found there."""
    policy = subject.model("candidates") or subject.model("model")
    critic = subject.model("critic")
    if policy is not None and critic is not None:
        yield from _unlike(policy, critic, "the candidates' policy", "the critic", "critic")


def _unlike(policy: Settings, other: Settings, who: str, whom: str, path: str) -> Iterator[Finding]:
    """What keeps `other` from reading what `policy` reads: at most one finding."""
    if policy.entry is other.entry:
        return
    ours, theirs = policy.entry, other.entry
    assert isinstance(ours, Stage)
    assert isinstance(theirs, Stage)
    fix = f"take a {path} {_SAME_ROOT}"
    severity: Severity = "error"
    made = [each.backend == "model.scratch" for each in (ours, theirs)]
    if policy.get("chat_format") != other.get("chat_format"):
        message = f"{who} and {whom} write conversations in different chat formats"
        notes: tuple[str, ...] = (policy.note("chat_format"), other.note("chat_format"))
    elif all(made):
        message = f"{who} and {whom} have different tokenizers"
        notes = _vocabularies(policy, other)
        if not notes:
            return
    elif any(made) or policy.get("repo") != other.get("repo"):
        message = f"{whom} descends from another model (`{theirs.id}`) than {who} (`{ours.id}`)"
        notes = ("their log-probabilities compare only if both have the same tokenizer",)
        severity = "warning"
        fix = ""
    else:
        return
    yield Finding(message=message, path=path, severity=severity, notes=notes, fix=fix or None)


def _vocabularies(policy: Settings, other: Settings) -> tuple[str, ...]:
    """Why two models of this spec have different tokenizers; nothing where they have not."""
    ours, theirs = policy.entry, other.entry
    assert isinstance(ours, Stage)
    assert isinstance(theirs, Stage)
    if policy.get("vocab_size") != other.get("vocab_size"):
        return policy.note("vocab_size"), other.note("vocab_size")
    if ours.inputs.get("corpus") == theirs.inputs.get("corpus"):
        return ()
    return tuple(
        f"the tokenizer of `{each.id}` is trained on {listed(each.inputs.get('corpus', ()))} "
        f"({place(each, 'corpus')})"
        for each in (ours, theirs)
    )


_UNLIKE = Code(
    "AGC648",
    "a reference unlike the policy",
    "DPO and critics compare log-probabilities of the same tokens under two models. With another "
    "tokenizer or chat format these are not the same tokens.",
)
ALIKE: tuple[Rule, ...] = (
    Rule(code=_UNLIKE, kinds=PAIR_TRAINERS, check=reference_tokenizes_alike),
    Rule(
        code=_UNLIKE,
        kinds=kinds_where(lambda kind: any(CRITIC_CHECKPOINT in r.accepts for r in kind.roles)),
        check=critic_tokenizes_alike,
    ),
)


# Rules about models that read plain text (`chat_format: plain`): what it has no way to say.

_PLAIN = "plain"
_READERS = kinds_where(
    lambda kind: kind.trains or "prompt" in kind.uses or kind.role("data") is not None
)


def plain_text_prompts(subject: StageContext) -> Iterator[Finding]:
    """Prompts of a model of plain text have no system text, and replies of one line.

    So have those of stages without a model, such as an expert's, whose episodes it learns from,
    through mixtures and pairs too."""
    model = subject.model()
    if model is None or model.text("chat_format") != _PLAIN:
        return
    own, roots = subject.prompt(), subject.around.roots
    if own is not None:
        yield from _unsayable(own, model.name, "prompt")
    for role, names in subject.stage.inputs.items():
        for number, name in enumerate(names):
            # Those that descend from a model are looked at by themselves.
            sources = collected_by([name], subject.module)
            prompts = (subject.prompt(each) for each in sources if each.id not in roots)
            for prompt in {each.name: each for each in prompts if each is not None}.values():
                if prompt is not own:
                    yield from _unsayable(prompt, model.name, f"{role}.{number}")


def _unsayable(prompt: Prompt, model: str, path: str) -> Iterator[Finding]:
    """The first thing of a prompt that plain text cannot say."""
    if prompt.system is not None:
        what = "has an instruction of `role: system`, and plain text has no roles"
        fix = "write `role: user`: the instruction then is before the task"
    elif prompt.reply_format == "tools":
        what = "lets the agent call a function, which takes lines, and plain text has no roles to "
        what += "show one in"
        fix = "set reply_format to react_inline, action_only or text"
    elif prompt.reply_format == "react":
        what = "requests replies of two lines, and in plain text the first line end ends a reply"
        fix = "set reply_format to react_inline, action_only or text"
    elif prompt.output_marker is not None:
        what = "lets thoughts be on lines of their own before `output_marker`, and in plain "
        what += "text the first line end ends a reply"
        fix = "leave output_marker out"
    elif any("\n" in reply for reply in _replies(prompt)):
        what = "shows a reply of several lines, and in plain text a reply is one line"
        fix = "write that reply on one line"
    else:
        return
    yield Finding(
        message=f"prompt `{prompt.name}` {what} (`chat_format: plain` of `{model}`)",
        path=path,
        fix=f"{fix}; or give `{model}` a chat_format with roles, such as chatml",
    )


def _replies(prompt: Prompt) -> Iterator[str]:
    if prompt.acknowledgement is not None:
        yield prompt.acknowledgement
    for example in prompt.examples:
        yield from (text for role, text in example if role == "assistant")


PLAIN_TEXT: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC616",
            "what plain text cannot say",
            "Under `chat_format: plain` texts follow each other without marks of their "
            "roles, and the end of its line ends a reply. That has no place for a system "
            "text, and none for a second line of a reply: rows that hold one would end the job.",
        ),
        kinds=_READERS,
        check=plain_text_prompts,
    ),
)


# Rules about calls of functions (`reply_format: tools`): which servers show a model its functions.

TOOLS = "tools"
"""The reply format, and the capability of servers that show functions in every chat format and
leave calls as they were written."""


def functions_reach_the_model(subject: StageContext) -> Iterator[Finding]:
    """A server that is asked for conversations with functions shows them to the model."""
    server = subject.server()
    if server is None or TOOLS in server[0].capabilities or _asks_nobody(subject):
        return
    prompt = _prompt(subject, subject.stage)
    if prompt is None or prompt.reply_format != TOOLS:
        return
    backend, settings = server
    yield Finding(
        message=f"`{settings.name}` ({backend.id}) is not known to show a model its functions, and "
        f"replies of prompt `{prompt.name}` call one (`reply_format: tools`)",
        path="server",
        notes=("a chat template may leave functions out and say nothing of it",),
        fix="name a server of `backend: vllm` or `transformers`, or give the prompt another "
        "reply_format",
    )


def _asks_nobody(subject: StageContext) -> bool:
    backend = subject.table.backends.get(subject.stage.backend)
    return isinstance(backend, StageBackend) and "value_head" in backend.capabilities


def _prompt(subject: StageContext, stage: Stage) -> Prompt | None:
    """The prompt of the conversations that a stage's server is shown: its own, or the one that the
    episodes of its inputs were played under."""
    kind = kind_named(stage.kind)
    if kind is None or "prompt" in kind.uses:
        return subject.prompt(stage)
    for role in kind.roles:
        if any(each in (CHECKPOINT, CRITIC_CHECKPOINT) for each in role.accepts):
            continue
        for name in stage.inputs.get(role.name, ()):
            source = subject.module.stages.get(name)
            found = None if source is None else _prompt(subject, source)
            if found is not None:
                return found
    return None


FUNCTIONS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC785",
            "a server that may not show functions",
            "Under `reply_format: tools` the model is shown a function and calls it. "
            "`serve.vllm` and `serve.transformers` show functions under every chat template and "
            "leave calls as the model wrote them. An external endpoint may leave functions out "
            "without a word, and reads calls by itself, which gives other texts than the model "
            "wrote: the policy would act, and be trained, on other prompts than the spec says.",
        ),
        kinds=kinds_where(lambda kind: "server" in kind.uses),
        check=functions_reach_the_model,
    ),
)
