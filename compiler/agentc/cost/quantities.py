"""Quantity, a positive number known up to a factor, and the stated priors: every constant of an
estimate, with its band and its source.

The site shows the table of priors (`agentc.reference`); docs/design/cost.md has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

Z10 = 1.2815515655446004
"""Distance of the 10th and the 90th percentile of a normal distribution from its mean, in standard
deviations."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """`median` in whatever unit; `spread` is the standard deviation of the natural logarithm (0:
    known exactly, 0.69: about a factor of two)."""

    median: float
    spread: float = 0.0

    @classmethod
    def between(cls, median: float, factor: float) -> Quantity:
        """The quantity whose 90th percentile is `factor` times its median."""
        return cls(median, math.log(factor) / Z10)

    @property
    def low(self) -> float:
        """10th percentile."""
        return self.median * math.exp(-Z10 * self.spread)

    @property
    def high(self) -> float:
        """90th percentile."""
        return self.median * math.exp(Z10 * self.spread)

    def times(self, other: Quantity | float) -> Quantity:
        """The product with a number, or with an independent quantity."""
        if isinstance(other, Quantity):
            return Quantity(self.median * other.median, math.hypot(self.spread, other.spread))
        return Quantity(self.median * other, self.spread)

    def widened(self, spread: float) -> Quantity:
        """The same with an independent error more."""
        return Quantity(self.median, math.hypot(self.spread, spread))


ZERO = Quantity(0.0)


def total(parts: Iterable[Quantity]) -> Quantity:
    """The sum of independent parts, to first order: medians add, and each part's spread counts by
    its share."""
    parts = [part for part in parts if part.median > 0]
    median = sum(part.median for part in parts)
    if not median:
        return ZERO
    return Quantity(median, math.hypot(*(part.spread * part.median / median for part in parts)))


def sum_in_step(parts: Iterable[Quantity]) -> Quantity:
    """The sum of parts whose errors go together (the same guess enters all of them)."""
    parts = [part for part in parts if part.median > 0]
    median = sum(part.median for part in parts)
    if not median:
        return ZERO
    return Quantity(median, sum(part.spread * part.median for part in parts) / median)


@dataclass(frozen=True, slots=True)
class Prior:
    """One constant; `factor` is its 90th percentile over its median."""

    name: str
    median: float
    factor: float
    unit: str
    why: str

    @property
    def quantity(self) -> Quantity:
        """The constant with its band."""
        return Quantity.between(self.median, self.factor)


_ENVIRONMENTS = (
    Prior("tasks", 200, 6, "tasks of a split", "when the environment's backend states no number"),
    Prior("turn_share", 0.6, 1.6, "of max_turns", "episodes end early by success or failure"),
    Prior("policy_turns", 1.1, 1.6, "of an expert's", "policies took 0.6 to 1.5 times "
          "as many on TextCraft, Twenty Questions and a corridor"),
    Prior("expert_share", 0.25, 2.5, "of max_turns", "where the backend states nothing: "
          "WebShop about 4 of 10 (ETO, table 1), ScienceWorld 14 of 100"),
    Prior("reply_tokens", 40, 2.5, "tokens", "a thought and an action; never more than max_tokens"),
    Prior("observation_tokens", 60, 3, "tokens", "what the environment says each turn"),
    Prior("prompt_tokens", 150, 2.5, "tokens", "a task's own text, besides instruction and "
          "examples"),
    Prior("characters_per_token", 4, 1.25, "characters", "English under common tokenizers"),
    Prior("environment_turn", 0.0025, 3, "s", "one turn of an episode on one core, model server "
          "aside: 2.0 to 2.6 ms with the environment in the job's process, 4.8 to 6.3 over HTTP"),
    Prior("asked_reply", 40, 2.5, "tokens", "what a model that an environment calls replies, "
          "such as a human of two sentences"),
    Prior("asked_prompt", 250, 2, "tokens", "what it reads besides the dialogue: its part, the "
          "task, what the agent does not know"),
    Prior("expert_turn", 0.0005, 8, "s", "one turn of an expert on one core: TextCraft 0.2 ms in "
          "the job's process and 2.9 over HTTP, a step of ScienceWorld 6"),
    Prior("environment_start", 1.5, 5, "s", "a server that loads its tasks"),
)  # fmt: skip

_DATA = (
    Prior("paired", 0.6, 1.6, "of the episodes", "the rest are ties (pair_contrast drops them)"),
    Prior("good_episodes", 0.5, 1.8, "of a policy's", "those that `min_reward` keeps"),
    Prior("side_turns", 1.0, 1.5, "of an episode", "a side of a pair is about one episode"),
    Prior("row_bytes", 500, 1.8, "bytes of a row", "ids, rewards and JSON around the text"),
    Prior("light_job", 0.15, 3, "s", "start of a program that imports no torch, and its checks"),
    Prior("light_row", 0.0002, 3, "s a row", "reading and writing JSON lines"),
    Prior("own_program", 2, 10, "s", "a script of the spec's own: nobody knows before it has run"),
)  # fmt: skip

_TREES = (
    Prior("tree_share", 0.75, 1.5, "of the nodes on a path", "later descents begin on the paths of "
          "earlier ones, and a tree may be solved to its end"),
    Prior("tree_leaves", 1.5, 2, "leaves an iteration", "each descent ends in one; siblings of the "
          "last step may be ends as well"),
    Prior("good_leaves", 0.3, 2, "of the leaves", "attempts over alpha; Agent-R's rewards start "
          "near 0.3"),
    Prior("judged_share", 0.6, 1.5, "of a bad trajectory", "actions judged up to the first wrong "
          "one; equal beginnings are judged once"),
    Prior("judge_tokens", 120, 2.5, "tokens", "reasons and a verdict; never more than "
          "judge.max_tokens"),
    Prior("judge_question", 250, 1.6, "tokens", "the question around task and history"),
    Prior("dataset_rows", 10000, 6, "conversations", "a file from outside, before it is read"),
    Prior("dataset_tokens", 600, 2.5, "tokens of a conversation", "ShareGPT and its like"),
)  # fmt: skip

_TRAINING = (
    Prior("torch_start", 7, 2.2, "s", "importing torch, transformers and the trainer, CPU"),
    Prior("cuda_start", 20, 2.2, "s", "the same with CUDA, kernels and a process group"),
    Prior("load_rate", 1e9, 3, "bytes/s", "reading weights from a disk"),
    Prior("save_rate", 1e9, 3, "bytes/s", "writing a checkpoint that a training resumes from"),
    Prior("gpu_training_share", 0.35, 1.9, "of the peak", "model FLOPs utilisation of plain "
          "PyTorch fine-tuning; PaLM reports 0.46, Megatron-LM up to 0.5 at best settings"),
    Prior("cpu_training_share", 0.35, 2.2, "of the peak", "fp32, models of 4e5 to 1e8 weights"),
    Prior("step_overhead", 0.005, 2.5, "s a block and step", "launching kernels, optimiser and "
          "logging, forward and backward; micro-steps count"),
)  # fmt: skip

_SERVING = (
    Prior("server_start", 4.5, 2.2, "s", "a torch server on a CPU, before it loads weights"),
    Prior("cuda_server_start", 20, 2.2, "s", "a torch server on a GPU"),
    Prior("vllm_start", 75, 1.8, "s", "vLLM: imports, profiling, graph capture"),
    Prior("occupancy", 0.6, 1.4, "of the concurrency", "episodes differ in length, the last ones "
          "run by themselves"),
    Prior("prefill_share", 0.4, 2, "of the peak", "matrix products over whole prompts, GPU"),
    Prior("decode_bandwidth_share", 0.6, 1.6, "of the bandwidth", "reading weights and caches "
          "token by token (roofline)"),
    Prior("decode_step", 0.002, 2, "s a step", "scheduling and sampling, whatever the batch"),
    Prior("decode_block", 0.001, 2, "s a block and step", "Python and kernel launches of "
          "transformers; vLLM's graphs take a tenth"),
    Prior("decode_sequence", 0.0003, 2.5, "s a sequence and step", "sampling and bookkeeping in "
          "Python; vLLM takes a tenth"),
    Prior("remote_rate", 40, 2.5, "tokens/s a stream", "hosted endpoints"),
    Prior("download_rate", 50e6, 4, "bytes/s", "a hub model"),
    Prior("tokenizer_rate", 400e3, 2.5, "characters/s", "training a byte-level BPE"),
)  # fmt: skip

PRIORS: dict[str, Prior] = {
    prior.name: prior for prior in (*_ENVIRONMENTS, *_DATA, *_TREES, *_TRAINING, *_SERVING)
}

RATE_FACTOR = 1.6
"""What the formulas for time leave out, as a factor at the 90th percentile: other load on the
machine, padding, disk."""


@cache
def prior(name: str) -> Quantity:
    """The constant of that name, with its band."""
    return PRIORS[name].quantity


def value(name: str) -> float:
    """Its median alone."""
    return PRIORS[name].median
