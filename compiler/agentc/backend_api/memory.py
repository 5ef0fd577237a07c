"""What a backend says of its memory: which numbers each of its processes keeps, how wide they are,
and what it shares out. `agentc.memory` does the arithmetic; docs/design/memory.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.kinds.field import Json

Moment: TypeAlias = Literal["reference", "loss", "backward", "step", "save"]
"""When a training may need most: while the reference's log-probabilities are made, when a loss is
there with all activations, when the last gradient is there, while the optimiser steps, while a
checkpoint is written."""
TRAINING: frozenset[Moment] = frozenset({"loss", "backward", "step", "save"})
ALWAYS: frozenset[Moment] = TRAINING | {"reference"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The shape of a Llama-type model (Llama, Mistral, Qwen2, Qwen3), by its config.json.

    `head_size` is the width of an attention head; `biased`: the projections to queries, keys and
    values have a bias, as Qwen2's have; `head_norms`: the heads of queries and keys are normalised,
    as Qwen3's are; `context` is the longest sequence; `vision` are the
    weights of the part that sees, beside the text's.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    intermediate: int
    vocabulary: int
    tied: bool
    context: int
    biased: bool = False
    vision: int = 0
    head_norms: bool = False

    @property
    def queries(self) -> int:
        """Width of all queries of a token."""
        return self.heads * self.head_size

    @property
    def keys(self) -> int:
        """Width of all keys of a token, and of all values."""
        return self.kv_heads * self.head_size

    @property
    def table(self) -> int:
        """Weights of the embedding, and of the head."""
        return self.vocabulary * self.hidden

    @property
    def block(self) -> int:
        """Weights of a layer: attention, gated MLP, norms."""
        attention = 2 * self.hidden * (self.queries + self.keys)
        small = self.queries + 2 * self.keys if self.biased else 0
        small += 2 * self.head_size if self.head_norms else 0
        return attention + small + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All weights, each once."""
        tables = self.table if self.tied else 2 * self.table
        return tables + self.layers * self.block + self.hidden + self.vision

    def adapters(self, rank: int, targets: tuple[str, ...] = ()) -> int:
        """Weights of low-rank adapters on these modules (`q_proj`), on all linear ones without."""
        widths = {
            "q_proj": self.hidden + self.queries,
            "k_proj": self.hidden + self.keys,
            "v_proj": self.hidden + self.keys,
            "o_proj": self.hidden + self.queries,
            "gate_proj": self.hidden + self.intermediate,
            "up_proj": self.hidden + self.intermediate,
            "down_proj": self.hidden + self.intermediate,
        }
        return self.layers * rank * sum(widths.get(name, 0) for name in targets or widths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Numbers that every training process keeps: `width` bytes for each weight of the model
    (`of: all`), of those that are trained, or of the reference.

    `split`: the processes share them out, each has a part. `at`: when they are there. `offloaded`:
    they lie in the main memory of the host, also where there are GPUs.
    """

    name: str
    width: float
    of: Literal["all", "trained", "reference"] = "all"
    split: bool = False
    at: frozenset[Moment] = TRAINING
    offloaded: bool = False


@dataclass(frozen=True, slots=True)
class Logits:
    """Memory of the scores over the vocabulary: `width` bytes for each of them at the worst moment.
    `tile`: tokens and vocabulary entries that are computed at once, where not all are; the
    gradient of the head then is a copy of its own."""

    width: float
    tile: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerMemory:
    """One training, for each process.

    `processes` train together; each takes `sequences` of `length` tokens at once. `flow` is the
    width of the numbers between a layer's products, `residual` of those that layers add to. With
    `checkpointing` only what enters a layer is kept. `gathered`: layers whose weights are put
    together at a time where they are shared out, at `flow` bytes each; `ends` bytes for each weight
    of the embeddings and the head are put together as long as passes last.

    In main memory a process loads `loaded` bytes a weight before it trains, all of them where
    `loads_once` is false, else the first one alone; and the first one needs `saving` bytes a weight
    there while it writes a checkpoint. On disk `checkpoint` bytes a weight are one
    resumable checkpoint of all processes, of which `kept` lie there at most.
    """

    held: tuple[Held, ...]
    processes: int
    sequences: int
    length: int
    flow: int
    residual: int
    logits: Logits
    checkpointing: bool
    loaded: float
    checkpoint: float
    gathered: int = 0
    ends: int = 0
    loads_once: bool = False
    saving: float = 0.0
    kept: int = 3
    adapters: int = 0
    """Weights that are trained instead of the model's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMemory:
    """One server of a model.

    `weights` bytes a weight are shared by `devices`; a cached token takes `cache` bytes for each
    key and value; `window` tokens of one conversation have to fit at least, `fixed_cache` bytes are
    taken for keys and values whatever fits. `batch` tokens pass at once, at `flow` bytes a number,
    and `replies` rows of logits at `logit` bytes. On a GPU it takes no more than `share` of the
    memory. On a node `workers` processes run.
    """

    weights: float
    devices: int
    cache: float
    window: int
    batch: int
    flow: int
    replies: int
    logit: float = 4.0
    share: float = 1.0
    fixed_cache: int = 0
    workers: int = 1
    offloaded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuestion:
    """What a backend is asked about: `get` gives the settings in effect by dotted path
    (`placement.gpus` too), None for what nothing declares; `model` is the model's shape;
    `gpus` are those of the job, 0 where it has none, and `card` is their memory in bytes,
    where it is known. `reference` says that what is trained is compared with another model."""

    get: Callable[[str], Json]
    model: Architecture
    gpus: int
    nodes: int = 1
    card: float | None = None
    reference: bool = False

    def integer(self, path: str, otherwise: int) -> int:
        """A setting that is a whole number."""
        found = self.get(path)
        return found if isinstance(found, int) and not isinstance(found, bool) else otherwise

    def flag(self, path: str) -> bool:
        """A setting that is yes or no."""
        return self.get(path) is True

    def text(self, path: str, otherwise: str) -> str:
        """A setting that is a word."""
        found = self.get(path)
        return found if isinstance(found, str) else otherwise
