"""Job of model.scratch, encoder.scratch and text_encoder.scratch: random weights, and a tokenizer
that is trained on the corpus."""

from __future__ import annotations

import sys
from typing import Any

from agentc.kinds.models import NewEncoder, NewModel, NewTextEncoder
from agentc.program.job import Job, load_job
from agentc_backends.data.chat.formats import FormatError, format_named, line_end_tokens
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    align_tokenizer,
    configure_libraries,
    write_chat_file,
)
from agentc_backends.data.models.induction import wire_induction
from agentc_backends.data.models.vocabulary import (
    corpus_messages,
    corpus_texts,
    train_encoder_tokenizer,
    train_tokenizer,
)


def main() -> int:
    job = load_job()
    configure_libraries()
    kind: str = job.spec["kind"]
    create = {"encoder": create_encoder, "text_encoder": create_text_encoder}.get(
        kind, create_model
    )
    try:
        create(job)
    except (FormatError, CheckpointError) as error:
        print(f"{kind}.scratch: {error}", file=sys.stderr)
        return 1
    return 0


def create_model(job: Job) -> None:
    """Write the new checkpoint into `job.out`. Raises FormatError, CheckpointError."""
    import torch
    import transformers

    new = job.config.read_as(NewModel)
    job.config.assert_all_read()
    chat = format_named(new.chat_format)
    texts = corpus_texts(chat, corpus_messages(job.inputs("corpus")))
    if not texts:
        raise CheckpointError("the corpus has no text to train a tokenizer on")
    job.progress(0, 2, "parts")
    tokenizer = train_tokenizer(chat, texts, new.vocab_size, new.context)
    job.progress(1, 2, "parts")
    settings = {
        "vocab_size": len(tokenizer),
        "hidden_size": new.hidden_size,
        "intermediate_size": new.intermediate_size,
        "num_hidden_layers": new.layers,
        "num_attention_heads": new.heads,
        "num_key_value_heads": new.kv_heads,
        "max_position_embeddings": new.context,
        "tie_word_embeddings": new.tie_embeddings,
        "rope_parameters": {"rope_type": "default", "rope_theta": new.rope_theta},
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    transformers.set_seed(new.seed)
    model = _build(new.architecture, settings)
    if new.initialisation == "induction":
        wire_induction(model, new.seed)
    own, ends = tokenizer.eos_token_id, line_end_tokens(tokenizer, chat)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=[own, *ends] if ends else own,
        pad_token_id=tokenizer.pad_token_id,
    )
    model.save_pretrained(str(job.out))
    tokenizer.save_pretrained(str(job.out))
    align_tokenizer(job.out)
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


def create_encoder(job: Job) -> None:
    """Write the half of CLIP that sees into `job.out`, with random weights."""
    import transformers
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    new = job.config.read_as(NewEncoder)
    job.config.assert_all_read()
    size = new.image_size
    settings = CLIPVisionConfig(
        hidden_size=new.width,
        intermediate_size=2 * new.width,
        num_hidden_layers=new.layers,
        num_attention_heads=new.heads,
        patch_size=new.patch_size,
        image_size=size,
        projection_dim=new.features,
    )
    transformers.set_seed(new.seed)
    model = CLIPVisionModelWithProjection(settings)
    model.save_pretrained(str(job.out))
    preparing = CLIPImageProcessorPil(
        size={"shortest_edge": size}, crop_size={"height": size, "width": size}
    )
    preparing.save_pretrained(str(job.out))
    job.facts(parameters=sum(parameter.numel() for parameter in model.parameters()))


def create_text_encoder(job: Job) -> None:
    """Write a RoBERTa of random weights into `job.out`, with its tokenizer. Raises CheckpointError
    for an empty corpus."""
    import transformers
    from transformers import RobertaConfig, RobertaModel

    new = job.config.read_as(NewTextEncoder)
    job.config.assert_all_read()
    conversations = corpus_messages(job.inputs("corpus"))
    texts = sorted(str(each["content"]) for messages in conversations for each in messages)
    if not any(texts):
        raise CheckpointError("the corpus has no text to train a tokenizer on")
    tokenizer = train_encoder_tokenizer(texts, new.vocab_size, new.context)
    settings = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=new.hidden_size,
        intermediate_size=4 * new.hidden_size,
        num_hidden_layers=new.layers,
        num_attention_heads=new.heads,
        # Its first position has the number behind the padding's.
        max_position_embeddings=new.context + 2,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    transformers.set_seed(new.seed)
    model = RobertaModel(settings)
    model.save_pretrained(str(job.out))
    tokenizer.save_pretrained(str(job.out))
    job.facts(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=len(tokenizer),
        corpus_characters=sum(map(len, texts)),
    )


if __name__ == "__main__":
    raise SystemExit(main())
