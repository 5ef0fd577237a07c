"""Job of encoder.scratch: CLIP's half that sees, with random weights."""

from __future__ import annotations

from agentc.program.job import Job, load_job
from agentc_backends.data.models.checkpoint import settle_libraries


def main() -> int:
    settle_libraries()
    create(load_job())
    return 0


def create(job: Job) -> None:
    """Write the new encoder into `job.out`."""
    import transformers
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    config = job.config
    width: int = config["width"]
    size: int = config["image_size"]
    settings = CLIPVisionConfig(
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=config["layers"],
        num_attention_heads=config["heads"],
        patch_size=config["patch_size"],
        image_size=size,
        projection_dim=config["features"],
    )
    transformers.set_seed(config["seed"])
    config.assert_all_read()
    model = CLIPVisionModelWithProjection(settings)
    model.save_pretrained(str(job.out))
    preparing = CLIPImageProcessorPil(
        size={"shortest_edge": size}, crop_size={"height": size, "width": size}
    )
    preparing.save_pretrained(str(job.out))
    job.facts(parameters=sum(parameter.numel() for parameter in model.parameters()))


if __name__ == "__main__":
    raise SystemExit(main())
