"""Encoders of texts for critics that read with one of their own: as their job makes them, and as
the input of a run's job."""

from __future__ import annotations

import json
from pathlib import Path

from tests.torch.trl.jobs import make_job
from tests.torch.trl.programs import run_program

_SCRATCH = "agentc_backends.data.models.job_scratch"
_SIZES = {"hidden_size": 32, "layers": 1, "heads": 2, "context": 32, "vocab_size": 300, "seed": 3}


def scratch_encoder(root: Path, text: str) -> Path:
    """One of 32 tokens at most, whose tokenizer has learnt from that text; below `root`."""
    (root / "corpus").mkdir()
    row = {"messages": [{"role": "user", "content": text}]}
    (root / "corpus" / "rows.jsonl").write_text(json.dumps(row) + "\n")
    (root / "job").mkdir()
    job = make_job(root / "job", "text_encoder", _SIZES, {"corpus": [root / "corpus"]}, {})
    status, _, errors = run_program(job, _SCRATCH)
    assert status == 0, errors
    return root / "job" / "data"


def read_with(job: Path, encoder: Path, pool: str = "mean") -> None:
    """The critic of a run's job file reads with that encoder."""
    told = json.loads(job.read_text())
    told["inputs"]["encoder"] = [str(encoder)]
    told["config"]["learner"]["encoder"] = {"pool": pool, "max_length": 32}
    job.write_text(json.dumps(told))
