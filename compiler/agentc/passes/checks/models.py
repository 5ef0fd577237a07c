"""Rules about models: the chat format that a model was trained with, and what a model directory
holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.kinds.groups import MODEL_SOURCES, REINFORCED, SERVED, TRAINERS
from agentc.passes.checks.model_folders import ENCODER_SOURCES
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext
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
    if folder is None or not subject.stage.backend.endswith(".path"):
        return  # what another backend takes is its own business
    for fault in folder.content.faults:
        yield Finding(message=fault.message, path="path", fix=fault.fix)


def weights_loadable(subject: StageContext) -> Iterator[Finding]:
    """A model is trained, or served in process, only where its weights can be loaded for that."""
    if subject.stage.kind in (*TRAINERS, *REINFORCED):
        use, roles = "trained", tuple(r for r in ("model", "policy") if subject.stage.inputs.get(r))
    else:
        server = subject.server()
        if server is None or server[0].id != _IN_PROCESS:
            return
        use, roles = f"served by {_IN_PROCESS}", ("policy",)
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
