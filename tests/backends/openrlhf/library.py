"""Run by OpenRLHF's own Python: what its commands make of command lines, and its losses of pairs
beside ours.

python library.py JSON     JSON maps `sft` and `dpo` to a command line each; prints JSON
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from agentc_backends.trainers.openrlhf.machine import prepare_machine


class Parsed(Exception):  # noqa: N818 - not an error
    """Raised where the command would begin to work."""


def parsed(kind: str, words: Sequence[str]) -> dict[str, Any]:
    """The flags of a command's parser, and the values that it reads."""
    import openrlhf.utils

    flags: dict[str, Any] = {}
    stock = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, *arguments: Any) -> Any:
        for action in self._actions:
            for flag in action.option_strings:
                if flag.startswith("--") and flag != "--help":
                    flags[flag] = {
                        "values": 0 if action.const is not None else action.nargs or 1,
                        "type": getattr(action.type, "__name__", None),
                        "choices": action.choices,
                    }
        return stock(self, *arguments)

    def begin(args: Any) -> None:
        raise Parsed(args)

    setattr(argparse.ArgumentParser, "parse_args", parse_args)  # noqa: B010 - mypy
    setattr(openrlhf.utils, "get_strategy", begin)  # noqa: B010
    module = f"openrlhf.cli.train_{kind}"
    sys.argv = [module, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except Parsed as raised:
        return {"flags": flags, "values": flat(raised.args[0])}
    finally:
        setattr(argparse.ArgumentParser, "parse_args", stock)  # noqa: B010
    raise AssertionError(f"{module} did not parse its command line")


def flat(node: SimpleNamespace, prefix: str = "--") -> dict[str, Any]:
    """Values by flag."""
    found: dict[str, Any] = {}
    for name, value in vars(node).items():
        if isinstance(value, SimpleNamespace):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def losses() -> dict[str, Any]:
    """What its own code and ours make of the same pairs."""
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
    return {
        "sums": [each[0].tolist() for each in (theirs, ours)],
        "means": [each[1].tolist() for each in (theirs, ours)],
        "losses": [float(loss(*values)[0]), float(whole), float(weighted(*filled)[0])],
    }


def main() -> None:
    prepare_machine()
    lines: dict[str, list[str]] = json.loads(sys.argv[1])
    found: dict[str, Any] = {"losses": losses()}
    found |= {kind: parsed(kind, words) for kind, words in lines.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
