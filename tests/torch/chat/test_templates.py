"""Chat templates of current model families: every trained turn follows the tokens that a server is
asked with, is what the template writes of the turn while it is the last, and ends with an end
token of the family; for rows, for pairs and for the embedded server alike.

The templates are those that TRL ships, and short ones of our own for layouts that it has none of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import trl
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AddedToken, PreTrainedTokenizerFast

from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.rows import MaskRules, encode_pairs, encode_rows
from agentc_backends.data.chat.template_rendering import with_fixed_date
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.openai_api.chat_text import ChatText

Conversation = list[dict[str, Any]]
SHIPPED = Path(trl.__file__).parent / "chat_templates"

_TURNS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
OWN = {
    # Mistral: a system text goes into the last user message.
    "mistral": (
        "<s>{% if messages[0].role == 'system' %}{% set first = messages[0].content %}"
        "{% set said = messages[1:] %}{% else %}{% set said = messages %}{% endif %}"
        "{% for m in said %}{% if m.role == 'user' %}[INST] "
        "{% if first is defined and loop.last %}{{ first + '\n\n' }}{% endif %}"
        "{{ m.content }}[/INST]{% else %} {{ m.content.strip() }}</s>{% endif %}{% endfor %}"
    ),
    "olmo": (
        "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}"
        "{% if m.role == 'assistant' %}<|endoftext|>{% endif %}\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    ),
    "granite": (
        "{% for m in messages %}<|start_of_role|>{{ m.role }}<|end_of_role|>{{ m.content }}"
        "<|end_of_text|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}"
    ),
    "exaone": (
        "{% for m in messages %}[|{{ m.role }}|]{{ m.content }}"
        "{% if m.role == 'user' %}\n{% else %}[|endofturn|]\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}[|assistant|]{% endif %}"
    ),
    "kimi_k2": (
        "{% for m in messages %}<|im_{{ m.role }}|>{{ m.role }}<|im_middle|>{{ m.content }}"
        "<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_assistant|>assistant<|im_middle|>{% endif %}"
    ),
    # Phi-4-mini: an end of the text behind the last message alone.
    "phi4_mini": (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% else %}{{ eos_token }}{% endif %}"
    ),
    # SmolLM2 names itself where nobody says who it is.
    "smollm2": (
        "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are an assistant.<|im_end|>\n"
        "{% endif %}" + _TURNS
    ),
    "command_a": (
        "{% for m in messages %}<|START_OF_TURN_TOKEN|>"
        "{% if m.role == 'assistant' %}<|CHATBOT_TOKEN|><|START_RESPONSE|>{{ m.content }}"
        "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"
        "{% else %}<|{{ m.role | upper }}_TOKEN|>{{ m.content }}<|END_OF_TURN_TOKEN|>{% endif %}"
        "{% endfor %}"
        "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}"
    ),
    # An empty thought in the replies since the last question.
    "thought_in_the_last": (
        "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}"
        "<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and loop.index0 > ns.last %}"
        "<think>\n\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """`ends` are the end tokens that the family's generation config names; `one_row` says whether
    one row holds ordinary turns; `open` whether the prompt opens a thought that a reply without
    one leaves open."""

    name: str
    ends: tuple[str, ...]
    one_row: bool = True
    system: bool = True
    open: bool = False


IM_END = ("<|im_end|>",)
EOT = ("<|eot_id|>",)
FAMILIES = [
    Family(name="cohere", ends=("<|END_OF_TURN_TOKEN|>",)),
    Family(name="cohere2", ends=("<|END_OF_TURN_TOKEN|>",)),
    Family(name="command_a", ends=("<|END_OF_TURN_TOKEN|>",)),
    Family(name="deepseek_r1_distill", ends=("<｜end▁of▁sentence｜>",), one_row=False, open=True),
    Family(name="deepseekv3", ends=("<｜end▁of▁sentence｜>",), one_row=False, open=True),
    Family(name="exaone", ends=("[|endofturn|]",)),
    Family(name="gemma", ends=("<end_of_turn>",), system=False),
    Family(name="gemma3", ends=("<end_of_turn>",)),
    Family(name="gemma4", ends=("<turn|>",)),
    Family(name="gemma4_v5", ends=("<turn|>",)),
    Family(name="glm4moe", ends=("<|endoftext|>", "<|user|>", "<|observation|>")),
    Family(name="gptoss", ends=("<|return|>", "<|call|>"), one_row=False),
    Family(name="granite", ends=("<|end_of_text|>",)),
    Family(name="kimi_k2", ends=IM_END),
    Family(name="lfm2", ends=IM_END),
    Family(name="lfm2_2_5", ends=IM_END),
    Family(name="llama3", ends=EOT),
    Family(name="llama3_1", ends=EOT),
    Family(name="llama3_2", ends=EOT),
    Family(name="mistral", ends=("</s>",)),
    Family(name="nemotron_3_nano", ends=IM_END, one_row=False),
    Family(name="nemotron_3_ultra", ends=IM_END, one_row=False),
    Family(name="olmo", ends=("<|endoftext|>",)),
    Family(name="phi3", ends=("<|end|>", "<|endoftext|>")),
    Family(name="phi3_5", ends=("<|end|>", "<|endoftext|>")),
    Family(name="phi4_mini", ends=("<|end|>", "<|endoftext|>")),
    Family(name="qwen2_5", ends=("<|im_end|>", "<|endoftext|>")),
    Family(name="qwen3", ends=("<|im_end|>", "<|endoftext|>"), one_row=False),
    Family(name="qwen3_5_think", ends=IM_END, one_row=False),
    Family(name="qwen3_6", ends=IM_END, one_row=False),
    Family(name="qwen3_instruct_2507", ends=("<|im_end|>", "<|endoftext|>")),
    Family(name="smollm2", ends=IM_END),
    Family(name="thought_in_the_last", ends=IM_END, one_row=False),
]
_MARKS = re.compile(
    r"<\|[^|<>\s'{}]{1,40}\|>|<｜[^<>\s']{1,40}｜>|<(?:start|end)_of_turn>|<\|turn>|<turn\|>"
    r"|\[\|[a-z]+\|\]|\[/?INST\]|</?s>|\[gMASK\]|<sop>"
)


@cache
def tokenizer_of(name: str, ends: tuple[str, ...]) -> Any:
    """A small byte-level tokenizer that knows the template's tokens, and joins line ends as those
    of Qwen and Llama 3 do."""
    shipped = SHIPPED / f"{name}.jinja"
    template = OWN[name] if name in OWN else shipped.read_text(encoding="utf-8")
    model = Tokenizer(models.BPE())
    pattern = r"\s*[\r\n]+| ?\p{L}+| ?[^\s\p{L}]+|\s+"
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    model.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    model.train_from_iterator(
        ["\n\n", "\n\nAction: open door\n\n", "Thought: go north."] * 20, trainer
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=model, bos_token="<bos>", eos_token=ends[-1], pad_token="<pad>"
    )
    roles = ("system", "user", "assistant")
    marks = {*_MARKS.findall(template), *ends}
    marks |= {f"<|{role}|>" for role in roles} if "<|{{ m.role }}|>" in template else set()
    marks |= {f"[|{role}|]" for role in roles} if name == "exaone" else set()
    marks |= {f"<|im_{role}|>" for role in roles} if name == "kimi_k2" else set()
    marks |= {"<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>"} if name == "command_a" else set()
    special = [AddedToken(mark, special=True, normalized=False) for mark in sorted(marks)]
    tokenizer.add_tokens(special, special_tokens=True)
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in ("<think>", "</think>")])
    tokenizer.chat_template = with_fixed_date(template)
    return tokenizer


def talk(*texts: str, system: str | None = None) -> Conversation:
    roles = ("user", "assistant")
    said = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    return said if system is None else [{"role": "system", "content": system}, *said]


THOUGHT = "<think>\nA door.\n</think>\n\n"
TALKS = {
    "turns": talk("You see a door.", "Action: open door", "It is open.", "Action: go north"),
    "system": talk("You see a door.", "Action: open", "Open.", "Action: go", system="Act well."),
    "line ends": talk("A door.", "\nAction: open door", "It is open.", "\n\nAction: go north\n"),
    "thoughts": talk("A door.", f"{THOUGHT}Action: open", "Open.", f"{THOUGHT}Action: go north"),
}


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> Family:
    found: Family = request.param
    return found


def encoder_of(family: Family) -> Encoder:
    tokenizer = tokenizer_of(family.name, family.ends)
    return Encoder(tokenizer, "tokenizer", tokenizer.convert_tokens_to_ids(list(family.ends)))


def prompt_ids(tokenizer: Any, messages: Conversation) -> list[int]:
    """What transformers makes of a prompt."""
    made = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=True
    )
    ids: list[int] = made["input_ids"]
    return ids


def check_turn(
    family: Family, messages: Conversation, turn: int, ids: Sequence[int], trained: Sequence[bool]
) -> None:
    """The tokens of a row up to the end of a turn, whose trained ones are the last: behind the
    served prompt, as the template closes the turn, to an end token."""
    tokenizer = tokenizer_of(family.name, family.ends)
    prompt = prompt_ids(tokenizer, messages[:turn])
    first = len(prompt)
    assert list(ids[:first]) == prompt
    assert all(trained[first:])
    assert len(ids) > first
    assert tokenizer.decode([ids[-1]]) in family.ends
    said = tokenizer.decode(ids[first:])
    content = messages[turn]["content"].strip()
    answer = content.rpartition("</think>")[2].strip()
    assert said.count(answer) == 1
    closed = tokenizer.apply_chat_template(messages[: turn + 1], tokenize=False)
    through = tokenizer.decode(ids)
    if closed.startswith(tokenizer.decode(prompt)):
        # The opening of the next message, where it is what ends a reply (GLM).
        assert closed.startswith(through) or through.startswith(closed)
    else:
        # The prompt opens a thought: no part of it is lost, and none is opened twice.
        assert "<think>" not in said
        assert said.removesuffix(tokenizer.decode([ids[-1]])).rstrip().endswith(answer)
        assert (content.count("</think>") or 0) <= said.count("</think>") <= 1


@pytest.mark.parametrize("said", TALKS)
def test_rows_train_each_turn_behind_its_served_prompt(family: Family, said: str) -> None:
    messages = TALKS[said]
    encoder = encoder_of(family)
    if said == "system" and not family.system:
        with pytest.raises(FormatError, match="refuses the conversation"):
            encoder.encode_turns(messages, {2, 4})
        return
    row = {"id": "row", "messages": messages, "prompt_length": 1}
    rules = MaskRules(loss_on="all_replies", max_length=4096, truncation="error")
    sides, counts = encode_rows(encoder, [row], rules)
    replies = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    if said == "turns":
        assert (len(sides) == 1) == family.one_row
    assert counts.parted == (len(sides) > 1)
    assert counts.open_thoughts == (len(replies) if family.open and said != "thoughts" else 0)
    for place, turn in enumerate(replies):
        side = sides[place] if len(sides) > 1 else sides[0]
        prompt = prompt_ids(encoder.tokenizer, messages[:turn])
        end = next(
            (i for i in range(len(prompt), len(side.ids)) if not side.trained[i]), len(side.ids)
        )
        check_turn(family, messages, turn, side.ids[:end], side.trained[:end])
        starts = sum(1 for i, each in enumerate(side.trained) if each and not side.trained[i - 1])
        assert starts == (1 if len(sides) > 1 else len(replies))


def test_pairs_score_each_turn_behind_its_served_prompt(family: Family) -> None:
    encoder = encoder_of(family)
    turns = TALKS["turns"]
    pair = {
        "id": "pair",
        "prompt": turns[:1],
        "chosen": turns[1:],
        "rejected": talk("", "Action: wait")[1:],
    }
    rules = MaskRules(loss_on="assistant", max_length=4096, truncation="error")
    [(chosen, rejected)], _ = encode_pairs(encoder, [pair], rules)
    assert (len(chosen.rows()) == 1) == family.one_row
    for place, turn in enumerate((1, 3)):
        row = chosen.rows()[place] if chosen.starts else chosen
        prompt = prompt_ids(encoder.tokenizer, turns[:turn])
        end = next(
            (i for i in range(len(prompt), len(row.ids)) if not row.trained[i]), len(row.ids)
        )
        check_turn(family, turns, turn, row.ids[:end], row.trained[:end])
    last = max(place for place, each in enumerate(rejected.trained) if each) + 1
    check_turn(
        family, [*turns[:1], *pair["rejected"]], 1, rejected.ids[:last], rejected.trained[:last]
    )
    assert chosen.positions() == [i for r in chosen.rows() for i in range(len(r.ids))]


def test_the_server_is_asked_with_the_same_prompts(family: Family, tmp_path: Path) -> None:
    """Also where a message spells the family's own tokens, alone or at a header's place."""
    encoder = encoder_of(family)
    tokenizer = encoder.tokenizer
    served = ChatText(str(tmp_path), tokenizer)
    how = {"add_generation_prompt": True, "continue_final_message": False}
    for said, messages in TALKS.items():
        if said == "system" and not family.system:
            continue
        for turn in (i for i, m in enumerate(messages) if m["role"] == "assistant"):
            prompt = served.encode(messages[:turn], **how)
            assert prompt == prompt_ids(tokenizer, messages[:turn])
            assert prompt == encoder.encode_prompt(messages[:turn])
    control = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    plain = [token for token in encoder.encode_prompt(talk("x")) if token in control]
    for token in sorted(control):
        spelled = talk(tokenizer.convert_ids_to_tokens(token))
        prompt = served.encode(spelled, **how)
        assert prompt == encoder.encode_prompt(spelled)
        assert [each for each in prompt if each in control] == plain


def test_the_documentation_lists_every_family() -> None:
    page = Path(__file__).parents[3] / "docs" / "chat_templates.md"
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    listed = {}
    for line in lines:
        cells = [cell.strip() for cell in re.split(r" \| ", line.strip("| "))]
        listed[cells[0].strip("`")] = (cells[2], cells[3].strip("`").removesuffix(" |"))
    assert sorted(listed) == sorted(family.name for family in FAMILIES)
    for family in FAMILIES:
        rows, end = listed[family.name]
        assert (rows == "one") == family.one_row
        assert end.strip("` ") in family.ends


def test_a_built_in_format_trains_each_turn_once_behind_its_prompt() -> None:
    """Replies that begin with a line end: in later prompts it joins the header's."""
    tokenizer = tokenizer_of("qwen2_5", ("<|im_end|>", "<|endoftext|>"))
    encoder = Encoder(tokenizer, "chatml")
    messages = TALKS["line ends"]
    row = {"id": "row", "messages": messages, "prompt_length": 1}
    rules = MaskRules(loss_on="all_replies", max_length=4096, truncation="error")
    sides, _ = encode_rows(encoder, [row], rules)
    assert len(sides) == 2
    for side, turn in zip(sides, (1, 3), strict=True):
        prompt = encoder.encode_prompt(messages[:turn])
        assert side.ids[: len(prompt)] == prompt
        assert not any(side.trained[: len(prompt)])
        said = tokenizer.decode([i for i, t in zip(side.ids, side.trained, strict=True) if t])
        assert said == messages[turn]["content"] + "<|im_end|>"
