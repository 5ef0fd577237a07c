"""Settings of `serve.encoder`."""

from __future__ import annotations

from dataclasses import dataclass

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderServer:
    """What its program is started with."""

    threads: int = setting("Threads of torch.", 1, minimum=1, identity="placement")
# fmt: on
