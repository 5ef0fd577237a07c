"""Job of text_encoder.scratch: a tokenizer trained on the corpus and a RoBERTa with random weights.

Neighbour: `../vocabulary.py`, which reads the corpus.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from agentc.program.job import Job, load_job
from agentc_backends.data.models.checkpoint import CheckpointError, settle_libraries
from agentc_backends.data.models.vocabulary import byte_level, corpus_messages

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""RoBERTa's, with its numbers 0 to 4; 1 is the padding that its positions are counted by."""


def main() -> int:
    job = load_job()
    settle_libraries()
    try:
        create(job)
    except CheckpointError as error:
        print(f"text_encoder.scratch: {error}", file=sys.stderr)
        return 1
    return 0


def create(job: Job) -> None:
    """Write the new encoder into `job.out`. Raises CheckpointError for an empty corpus."""
    import transformers
    from transformers import RobertaConfig, RobertaModel

    config = job.config
    context: int = config["context"]
    width: int = config["hidden_size"]
    conversations = corpus_messages(job.inputs("corpus"))
    texts = sorted(str(each["content"]) for messages in conversations for each in messages)
    if not any(texts):
        raise CheckpointError("the corpus has no text to train a tokenizer on")
    tokenizer = train_encoder_tokenizer(texts, config["vocab_size"], context)
    settings = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=config["layers"],
        num_attention_heads=config["heads"],
        # Its first position has the number behind the padding's.
        max_position_embeddings=context + 2,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    transformers.set_seed(config["seed"])
    config.assert_all_read()
    model = RobertaModel(settings)
    model.save_pretrained(str(job.out))
    tokenizer.save_pretrained(str(job.out))
    job.facts(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=len(tokenizer),
        corpus_characters=sum(map(len, texts)),
    )


def train_encoder_tokenizer(texts: Sequence[str], vocab_size: int, context: int) -> Any:
    """A fast tokenizer (transformers) of at most `vocab_size` tokens, all bytes among them, that
    puts a text between <s> and </s>."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = byte_level(texts, vocab_size, SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )


if __name__ == "__main__":
    raise SystemExit(main())
