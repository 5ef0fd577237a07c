"""A chat template of a model that fails in any way is refused in words, by trainers and servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AddedToken, PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.template_rendering import RestrainedEnvironment
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.openai_api.chat_text import ChatText

MESSAGES = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
HOSTILE = {
    "a product": "{{ 'x' * 2000000000 }}",
    "doubling": "{% set n = namespace(t='xx') %}{% for i in range(40) %}"
    "{% set n.t = n.t ~ n.t %}{% endfor %}",
    "indent": "{{ messages[0].content|indent(999999999, true) }}",
    "an include": "{% include 'other' %}",
    "an import": "{% import 'os' as os %}{{ os }}",
    "a recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a long range": "{% for i in range(100001) %}{% endfor %}",
    "a wrong type": "{{ messages + 1 }}",
    "a division by zero": "{{ 1 // 0 }}",
    "a missing key": "{{ messages[7].content.x }}",
    "an escape": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a refusal": "{{ raise_exception('no') }}",
    "no Jinja": "{% for %}",
}


def tokenizer(template: str) -> Any:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator([], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    found = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>")
    found.add_special_tokens({"additional_special_tokens": [AddedToken("<|x|>", special=True)]})
    found.chat_template = template
    return found


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_template_is_refused_in_words(case: str, tmp_path: Path) -> None:
    held = tokenizer(HOSTILE[case])
    encoder = Encoder(held, "tokenizer", (held.eos_token_id,))
    with pytest.raises(FormatError):
        encoder.encode(MESSAGES)
    (tmp_path / "agentc_chat.json").write_text('{"chat_format": "tokenizer"}')
    served = ChatText(str(tmp_path), held)
    with pytest.raises(FormatError):
        served.encode(MESSAGES[:1], add_generation_prompt=True, continue_final_message=False)


def test_transformers_compiles_templates_in_the_restrained_environment() -> None:
    held = tokenizer("{% for m in messages %}{{ m.content }}{% endfor %}")
    Encoder(held, "tokenizer", (held.eos_token_id,))._apply(MESSAGES, False)
    compiled = chat_template_utils._compile_jinja_template(held.chat_template)
    assert isinstance(compiled.environment, RestrainedEnvironment)
