"""Job of text_encoder.path: takes an encoder's directory of this machine."""

from __future__ import annotations

from agentc_backends.data.models.encoders.job_path import run_copy
from agentc_backends.data.models.model_files import copy_text_encoder

if __name__ == "__main__":
    raise SystemExit(run_copy("text_encoder.path", copy_text_encoder))
