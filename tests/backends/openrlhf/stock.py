"""Run by OpenRLHF's own Python: what its own code and ours make of the same pairs, as JSON."""

from __future__ import annotations

import json
from typing import Any

from agentc_backends.trainers.openrlhf.machine import prepare_machine


def main() -> None:
    prepare_machine()
    import torch
    from openrlhf.models import DPOLoss
    from openrlhf.trainer.dpo_trainer import DPOTrainer

    from agentc_backends.trainers.openrlhf.trainers import PairTrainer, ScoredPair, _WeightedLoss

    torch.manual_seed(0)
    # Two pairs: lengths of the chosen, then of the rejected sides, and of their prompts.
    lengths, prompts = [9, 6, 7, 9], [3, 4]
    log_probs = -torch.rand(4, 8)
    attention = torch.tensor([[1] * length + [0] * (9 - length) for length in lengths])
    masks = [
        torch.arange(length) >= prompt for length, prompt in zip(lengths, prompts * 2, strict=True)
    ]
    scored = [ScoredPair(masks[0], masks[2], 1.0), ScoredPair(masks[1], masks[3], 1.0)]
    nobody: Any = None
    theirs = DPOTrainer._get_batch_logps(nobody, log_probs, attention, prompts * 2)
    ours = PairTrainer._get_batch_logps(nobody, log_probs, attention, scored * 2)

    policy, reference = theirs[0], theirs[0] + torch.rand(4)
    values = (policy[:2], policy[2:], reference[:2], reference[2:])
    loss = DPOLoss(0.1, 0.1)
    weighted = _WeightedLoss(loss)
    weighted.weights = [1.0, 1.0]
    whole = weighted(*values)[0]
    # The same two pairs beside two empty places in a step of four.
    weighted.weights = [2.0, 2.0, 0.0, 0.0]
    filled = tuple(torch.cat([each, torch.zeros(2)]) for each in values)
    print(
        json.dumps(
            {
                "sums": [each[0].tolist() for each in (theirs, ours)],
                "means": [each[1].tolist() for each in (theirs, ours)],
                "losses": [float(loss(*values)[0]), float(whole), float(weighted(*filled)[0])],
            }
        )
    )


if __name__ == "__main__":
    main()
