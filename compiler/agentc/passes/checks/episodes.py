"""Rules about episodes: splits, turns, sampling, texts that end a reply, episodes had twice."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import Stage
from agentc.kinds.interaction import PREFIXES
from agentc.kinds.table import ACTING, COLLECTORS, ON_TASKS, kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext

_BY_ATTEMPTS = kinds_where(lambda kind: kind.acts and kind.has("attempts"))
_READERS = kinds_where(lambda kind: kind.trains or bool(kind.reworks))
_FAR = 3
"""How many times a stated estimate's upper bound a number has to be to look like a slip."""
_REPLIES = {
    "react": "Thought: @\nAction: @",
    "react_inline": "Thought: @. Action: @",
    "tools": '<tool_call>\n{"name": "act", "arguments": {"action": "@"}}\n</tool_call>',
}
"""What every reply of a format holds, `@` standing for its words; `action_only` fixes nothing."""


def split_exists(subject: StageContext) -> Iterator[Finding]:
    """The environment has the `split` that the stage names."""
    environment, split = subject.environment(), subject.settings.text("split")
    if environment is None or split is None or not environment.splits:
        return
    if split in environment.splits:
        return
    yield Finding(
        message=f"{environment.id} has no split `{split}`",
        path="split",
        expected=f"one of {listed(environment.splits)}",
        fix=did_you_mean(split, environment.splits),
    )


def turns_within_limit(subject: StageContext) -> Iterator[Finding]:
    """`max_turns` is not above the turns after which the environment itself ends an episode."""
    environment, turns = subject.environment(), subject.settings.integer("max_turns")
    if environment is None or turns is None or turns <= environment.max_turns:
        return
    yield Finding(
        message=f"{environment.id} ends episodes after {environment.max_turns} turns, "
        f"so `max_turns: {turns}` is never reached",
        path="max_turns",
        fix=f"set max_turns to {environment.max_turns} or less, or leave it out",
    )


def limit_within_split(subject: StageContext) -> Iterator[Finding]:
    """`limit` is not above the number of tasks that the split has."""
    limit, split = subject.settings.integer("limit"), subject.settings.text("split")
    if limit is None or split is None:
        return
    stated = subject.expected_tasks()
    if split not in stated:
        return
    count, factor = stated[split]
    # An estimate has to be far exceeded before anything is said.
    if limit <= (count if factor == 1 else _FAR * factor * count):
        return
    about = "" if factor == 1 else "about "
    yield Finding(
        message=f"`limit: {limit}` leaves nothing out: `{split}` has {about}{count:.0f} tasks",
        path="limit",
        fix=f"set limit to {about}{count:.0f} or less, or leave it out",
    )


def attempts_differ(subject: StageContext) -> Iterator[Finding]:
    """Several `attempts` at temperature 0 differ, since each has a prompt of its own."""
    attempts = subject.settings.integer("attempts") or 1
    if attempts == 1 or subject.settings.number("decode.temperature") != 0:
        return
    if _prompts_vary(subject):
        return
    yield Finding(
        message=f"{attempts} greedy attempts at one task give the same episode {attempts} times",
        path="attempts",
        notes=(subject.settings.note("decode.temperature"), _why_alike(subject)),
        fix="set decode.temperature above 0, or attempts to 1",
    )


def nucleus_when_sampling(subject: StageContext) -> Iterator[Finding]:
    """`decode.top_p` is set where replies are sampled, at a temperature above 0."""
    settings, defaulted = subject.settings, subject.stage.defaulted
    mass = settings.number("decode.top_p")
    if mass is None or mass == 1 or settings.number("decode.temperature") != 0:
        return
    if "decode.top_p" in defaulted and "decode.temperature" not in defaulted:
        return
    yield Finding(
        message=f"`decode.top_p: {mass:g}` has no effect on greedy replies",
        path="decode.top_p",
        notes=(
            settings.note("decode.temperature"),
            "at temperature 0 the likeliest token is taken, in any nucleus",
        ),
        fix="set decode.temperature above 0, or remove decode.top_p",
    )


def _prompts_vary(subject: StageContext) -> bool:
    # An environment with prompt seeds shows each attempt another prompt, unless told not to.
    environment = subject.environment()
    # One that could not be found has been reported; nothing is known about its prompts.
    varied = environment is None or "seed" in environment.capabilities
    own = subject.settings.get("prompt_per_attempt") is not False
    return varied and own and not subject.stage.inputs.get(PREFIXES.name)


def _why_alike(subject: StageContext) -> str:
    if subject.stage.inputs.get(PREFIXES.name):
        return "all attempts behind a prefix continue from the same messages"
    if subject.settings.get("prompt_per_attempt") is False:
        return "`prompt_per_attempt: false` shows every attempt the same prompt"
    return "the environment shows every attempt the same prompt"


def stop_leaves_action(subject: StageContext) -> Iterator[Finding]:
    """No text of `decode.stop` ends a reply before the action that its format asks for."""
    prompt = subject.prompt()
    reply_format = "react" if prompt is None else prompt.reply_format
    reply = _REPLIES.get(reply_format, "")
    for number, stop in enumerate(subject.settings.texts("decode.stop")):
        if stop not in reply or stop == "@":
            continue
        left = reply[: reply.index(stop)]
        inline = reply_format == "react" and stop == "\n"
        yield Finding(
            message=f"the stop text {_escaped(stop)} ends every reply before its action",
            path=f"decode.stop.{number}",
            expected=f"a text that is in no `{reply_format}` reply, such as "
            + _escaped("\nObservation:"),
            notes=(f"of {_escaped(reply)} it leaves {_escaped(left)}",) if reply else (),
            fix="remove it"
            + (", or set `reply_format: react_inline` in the prompt" if inline else ""),
        )


def episodes_once(subject: StageContext) -> Iterator[Finding]:
    """No input names the same stage, or two stages that do exactly the same, twice."""
    for role, names in subject.stage.inputs.items():
        seen: dict[object, str] = {}
        for number, name in enumerate(names):
            stage = subject.module.stages.get(name)
            if stage is None or len(names) < 2:
                continue
            first = seen.setdefault(_work(stage), name)
            if first == name and names.index(name) == number:
                continue
            same = first == name
            yield Finding(
                message=f"`{role}` gets the same rows twice: `{name}` "
                + ("is named twice" if same else f"does exactly what `{first}` does"),
                path=f"{role}.{number}",
                notes=() if same else (subject.of_stages[stage.id].note("seed"),),
                fix="remove one of them" + ("" if same else ", or give one another `seed`"),
            )


def _work(stage: Stage) -> object:
    """What a stage does, comparable: two equal ones give equal results."""
    if stage.kind not in COLLECTORS:
        return stage.id
    values = {name: repr(value.json) for name, value in stage.fields.items()}
    values |= {f"options.{name}": repr(value.json) for name, value in stage.options.items()}
    return (
        stage.kind,
        stage.backend,
        tuple(sorted(values.items())),
        tuple(sorted(stage.inputs.items())),
        tuple(sorted(stage.uses.items())),
    )


def _escaped(text: str) -> str:
    return '"' + text.replace("@", "...").replace("\n", "\\n").replace("\t", "\\t") + '"'


EPISODES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC504",
            "no such split",
            "Environments declare the names of their task splits; "
            "`agentc explain ENVIRONMENT` shows them.",
        ),
        kinds=ON_TASKS,
        check=split_exists,
    ),
    Rule(
        code=Code(
            "AGC510",
            "a limit beyond the split",
            "A split has fewer tasks than the stage's `limit`, so the number in the spec is not "
            "the one that acts. Often it was meant for another split, or for another environment.",
        ),
        kinds=ON_TASKS,
        check=limit_within_split,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC505",
            "repeated greedy attempts",
            "At temperature 0 a policy answers the same prompt with the same reply, so several "
            "attempts at a task add little.",
        ),
        kinds=_BY_ATTEMPTS,
        check=attempts_differ,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC656",
            "a nucleus for greedy replies",
            "At temperature 0 nothing is sampled, so `top_p` is without effect. The authors of ETO "
            "published a temperature that a top_p of 0 undid in the same way.",
        ),
        kinds=ACTING,
        check=nucleus_when_sampling,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC506",
            "more turns than the environment allows",
            "The environment ends episodes earlier, so the limit of the stage is never reached: "
            "the number in the spec is not the one that acts.",
        ),
        kinds=_BY_ATTEMPTS,
        check=turns_within_limit,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC632",
            "a stop text inside every reply",
            "Servers cut a reply at the first stop text and leave it out. A stop text "
            "before the action in every reply of the prompt's format leaves no action at all.",
        ),
        kinds=ACTING,
        check=stop_leaves_action,
    ),
    Rule(
        code=Code(
            "AGC633",
            "the same rows twice",
            "Two inputs are one stage, or two stages that differ in nothing: episodes have seeds "
            "of their own, so the same settings give the same episodes.",
        ),
        kinds=_READERS,
        check=episodes_once,
        severity="warning",
    ),
)


# Rules about prompts that show the last observation alone (`memory: last`).

_PROMPTED = kinds_where(lambda kind: "prompt" in kind.uses)
_WHOLE = kinds_where(
    lambda kind: bool(kind.reworks) or ("prompt" in kind.uses and kind.forecast == "trees")
)
"""Kinds that take a conversation for what its policy saw."""


def last_observation_after_instruction(subject: StageContext) -> Iterator[Finding]:
    """The instruction has a message of its own, which every turn can be shown behind."""
    prompt = subject.prompt()
    if prompt is None or prompt.memory == "all" or not prompt.instruction:
        return
    if prompt.acknowledgement is None:
        yield Finding(
            message=f"prompt `{prompt.name}` shows only the last observation, and its instruction "
            "is in the message of the first one",
            path="prompt",
            fix="give the prompt an `acknowledgement` such as `OK`, or `role: system`",
        )


def reworked_whole(subject: StageContext) -> Iterator[Finding]:
    """What is made of conversations takes them for what the policy saw."""
    own = subject.prompt()
    if own is not None and own.memory == "last":
        yield _finding(subject, own.name, "prompt")
        return
    for role, names in subject.stage.inputs.items():
        for number, name in enumerate(names):
            source = subject.module.stages.get(name)
            prompt = None if source is None else _prompt_of(subject, source)
            if prompt is not None:
                yield _finding(subject, prompt, f"{role}.{number}")
                return


def _prompt_of(subject: StageContext, source: Stage) -> str | None:
    """The name of the prompt under which a source was played, where its memory is the last."""
    prompt = subject.prompt(source)
    return prompt.name if prompt is not None and prompt.memory == "last" else None


def _finding(subject: StageContext, prompt: str, path: str) -> Finding:
    return Finding(
        message=f"`{subject.stage.id}` takes whole conversations for what their policy saw, and "
        f"prompt `{prompt}` showed it only the last observation",
        path=path,
        notes=(
            "stages of kind sft, rollout, evaluate, online_rl and offline_rl know of "
            "`memory: last`",
        ),
        fix="write `memory: all` in the prompt, or leave this stage out",
    )


_CODE = Code(
    "AGC610",
    "a memory of the last observation where the whole is meant",
    "Under `memory: last` each reply is behind the instruction and one observation. That "
    "needs an instruction with a message of its own, and suits stages that know of it: pairs, "
    "candidates, mixtures and search trees are made of whole conversations, and training on them "
    "would put each reply behind what its policy never saw.",
)
PROMPT_MEMORY: tuple[Rule, ...] = (
    Rule(code=_CODE, kinds=_PROMPTED, check=last_observation_after_instruction),
    Rule(code=_CODE, kinds=_WHOLE, check=reworked_whole),
)
