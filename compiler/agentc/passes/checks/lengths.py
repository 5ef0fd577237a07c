"""Rules about tokens: contexts, training rows, replies, and the room that prompts need."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import ExpectedExpert
from agentc.cost.quantities import value as usual
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.diagnostic import Severity
from agentc.ir.module import Prompt, Stage
from agentc.kinds import kind_named
from agentc.kinds.table import ACTING, LEASING, TRAINERS, kinds_where
from agentc.passes.checks.model_servers import leased_servers
from agentc.passes.checks.model_shape import model_context
from agentc.passes.checks.module_analysis import collected_by
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext
from agentc.text import counted

_REPLYING = kinds_where(lambda kind: kind.longest_reply is not None)
"""Kinds that a model replies to; others have it score what is given."""
_IN_TURNS = kinds_where(lambda kind: kind.acts and kind.has("max_turns"))
_POLICY_ROWS = kinds_where(lambda kind: kind.acts and kind.collects)


def rows_within_context(subject: StageContext) -> Iterator[Finding]:
    """`max_length` is within the model's context, where that is known."""
    return _within_context(subject, "max_length")


def replies_within_context(subject: StageContext) -> Iterator[Finding]:
    """The longest reply is within the model's context, where that is known."""
    return _within_context(subject, _longest(subject))


def _within_context(subject: StageContext, path: str) -> Iterator[Finding]:
    model, wanted = model_context(subject), subject.settings.integer(path)
    if model is None or wanted is None or wanted <= model.tokens:
        return
    name, has = model.name, model.tokens
    larger = "take a model with a longer one"
    if model.setting is not None:
        larger = f"`{model.setting}` of `{name}` to {wanted} or more"
    yield Finding(
        message=f"`{path}` is {wanted}, but `{name}` has a context of {has} tokens",
        path=path,
        severity=model.severity,
        notes=(model.shown,),
        fix=f"set {path} to {has} or less, or {larger}",
    )


def server_within_context(subject: StageContext) -> Iterator[Finding]:
    """A server's `max_model_len` is within the context of each model that it loads, where known."""
    for server in leased_servers(subject):
        if not server.backend.loads_model:
            continue  # its window is its own
        wanted = server.settings.integer("max_model_len")
        for role in server.models:
            model = model_context(subject, role)
            if model is None or wanted is None or wanted <= model.tokens:
                continue
            yield Finding(
                message=f"max_model_len is {wanted}, but `{model.name}`, which {server.whose} has "
                f"it serve, has a context of {model.tokens} tokens",
                path="max_model_len",
                at=server.settings.entry,
                severity=model.severity,
                notes=(model.shown, "the server would refuse to start"),
                fix=f"set max_model_len to {model.tokens} or less, or leave it out",
            )


def room_for_prompt(subject: StageContext) -> Iterator[Finding]:
    """The longest reply (`decode.max_tokens`) leaves room for a prompt in the server's window."""
    path = _longest(subject)
    reply, window = subject.settings.integer(path), served_window(subject)
    if reply is None or window is None or reply < window[0]:
        return
    room, shown, severity = window
    model = model_context(subject)
    if model is not None and reply > model.tokens:
        return  # `replies_within_context` says so
    yield Finding(
        message=f"replies of up to {counted(reply, 'token')} leave no room for a prompt in "
        f"{counted(room, 'token')}",
        path=path,
        expected="prompt + reply within the server's window",
        severity=severity,
        notes=(f"{room} - {reply} = {room - reply} tokens for the prompt", shown),
        fix=f"lower {path} to what one reply needs, such as {max(1, min(reply // 4, 512))}",
    )


def prompt_fits(subject: StageContext) -> Iterator[Finding]:
    """The prompt's own text (instruction and examples) leaves room for a task and a reply."""
    prompt, window = subject.prompt(), served_window(subject)
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
            window[1],
        ),
        fix="shorten the prompt or its examples, lower decode.max_tokens, or take a larger context",
    )


def prompt_fits_row(subject: StageContext) -> Iterator[Finding]:
    """A training row (`max_length`) holds more than the prompt under which it was collected."""
    length = subject.settings.integer("max_length")
    for source in _collected(subject):
        prompt = subject.prompt(source)
        if prompt is None or length is None or _words(prompt) < length:
            continue
        yield Finding(
            message=f"the prompt `{prompt.name}` of `{source.id}` by itself fills the {length} "
            "tokens of a training row",
            path="max_length",
            notes=(
                f"its {_words(prompt)} words are a token or more each "
                f"(line {prompt.origin.span.line})",
            ),
            fix="raise max_length, or shorten the prompt or its examples",
        )


def replies_fit_row(subject: StageContext) -> Iterator[Finding]:
    """A reply that a training row takes over from a rollout may not fill the whole row."""
    length = subject.settings.integer("max_length")
    for source in _collected(subject):
        reply = subject.of_stages[source.id].integer("decode.max_tokens")
        if source.kind not in _POLICY_ROWS or length is None or reply is None or reply < length:
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
                subject.of_stages[source.id].note("decode.max_tokens"),
                f"`truncation: {truncation}` {happens}",
            ),
            fix=f"raise max_length above {reply}, or lower decode.max_tokens of `{source.id}`",
        )


def replies_like_training(subject: StageContext) -> Iterator[Finding]:
    """The policy is not asked for replies longer than the rows it was trained on."""
    reply = subject.settings.integer("decode.max_tokens")
    if not subject.settings.is_set("decode.max_tokens"):
        return  # nobody asked for replies that long
    for policy in subject.producers("model"):
        length = policy.integer("max_length")
        if reply is None or length is None or reply <= length:
            continue
        yield Finding(
            message=f"replies of up to {reply} tokens are longer than any row that "
            f"`{policy.name}` was trained on",
            path="decode.max_tokens",
            notes=(policy.note("max_length"),),
            fix=f"set decode.max_tokens below {length}",
        )


def episodes_within_window(subject: StageContext) -> Iterator[Finding]:
    """An episode of `max_turns` usual turns is within the window, where lengths are stated."""
    turns, window = subject.settings.integer("max_turns"), served_window(subject)
    expert, environment = subject.expected_expert(), subject.environment()
    overflow, prompt = subject.settings.text("on_overflow"), subject.prompt()
    if turns is None or window is None or expert is None or overflow in (None, "drop_oldest"):
        return
    if environment is not None and turns > environment.max_turns:
        return  # AGC506 says so
    opening, reply, observation = _usual_tokens(subject, expert)
    opening += 0 if prompt is None else _words(prompt)
    needed, room = opening + turns * (reply + observation), window[0]
    if needed <= room or opening + reply > room:
        return  # `prompt_fits` is about a first turn that does not fit
    most = int((room - opening) / (reply + observation))
    happens = {"end": "ends the episode there", "error": "fails the stage there"}[overflow]
    yield Finding(
        message=f"an episode of {counted(turns, 'turn')} has about "
        f"{counted(round(needed), 'token')}, but the window holds {room}: it overflows after "
        f"about {counted(most, 'turn')}",
        path="max_turns",
        notes=(
            f"{opening:.0f} tokens of prompt + {turns} x ({reply:.0f} of reply + {observation:.0f} "
            "of observation), as the environment states them for its expert",
            window[1],
            f"`on_overflow: {overflow}` {happens}",
        ),
        fix=f"set max_turns to {most} or less, take a longer context, or set on_overflow: "
        "drop_oldest",
    )


def _usual_tokens(subject: StageContext, expert: ExpectedExpert) -> tuple[float, float, float]:
    """Tokens of a task's prompt, of a reply and of an observation."""
    width = usual("characters_per_token")
    longest = subject.settings.integer("decode.max_tokens")
    reply = expert.reply / width
    return (
        expert.prompt / width,
        reply if longest is None else min(reply, longest),
        expert.observation / width,
    )


def served_window(subject: StageContext) -> tuple[int, str, Severity | None] | None:
    """The tokens of prompt and reply that the server holds, what says so, and how sure that is."""
    served, model = subject.server(), model_context(subject)
    length = None if served is None else served[1].integer("max_model_len")
    if served is not None and length is not None:
        return length, served[1].note("max_model_len"), None
    if served is not None and "remote" in served[0].capabilities:
        return None  # it serves what it serves
    return None if model is None else (model.tokens, model.shown, model.severity)


def _collected(subject: StageContext) -> list[Stage]:
    """The stages whose episodes a trainer reads, through pairs, revisions and mixtures too."""
    return collected_by(subject.stage.inputs.get("data", ()), subject.module)


def _longest(subject: StageContext) -> str:
    """The setting that bounds replies."""
    kind = kind_named(subject.stage.kind)
    assert kind is not None
    assert kind.longest_reply is not None  # it asks a model
    return kind.longest_reply


def _words(prompt: Prompt) -> int:
    texts = [prompt.system or "", prompt.instruction, prompt.acknowledgement or ""]
    texts += [content for example in prompt.examples for _, content in example]
    return sum(len(text.split()) for text in texts)


_BEYOND_CONTEXT = Code(
    "AGC508",
    "longer than the model's context",
    "The model that this stage starts from has fewer positions than the stage requests: it is made "
    "so by this spec, or published so. Beyond them it has no position to give a token: training "
    "would fail, or learn nonsense.",
)
_EPISODE_TOO_LONG = Code(
    "AGC636",
    "episodes longer than the window",
    "A prompt holds the whole episode so far. With replies and observations as long as the "
    "environment states them, the last turns that `max_turns` allows would not fit: such episodes "
    "overflow, and `on_overflow` says what happens to them.",
)
_PROMPT_TOO_LONG = Code(
    "AGC631",
    "a prompt that does not fit",
    "The prompt's own words, each at least a token, take all the room that the server's "
    "window or a training row has.",
)

LENGTHS: tuple[Rule, ...] = (
    Rule(code=_BEYOND_CONTEXT, kinds=TRAINERS, check=rows_within_context),
    Rule(code=_BEYOND_CONTEXT, kinds=_REPLYING, check=replies_within_context),
    Rule(
        code=Code(
            "AGC627",
            "a server longer than its model",
            "The server would be asked to hold more tokens than the model has positions, which it "
            "refuses when it starts.",
        ),
        kinds=LEASING,
        check=server_within_context,
    ),
    Rule(
        code=Code(
            "AGC628",
            "no room for a prompt",
            "Prompt and reply share the server's window. Replies as long as the window leave "
            "nothing for the prompt.",
        ),
        kinds=_REPLYING,
        check=room_for_prompt,
    ),
    Rule(
        code=Code(
            "AGC629",
            "replies longer than a training row",
            "A trajectory whose reply fills `max_length` cannot be a whole training row. "
            "`truncation` says what happens to it: the stage fails, or the row is lost or cut.",
        ),
        kinds=TRAINERS,
        check=replies_fit_row,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC630",
            "replies longer than those trained on",
            "The policy never saw a conversation of that length, and its replies have no reason "
            "to end well there.",
        ),
        kinds=ACTING,
        check=replies_like_training,
        severity="warning",
    ),
    Rule(
        code=_EPISODE_TOO_LONG,
        kinds=_IN_TURNS,
        check=episodes_within_window,
        severity="warning",
    ),
    Rule(code=_PROMPT_TOO_LONG, kinds=ACTING, check=prompt_fits, severity="warning"),
    Rule(code=_PROMPT_TOO_LONG, kinds=TRAINERS, check=prompt_fits_row, severity="warning"),
)
