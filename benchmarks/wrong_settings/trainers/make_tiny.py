"""Writes a model of a few thousand weights and 16 rows, so that a trainer has all that it needs.

Run by the Python of a trainer's own environment: `python make_tiny.py FOLDER`.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

folder = Path(sys.argv[1])
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
words = {word: n for n, word in enumerate(["<pad>", "<s>", "</s>", *alphabet])}
tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
)
fast.chat_template = TEMPLATE
fast.save_pretrained(folder / "model")
config = LlamaConfig(
    vocab_size=len(words),
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=512,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
LlamaForCausalLM(config).save_pretrained(folder / "model")
pairs = [(f"{n} + 1", str(n + 1)) for n in range(16)]
rows = [
    {"messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]}
    for a, b in pairs
]
(folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
