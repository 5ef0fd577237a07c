"""The released agent and trainer out of a checkout, unchanged but for the width of the critic's
heads, which is written into the class. What they import and do not need is stood in for."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


class Released:
    """An agent with its trainer on tiny models, `rows` of a micro-batch and so many of them in a
    step. Replies are drawn with `max_new_tokens`, always all of them."""

    def __init__(
        self,
        checkout: Path,
        policy: Path,
        encoder: Path,
        *,
        width: int,
        rows: int,
        accumulated: int,
        clip: float,
        critic_lr: float = 1e-3,
        actor_lr: float = 1e-3,
        max_new_tokens: int = 32,
    ) -> None:
        _stand_in(checkout)
        from accelerate import Accelerator

        agent_module: Any = import_module("archer.models.archer_agent")
        trainer_module: Any = import_module("archer.algorithms.archer.trainer")
        double_critic: Any = import_module("archer.models.critic").DoubleCritic

        def critic(*args: Any, **named: Any) -> Any:
            return double_critic(*args, **{**named, "in_dim": width})

        agent_module.DoubleCritic = critic
        accelerator = Accelerator(cpu=True)
        self.agent = agent_module.ArcherAgent(
            device="cpu",
            accelerator=accelerator,
            policy_lm=str(policy),
            critic_lm=str(encoder),
            cache_dir=None,
            max_new_tokens=max_new_tokens,
            eos_str="\n",
        )
        self.trainer = trainer_module.ArcherTrainer(
            self.agent,
            accelerator,
            self.agent.tokenizer,
            critic_lr=critic_lr,
            lm_lr=actor_lr,
            grad_accum_steps=accumulated,
            gamma=0.95,
            tau=0.1,
            epochs=1,
            max_grad_norm=clip,
            actor_epochs=1,
        )
        self.agent.prepare()
        self.buffer = import_module("archer.data").ReplayBuffer(batch_size=rows, capacity=100000)

    def update(self, critic_steps: int, actor_steps: int) -> Any:
        """What it says of its losses."""
        self.trainer.epochs, self.trainer.actor_epochs = critic_steps, actor_steps
        return self.trainer.update(self.buffer, no_update_actor=not actor_steps)

    def draw_these(self, rows: Sequence[dict[str, Any]], replies: Sequence[str]) -> None:
        """Batches are these rows, one behind the other, and the policy says these replies."""
        coming, said = iter(rows), iter(replies)
        self.buffer.sample = lambda _: {k: [v] for k, v in next(coming).items()}
        self.agent.get_action = lambda states: [next(said) for _ in states]


def count_passes(model: Any) -> Callable[[], int]:
    """How often the model's `forward` was called since."""
    calls = [0]

    def counted(*_: Any, **__: Any) -> None:
        calls[0] += 1

    model.register_forward_pre_hook(lambda *_: counted())
    return lambda: calls[0]


def _stand_in(checkout: Path) -> None:
    for name in ("wandb", "archer.environment"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["archer.environment"].batch_interact_environment = None  # type: ignore[attr-defined]
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
