"""Chat format `plain`: the texts that ArCHer's environments show, byte for byte, replies that a
line end ends, and the same tokens in training and in play."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from tests.torch.trl.jobs import run_here, small_model, trainer_job, trajectories, write_rows
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

from agentc_backends.data.chat.formats import FormatError, format_named, line_end_tokens, render
from agentc_backends.data.chat.rows import MaskRules, encode_rows
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.data.models.checkpoint import set_chat_format
from agentc_backends.data.models.vocabulary import corpus_texts, train_tokenizer
from agentc_backends.openai_api.chat_text import ChatText

PLAIN = format_named("plain")
Conversation = list[dict[str, str]]

OBSERVATIONS = (
    # A guessing game: its name, then a line for each question with its answer.
    "Questions:\n",
    "Questions:\nIs it alive? No.\n",
    "Questions:\nIs it alive? No.\nIs it a tool? Invalid Question.\n",
    # A scene: what is seen, carried and told, and the list of what can be done.
    "<< Street >>\nYou see a gun.\n\nYou are carrying nothing.\n\nTaken.\n\n['north', 'take gun']",
    # A shop: pages and actions, and at the end what is wanted, without a line end.
    "\nObservation:\n\n[Search] \nAction:\nsearch[red mug]\nObservation:\n\n[B01]"
    "\nInstruction:\ni want a red mug, and price lower than 50.00 dollars ",
)
REPLIES = ("Is it a dog?", "take gun", "click[Buy Now]", "", " x")


def talk(*texts: str) -> Conversation:
    return [
        {"role": ("user", "assistant")[place % 2], "content": text}
        for place, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    corpus = [talk(shown, said) for shown in OBSERVATIONS for said in REPLIES]
    return Encoder(train_tokenizer(PLAIN, corpus_texts(PLAIN, corpus), 420, 512), "plain")


@pytest.mark.parametrize("shown", OBSERVATIONS)
def test_a_policy_reads_the_observation_and_nothing_else(encoder: Encoder, shown: str) -> None:
    prompt = encoder.encode_prompt(talk(shown))
    assert encoder.tokenizer.decode(prompt).encode() == shown.encode()


@pytest.mark.parametrize("said", REPLIES)
@pytest.mark.parametrize("shown", OBSERVATIONS)
def test_a_reply_and_its_line_end_are_trained_behind_the_tokens_of_the_prompt(
    encoder: Encoder, shown: str, said: str
) -> None:
    prompt, whole = encoder.encode_prompt(talk(shown)), encoder.encode(talk(shown, said))
    # Tokenised in one piece, "dollars " and "click" would share a token.
    assert whole.ids[: len(prompt)] == prompt
    assert whole.turns == [-1] * len(prompt) + [1] * (len(whole.ids) - len(prompt))
    assert encoder.tokenizer.decode(whole.ids[len(prompt) :]) == f"{said}\n"
    assert whole.ids[-1] in line_end_tokens(encoder.tokenizer, PLAIN)


def test_a_recorded_game_is_trained_turn_by_turn_on_the_transcripts(encoder: Encoder) -> None:
    """`memory: last`: each reply stands behind its own transcript; one that its limit cut was not
    ended, so no line end is trained behind it."""
    messages: list[dict[str, Any]] = [
        *talk(OBSERVATIONS[0], "Is it alive?", OBSERVATIONS[1], "Is it a tool?", OBSERVATIONS[2]),
        {"role": "assistant", "content": "Is it a dog", "cut": True},
    ]
    row = {"id": "a", "messages": messages, "prompt_length": 1, "memory": "last"}
    rules = MaskRules(loss_on="after_prompt", max_length=512, truncation="error")
    sides, counts = encode_rows(encoder, [row], rules)
    assert counts.rows == 3
    decode = encoder.tokenizer.decode
    found = [
        (decode(side.ids), decode([i for i, t in zip(side.ids, side.trained, strict=True) if t]))
        for side in sides
    ]
    assert found == [
        ("Questions:\nIs it alive?\n", "Is it alive?\n"),
        ("Questions:\nIs it alive? No.\nIs it a tool?\n", "Is it a tool?\n"),
        (OBSERVATIONS[2] + "Is it a dog\n", "Is it a dog"),
    ]


def test_a_whole_conversation_is_served_as_it_is_trained(encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "agentc_chat.json").write_text('{"chat_format": "plain"}')
    served = ChatText(str(tmp_path), encoder.tokenizer)
    said = talk("Go.\n", "north", "\nA wall <|endoftext|>.\n", "south", "\n\nA door. ")
    whole = encoder.encode([*said, {"role": "assistant", "content": "open"}]).ids
    prompt = served.encode(said, add_generation_prompt=True, continue_final_message=False)
    assert whole[: len(prompt)] == prompt
    assert encoder.tokenizer.decode(prompt) == render(PLAIN, said, generate=True)
    assert encoder.tokenizer.eos_token_id not in prompt
    begun = served.encode(
        talk("Go.\n", "nor"), add_generation_prompt=False, continue_final_message=True
    )
    assert encoder.tokenizer.decode(begun) == "Go.\nnor"


def test_the_template_of_servers_writes_the_same(encoder: Encoder) -> None:
    said = talk("Go.\n", "north", "A wall.\n", "", "A door. ")
    for messages in (said, said[:4]):
        texts, spans = render_jinja_template(
            [messages],
            chat_template=PLAIN.template,
            add_generation_prompt=len(messages) % 2 == 1,
            return_assistant_tokens_mask=True,
        )
        assert texts[0] == render(PLAIN, messages, generate=True)
        assert [texts[0][a:b] for a, b in spans[0]] == ["north\n", "\n"]


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([{"role": "system", "content": "Play."}, *talk("Go.")], "no place"),
        (talk("Go.", "Thought: x\nAction: y"), "one line|several lines"),
        ([{"role": "tool", "content": "x"}], "'tool'|tool message"),
    ],
)
def test_what_plain_text_cannot_say_is_refused_by_text_and_template(
    messages: Conversation, why: str
) -> None:
    from jinja2.exceptions import TemplateError

    with pytest.raises(FormatError, match=why):
        render(PLAIN, messages)
    with pytest.raises(TemplateError, match=why):
        render_jinja_template([messages], chat_template=PLAIN.template)


class _Tokens:
    """As much of a tokenizer as is asked for: a vocabulary of these texts, no control token."""

    is_fast = True
    added_tokens_decoder: dict[int, str] = {}  # noqa: RUF012

    def __init__(self, *texts: str, line_end: tuple[int, ...] = (0,)) -> None:
        self._texts, self._line_end = texts, [*line_end]

    def __len__(self) -> int:
        return len(self._texts)

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        return {"input_ids": self._line_end}

    def batch_decode(self, rows: list[list[int]], **_: object) -> list[str]:
        return ["".join(self._texts[token] for token in row) for row in rows]


def test_every_token_with_a_line_end_ends_a_reply_and_none_may_go_on_behind_it() -> None:
    assert line_end_tokens(_Tokens("\n", "a", "?\n", "\n\n", " \n "), PLAIN) == (0, 2, 3, 4)
    assert line_end_tokens(_Tokens("\n", "a"), format_named("chatml")) == ()
    with pytest.raises(FormatError, match=r"continues behind one \('\\n#'\)"):
        line_end_tokens(_Tokens("\n", "\n#"), PLAIN)
    with pytest.raises(FormatError, match="in several tokens"):
        Encoder(_Tokens("\n", "_", line_end=(1, 0)), "plain")


class TestCheckpoints:
    """What ends a reply stands in the checkpoint, through every job that makes one of another."""

    def ends(self, folder: Path) -> set[int]:
        told = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
        own = AutoTokenizer.from_pretrained(folder).eos_token_id
        assert json.loads((folder / "agentc_chat.json").read_text())["chat_format"] == "plain"
        assert own in told
        return {*told} - {own}

    def test_of_a_new_model_and_of_one_trained_from_it(self, tmp_path: Path) -> None:
        folder = small_model(tmp_path, chat_format="plain")
        expected = {*line_end_tokens(AutoTokenizer.from_pretrained(folder), PLAIN)}
        assert expected
        assert self.ends(folder) == expected
        rows = write_rows(tmp_path / "rows", "trajectories.jsonl", trajectories(8))
        told = {"model": [folder], "data": [rows]}
        run_here(trainer_job(tmp_path / "sft", "sft", told, epochs=1))
        assert self.ends(tmp_path / "sft" / "data") == expected

    def test_of_a_model_that_had_another_format(self, tmp_path: Path) -> None:
        folder = small_model(tmp_path)
        before = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
        for _ in range(2):  # again: nothing twice
            set_chat_format(folder, "plain")
        told = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
        assert told == [before, *line_end_tokens(AutoTokenizer.from_pretrained(folder), PLAIN)]
