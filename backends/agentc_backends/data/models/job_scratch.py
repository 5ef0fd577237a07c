"""Job of model.scratch: a tokenizer trained on the corpus and a model with random weights."""

from __future__ import annotations

import sys
from typing import Any

from agentc.program.job import Job, load_job
from agentc_backends.data.chat.formats import FormatError, format_named, line_end_tokens
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    settle_libraries,
    settle_tokenizer,
    write_chat_file,
)
from agentc_backends.data.models.induction import wire_induction
from agentc_backends.data.models.vocabulary import corpus_messages, corpus_texts, train_tokenizer


def main() -> int:
    job = load_job()
    settle_libraries()
    try:
        create(job)
    except (FormatError, CheckpointError) as error:
        print(f"model.scratch: {error}", file=sys.stderr)
        return 1
    return 0


def create(job: Job) -> None:
    """Write the new checkpoint into `job.out`. Raises FormatError, CheckpointError."""
    import torch
    import transformers

    config = job.config
    chat = format_named(config["chat_format"])
    context: int = config["context"]
    texts = corpus_texts(chat, corpus_messages(job.inputs("corpus")))
    if not texts:
        raise CheckpointError("the corpus has no text to train a tokenizer on")
    job.progress(0, 2, "parts")
    tokenizer = train_tokenizer(chat, texts, config["vocab_size"], context)
    job.progress(1, 2, "parts")
    settings = {
        "vocab_size": len(tokenizer),
        "hidden_size": config["hidden_size"],
        "intermediate_size": config["intermediate_size"],
        "num_hidden_layers": config["layers"],
        "num_attention_heads": config["heads"],
        "num_key_value_heads": config["kv_heads"],
        "max_position_embeddings": context,
        "tie_word_embeddings": config["tie_embeddings"],
        "rope_parameters": {"rope_type": "default", "rope_theta": config["rope_theta"]},
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    transformers.set_seed(config["seed"])
    model = _build(config["architecture"], settings)
    if config["initialisation"] == "induction":
        wire_induction(model, config["seed"])
    config.assert_all_read()
    own, ends = tokenizer.eos_token_id, line_end_tokens(tokenizer, chat)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=[own, *ends] if ends else own,
        pad_token_id=tokenizer.pad_token_id,
    )
    model.save_pretrained(str(job.out))
    tokenizer.save_pretrained(str(job.out))
    settle_tokenizer(job.out)
    write_chat_file(job.out, chat.name)
    job.facts(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=len(tokenizer),
        corpus_characters=sum(len(text) for text in texts),
        versions={"torch": torch.__version__, "transformers": transformers.__version__},
    )
    job.progress(2, 2, "parts")


def _build(architecture: str, settings: dict[str, Any]) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    if architecture == "llama":
        return LlamaForCausalLM(LlamaConfig(**settings))
    return Qwen2ForCausalLM(Qwen2Config(**settings))


if __name__ == "__main__":
    raise SystemExit(main())
