"""Job of text_encoder.hf: downloads a pinned revision from the Hugging Face hub and takes it."""

from __future__ import annotations

from agentc_backends.data.models.encoders.job_hf import run_download
from agentc_backends.data.models.model_files import copy_text_encoder

if __name__ == "__main__":
    raise SystemExit(run_download("text_encoder.hf", copy_text_encoder))
