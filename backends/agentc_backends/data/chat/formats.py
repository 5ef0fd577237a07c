"""Built-in chat formats: messages -> segments of text, and the Jinja template of the same text.

A segment says whether its text is the format's own or a message's, and whether it lies in the
trained region of an assistant turn. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Message: TypeAlias = Mapping[str, Any]
"""`{"role": "system" | "user" | "assistant", "content": text}`. `"cut": true` marks a reply that
ran into its token limit: it never ended its turn, so no end-of-turn text after it is trained."""


class FormatError(ValueError):
    """A conversation that a chat format cannot render; the message is written for people."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A stretch of rendered text.

    `content` is true for the text of a message, in which control tokens must stay plain text.
    `turn` is the index of the assistant message whose trained region this stretch belongs to, or
    None: a region runs from the reply's first character through the token that ends the turn.
    """

    text: str
    content: bool = False
    turn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """One way to write a conversation.

    `segments` renders messages; `generation_prompt` is what follows them when a reply is wanted.
    `template` is the Jinja text of the same rendering. `tokens` are the control tokens that the
    tokenizer must know as single tokens; `bos` and `eos` are among them. `reply_lead` is the text
    between the generation prompt and a reply, which a model trained on the format generates too.
    `by_line`: a reply is one line and its line end ends it; each text becomes tokens by itself, for
    nothing of the format's own stands between two of them.
    """

    name: str
    segments: Callable[[Sequence[Message]], list[TextSegment]]
    generation_prompt: str
    template: str
    tokens: tuple[str, ...]
    bos: str
    eos: str
    reply_lead: str = ""
    by_line: bool = False


def render(chat: ChatFormat, messages: Sequence[Message], *, generate: bool = False) -> str:
    """The text of a conversation; with `generate`, ready for the next reply."""
    text = "".join(segment.text for segment in chat.segments(messages))
    return text + chat.generation_prompt if generate else text


def format_named(name: str) -> ChatFormat:
    """The built-in format of that name. Raises FormatError when there is none."""
    found = next((chat for chat in FORMATS if chat.name == name), None)
    if found is None:
        known = ", ".join(chat.name for chat in FORMATS)
        raise FormatError(f"unknown chat format {name!r}; known: {known}, tokenizer")
    return found


# What is the same in every conversation is made once: a policy that acts renders its whole
# conversation for each reply.
_CHATML_OPENINGS = {
    role: TextSegment(f"<|im_start|>{role}\n") for role in ("system", "user", "assistant")
}
_CHATML_END, _LINE_END = TextSegment("<|im_end|>"), TextSegment("\n")


def _chatml(messages: Sequence[Message]) -> list[TextSegment]:
    segments: list[TextSegment] = []
    for index, message in enumerate(messages):
        role = _role(index, message)
        turn = index if role == "assistant" else None
        ended = turn is not None and not message.get("cut")
        segments += [
            _CHATML_OPENINGS[role],
            TextSegment(message["content"], content=True, turn=turn),
            TextSegment("<|im_end|>", turn=turn) if ended else _CHATML_END,
            _LINE_END,
        ]
    return segments


def _instruct(
    system: tuple[str, str], ending: str, messages: Sequence[Message]
) -> list[TextSegment]:
    """The `[INST] ... [/INST] ...` family: a system text goes into the first instruction."""
    segments = [TextSegment("<s>")]
    opening, body = _split_system(messages)
    for index, message in enumerate(body, start=len(messages) - len(body)):
        role = _alternating(index - (len(messages) - len(body)), index, message)
        if role == "user":
            segments.append(TextSegment("[INST] "))
            if opening is not None:
                before, after = system
                segments += [
                    TextSegment(before),
                    TextSegment(opening, content=True),
                    TextSegment(after),
                ]
                opening = None
            segments += [TextSegment(message["content"], content=True), TextSegment(" ")]
        else:
            segments += [
                TextSegment("[/INST]"),
                TextSegment(" ", turn=index),
                TextSegment(message["content"], content=True, turn=index),
                TextSegment(ending, turn=None if message.get("cut") else index),
            ]
    return segments


def _llama_2(messages: Sequence[Message]) -> list[TextSegment]:
    return _instruct(("<<SYS>>\n", "\n<</SYS>>\n\n"), " </s><s>", messages)


def _mistral(messages: Sequence[Message]) -> list[TextSegment]:
    return _instruct(("", "\n"), "</s>", messages)


def _vicuna(messages: Sequence[Message]) -> list[TextSegment]:
    segments = [TextSegment("<s>")]
    opening, body = _split_system(messages)
    if opening is not None:
        segments += [TextSegment(opening, content=True), TextSegment(" ")]
    for index, message in enumerate(body, start=len(messages) - len(body)):
        role = _alternating(index - (len(messages) - len(body)), index, message)
        if role == "user":
            segments += [
                TextSegment("USER: "),
                TextSegment(message["content"], content=True),
                TextSegment(" "),
            ]
        else:
            segments += [
                TextSegment("ASSISTANT:"),
                TextSegment(" ", turn=index),
                TextSegment(message["content"], content=True, turn=index),
                TextSegment("</s>", turn=None if message.get("cut") else index),
            ]
    return segments


def _plain(messages: Sequence[Message]) -> list[TextSegment]:
    """The texts as they are, one behind the other, and a line end after each reply."""
    segments: list[TextSegment] = []
    for index, message in enumerate(messages):
        role, text = _role(index, message), message["content"]
        if role == "system":
            raise FormatError(
                f"message {index} is a system text, for which plain text has no place; write the "
                "prompt's instruction with `role: user`, or take another chat_format"
            )
        if role == "user":
            segments.append(TextSegment(text, content=True))
            continue
        if "\n" in text:
            raise FormatError(
                f"message {index} is a reply of several lines ({text[:40]!r}), and in plain text "
                "the first line end ends a reply; let replies be of one line (`reply_format: "
                "react_inline`, action_only or text), or take another chat_format"
            )
        segments += [
            TextSegment(text, content=True, turn=index),
            TextSegment("\n", turn=None if message.get("cut") else index),
        ]
    return segments


def _role(index: int, message: Message) -> str:
    role = str(message["role"])
    if role not in ("system", "user", "assistant"):
        raise FormatError(
            f"message {index} has the role {role!r}; expected system, user or assistant"
        )
    return role


def _split_system(messages: Sequence[Message]) -> tuple[str | None, Sequence[Message]]:
    if messages and messages[0]["role"] == "system":
        return str(messages[0]["content"]), messages[1:]
    return None, messages


def _alternating(position: int, index: int, message: Message) -> str:
    expected = "assistant" if position % 2 else "user"
    role = _role(index, message)
    if role != expected:
        raise FormatError(
            f"message {index} is from {role} where this format needs {expected}: after an "
            "optional system message, user and assistant must alternate (chatml has no such rule)"
        )
    return role


_ALTERNATE = (
    "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0)"
    " or message['role'] not in ['user', 'assistant'] %}"
    "{{- raise_exception('user and assistant must alternate') }}{%- endif %}"
)

_CHATML_TEMPLATE = (
    "{%- for message in messages %}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] %}"
    "{{- raise_exception('unknown role') }}{%- endif %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' }}"
    "{%- if message['role'] == 'assistant' %}"
    "{% generation %}{{- message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{%- else %}{{- message['content'] + '<|im_end|>' }}{%- endif %}"
    "{{- '\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)

_PLAIN_TEMPLATE = (
    "{%- for message in messages %}"
    "{%- if message['role'] == 'user' %}{{- message['content'] }}"
    "{%- elif message['role'] != 'assistant' %}"
    "{{- raise_exception('plain text has no place for a ' + message['role'] + ' message') }}"
    "{%- elif '\\n' in message['content'] %}"
    "{{- raise_exception('in plain text a reply is one line') }}"
    "{%- else %}{% generation %}{{- message['content'] + '\\n' }}{% endgeneration %}"
    "{%- endif %}{%- endfor %}"
)

_SPLIT_SYSTEM = (
    "{%- if messages and messages[0]['role'] == 'system' %}"
    "{%- set opening = messages[0]['content'] %}{%- set body = messages[1:] %}"
    "{%- else %}{%- set opening = none %}{%- set body = messages %}{%- endif %}"
)


def _instruct_template(before: str, after: str, ending: str) -> str:
    return (
        _SPLIT_SYSTEM + "{{- '<s>' }}"
        "{%- for message in body %}" + _ALTERNATE + "{%- if message['role'] == 'user' %}"
        "{{- '[INST] ' }}"
        "{%- if loop.first and opening is not none %}"
        "{{- '" + before + "' + opening + '" + after + "' }}{%- endif %}"
        "{{- message['content'] + ' ' }}"
        "{%- else %}"
        "{{- '[/INST]' }}{% generation %}{{- ' ' + message['content'] + '" + ending + "' }}"
        "{% endgeneration %}"
        "{%- endif %}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '[/INST]' }}{%- endif %}"
    )


_VICUNA_TEMPLATE = (
    _SPLIT_SYSTEM + "{{- '<s>' }}"
    "{%- if opening is not none %}{{- opening + ' ' }}{%- endif %}"
    "{%- for message in body %}" + _ALTERNATE + "{%- if message['role'] == 'user' %}"
    "{{- 'USER: ' + message['content'] + ' ' }}"
    "{%- else %}"
    "{{- 'ASSISTANT:' }}{% generation %}{{- ' ' + message['content'] + '</s>' }}"
    "{% endgeneration %}"
    "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- 'ASSISTANT:' }}{%- endif %}"
)

FORMATS: tuple[ChatFormat, ...] = (
    ChatFormat(
        name="chatml",
        segments=_chatml,
        generation_prompt="<|im_start|>assistant\n",
        template=_CHATML_TEMPLATE,
        tokens=("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        bos="<|endoftext|>",
        eos="<|im_end|>",
    ),
    ChatFormat(
        name="llama-2",
        segments=_llama_2,
        generation_prompt="[/INST]",
        template=_instruct_template("<<SYS>>\\n", "\\n<</SYS>>\\n\\n", " </s><s>"),
        tokens=("<s>", "</s>"),
        bos="<s>",
        eos="</s>",
        reply_lead=" ",
    ),
    ChatFormat(
        name="mistral",
        segments=_mistral,
        generation_prompt="[/INST]",
        template=_instruct_template("", "\\n", "</s>"),
        tokens=("<s>", "</s>"),
        bos="<s>",
        eos="</s>",
        reply_lead=" ",
    ),
    ChatFormat(
        name="vicuna",
        segments=_vicuna,
        generation_prompt="ASSISTANT:",
        template=_VICUNA_TEMPLATE,
        tokens=("<s>", "</s>"),
        bos="<s>",
        eos="</s>",
        reply_lead=" ",
    ),
    ChatFormat(
        name="plain",
        segments=_plain,
        generation_prompt="",
        template=_PLAIN_TEMPLATE,
        tokens=("<|endoftext|>",),
        bos="<|endoftext|>",
        eos="<|endoftext|>",
        by_line=True,
    ),
)


class RowsError(ValueError):
    """Rows that cannot be trained on; the message is written for people."""


class NoRowsError(RowsError):
    """Not one row is left to train on."""


def line_end_tokens(tokenizer: Any, chat: ChatFormat) -> tuple[int, ...]:
    """The tokens that end a reply under a format besides the tokenizer's own: none for most, else
    all that hold a line end. Raises FormatError for a tokenizer in which a token goes on behind
    one, for a reply would then hold the beginning of another line."""
    if not chat.by_line:
        return ()
    texts = tokenizer.batch_decode(
        [[token] for token in range(len(tokenizer))], clean_up_tokenization_spaces=False
    )
    ends = tuple(token for token, text in enumerate(texts) if "\n" in text)
    for token in ends:
        if texts[token].partition("\n")[2].strip():
            raise FormatError(
                f"under the chat format {chat.name} a line end ends a reply, and a token of this "
                f"tokenizer continues behind one ({texts[token]!r}); use another chat_format"
            )
    return ends
