"""Declares `serve.encoder`: a CLIP that makes features of pictures, on processors."""

from __future__ import annotations

from agentc.backend_api import LeaseDraft, OptionView, ServerBackend
from agentc.kinds.settings import fields_of
from agentc_backends.servers.encoder.settings import EncoderServer
from agentc_backends.servers.start_limit import StartLimit, start_limit
from agentc_backends.software import VISION


def _lease(options: OptionView) -> LeaseDraft:
    threads = str(options.integer("threads"))
    program = ["-m", "agentc_backends.servers.encoder.job_serve", "--die-with-parent"]
    program += ["--model", "{model}", "--served-name", "{served_name}"]
    program += ["--host", "{host}", "--port", "0", "--ready-file", "{ready_file}"]
    program += ["--threads", threads]
    return LeaseDraft(
        backend=BACKEND.id,
        version=BACKEND.version,
        software=VISION,
        program=tuple(program),
        identity=options.identity(),
        port="chosen",
        probe="/health",
        identity_check="features",
        variables={"OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"},
        ready_timeout_s=start_limit(options),
        capabilities=BACKEND.capabilities,
    )


BACKEND = ServerBackend(
    id="serve.encoder",
    version=1,
    doc="A CLIP's features of pictures, one at a time in float32 on a CPU, so that equal "
    "pictures have equal features; it says nothing, and no stage takes it for its server.",
    software=VISION,
    lease=_lease,
    fields=(*fields_of(EncoderServer), *fields_of(StartLimit)),
    capabilities=frozenset({"image_embeddings", "cpu"}),
)
