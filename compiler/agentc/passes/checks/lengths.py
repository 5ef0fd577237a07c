"""Rules about tokens: contexts, training rows, replies, and the room that prompts need."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.ir.module import Prompt, Stage
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, Subject, settings_of
from agentc.passes.checks.surroundings import collected_by
from agentc.passes.checks.text import plural

_TRAINERS = ("sft", "dpo")
_ACTING = ("rollout", "search", "evaluate")
_SERVED = (*_ACTING, "revise")
_ROWS = ("rollout", "search")


def rows_within_context(subject: Subject) -> Iterator[Finding]:
    """`max_length` is within the context of a model that this spec makes."""
    return _within_context(subject, "max_length")


def replies_within_context(subject: Subject) -> Iterator[Finding]:
    """The longest reply is within the context of a model that this spec makes."""
    return _within_context(subject, _longest(subject))


def _within_context(subject: Subject, path: str) -> Iterator[Finding]:
    model, wanted = subject.scratch_model(), subject.settings.integer(path)
    has = None if model is None else model.integer("context")
    if model is None or wanted is None or has is None or wanted <= has:
        return
    name = model.name
    yield Finding(
        message=f"`{path}` is {wanted}, but `{name}` has a context of {has} tokens",
        path=path,
        notes=(model.shown("context"),),
        fix=f"set {path} to {has} or less, or `context` of `{name}` to {wanted} or more",
    )


def server_within_context(subject: Subject) -> Iterator[Finding]:
    """The server's `max_model_len` is within the context of a model that this spec makes."""
    served, model = subject.server(), subject.scratch_model()
    if served is None or model is None:
        return
    wanted, has = served[1].integer("max_model_len"), model.integer("context")
    if wanted is None or has is None or wanted <= has:
        return
    yield Finding(
        message=f"max_model_len is {wanted}, but `{model.name}`, which `{subject.stage.id}` has "
        f"it serve, has a context of {has} tokens",
        path="max_model_len",
        at=served[1].entry,
        notes=(model.shown("context"), "the server would refuse to start"),
        fix=f"set max_model_len to {has} or less, or leave it out",
    )


def room_for_prompt(subject: Subject) -> Iterator[Finding]:
    """The longest reply (`decode.max_tokens`) leaves room for a prompt in the server's window."""
    path = _longest(subject)
    reply, window = subject.settings.integer(path), _window(subject)
    if reply is None or window is None or reply < window[0]:
        return
    room, holder, setting = window
    model = subject.scratch_model()
    beyond = None if model is None else model.integer("context")
    if beyond is not None and reply > beyond:
        return  # `replies_within_context` says so
    yield Finding(
        message=f"replies of up to {plural(reply, 'token')} leave no room for a prompt in "
        f"{plural(room, 'token')}",
        path=path,
        expected="prompt + reply within the server's window",
        notes=(f"{room} - {reply} = {room - reply} tokens for the prompt", holder.shown(setting)),
        fix=f"lower {path} to what one reply needs, such as {max(1, min(reply // 4, 512))}",
    )


def prompt_fits(subject: Subject) -> Iterator[Finding]:
    """The prompt's own text (instruction and examples) leaves room for a task and a reply."""
    prompt, window = subject.prompt(), _window(subject)
    reply = subject.settings.integer("decode.max_tokens") or 0
    if prompt is None or window is None or reply >= window[0]:
        return
    words = _words(prompt)
    if words + reply < window[0]:
        return
    yield Finding(
        message=f"the prompt `{prompt.name}` and a reply do not fit into {window[0]} tokens, so "
        "every episode overflows",
        path="prompt",
        notes=(
            f"{words} words (each a token or more) + {reply} tokens of reply = {words + reply}",
            f"the prompt is in line {prompt.origin.span.line}",
            window[1].shown(window[2]),
        ),
        fix="shorten the prompt or its examples, lower decode.max_tokens, or take a larger context",
    )


def prompt_fits_row(subject: Subject) -> Iterator[Finding]:
    """A training row (`max_length`) holds more than the prompt under which it was collected."""
    length = subject.settings.integer("max_length")
    for source in _collected(subject):
        prompt = subject.prompt(source)
        if prompt is None or length is None or _words(prompt) < length:
            continue
        yield Finding(
            message=f"the prompt `{prompt.name}` of `{source.id}` alone fills the {length} tokens "
            "of a training row",
            path="max_length",
            notes=(
                f"its {_words(prompt)} words are a token or more each "
                f"(line {prompt.origin.span.line})",
            ),
            fix="raise max_length, or shorten the prompt or its examples",
        )


def replies_fit_row(subject: Subject) -> Iterator[Finding]:
    """A reply that a training row takes over from a rollout may not fill the whole row."""
    length = subject.settings.integer("max_length")
    for source in _collected(subject):
        reply = settings_of(source, subject.table).integer("decode.max_tokens")
        if source.kind not in _ROWS or length is None or reply is None or reply < length:
            continue
        truncation = subject.settings.text("truncation")
        happens = {
            "error": "fails the stage",
            "drop": "leaves such a row out",
            "right": "cuts such a row",
        }.get(truncation or "", "applies to such a row")
        yield Finding(
            message=f"`{source.id}` may write replies of {reply} tokens, but a training row holds "
            f"{length}, prompt included",
            path="max_length",
            notes=(
                settings_of(source, subject.table).shown("decode.max_tokens"),
                f"`truncation: {truncation}` {happens}",
            ),
            fix=f"raise max_length above {reply}, or lower decode.max_tokens of `{source.id}`",
        )


def replies_like_training(subject: Subject) -> Iterator[Finding]:
    """The policy is not asked for replies longer than the rows it was trained on."""
    reply = subject.settings.integer("decode.max_tokens")
    if not subject.settings.given("decode.max_tokens"):
        return  # nobody asked for replies that long
    for policy in subject.producers("policy"):
        length = policy.integer("max_length")
        if reply is None or length is None or reply <= length:
            continue
        yield Finding(
            message=f"replies of up to {reply} tokens are longer than any row that "
            f"`{policy.name}` was trained on",
            path="decode.max_tokens",
            notes=(policy.shown("max_length"),),
            fix=f"set decode.max_tokens below {length}",
        )


def _window(subject: Subject) -> tuple[int, Settings, str] | None:
    """The tokens of prompt and reply that the server holds, and which setting says so."""
    served, model = subject.server(), subject.scratch_model()
    length = None if served is None else served[1].integer("max_model_len")
    if served is not None and length is not None:
        return length, served[1], "max_model_len"
    if served is not None and "remote" in served[0].capabilities:
        return None  # it serves what it serves
    context = None if model is None else model.integer("context")
    return None if model is None or context is None else (context, model, "context")


def _collected(subject: Subject) -> list[Stage]:
    """The stages whose episodes a trainer reads, through pairs, revisions and mixtures too."""
    return collected_by(subject.stage.inputs.get("data", ()), subject.module)


def _longest(subject: Subject) -> str:
    """The setting that bounds replies."""
    return "judge.max_tokens" if subject.stage.kind == "revise" else "decode.max_tokens"


def _words(prompt: Prompt) -> int:
    texts = [prompt.system or "", prompt.instruction, prompt.acknowledgement or ""]
    texts += [content for example in prompt.examples for _, content in example]
    return sum(len(text.split()) for text in texts)


LENGTHS: tuple[Rule, ...] = (
    Rule(code="AGC508", kinds=_TRAINERS, check=rows_within_context),
    Rule(code="AGC508", kinds=_SERVED, check=replies_within_context),
    Rule(code="AGC627", kinds=_SERVED, check=server_within_context),
    Rule(code="AGC628", kinds=_SERVED, check=room_for_prompt),
    Rule(code="AGC629", kinds=_TRAINERS, check=replies_fit_row, severity="warning"),
    Rule(code="AGC630", kinds=_ACTING, check=replies_like_training, severity="warning"),
    Rule(code="AGC631", kinds=_ACTING, check=prompt_fits, severity="warning"),
    Rule(code="AGC631", kinds=_TRAINERS, check=prompt_fits_row, severity="warning"),
)
