"""What a tree has cost: counted while it grows, stored with it (contracts.md, section 4)."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class RequestBudget:
    """Requests to both servers, by what they were for. `environment_calls` counts every request
    about a session, closing included; `steps` made new nodes, `replayed_steps` brought a session
    to a node once more, `forks` copied a state (restored snapshots included), `verified` nodes were
    replayed and showed the same."""

    model_calls: int = 0
    samples: int = 0
    environment_calls: int = 0
    steps: int = 0
    replayed_steps: int = 0
    forks: int = 0
    verified: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def row(self) -> dict[str, int]:
        return asdict(self)
