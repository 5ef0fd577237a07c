"""How a trained checkpoint scores the rows that its trainer left beside it, worked out anew by
transformers in float32, a row at a time.

python rescored.py CHECKPOINT   prints the agreement as JSON, where tests run in other environments
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.data.models.scored_rows import agreement_of, read_scored_rows


def main() -> None:
    checkpoint = Path(sys.argv[1])
    scored = read_scored_rows(checkpoint)
    assert scored is not None, "its trainer left no rows"
    model = load_model(checkpoint)
    served = []
    for row in scored.rows:
        with torch.no_grad():
            logits = model(torch.tensor([row.ids])).logits[0, :-1].double()
        chosen = torch.log_softmax(logits, dim=-1).gather(1, torch.tensor(row.ids[1:])[:, None])
        served.append([None, *chosen[:, 0].tolist()])
    found = agreement_of(scored.rows, served)
    assert found is not None
    print(json.dumps({**asdict(found), "dtype": scored.dtype, "prompts": len(scored.prompts)}))


if __name__ == "__main__":
    main()
