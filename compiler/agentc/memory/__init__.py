"""Whether it fits: what trainings and servers need of a GPU, of the host and of the disk.

`architectures` knows the shapes of models, `activations` what passes through them, `training` and
`serving` add up what a backend says that it keeps (`agentc.backend_api.memory`), `cards` has the
GPUs. Arithmetic alone: nothing is asked of a machine. docs/design/memory.md has the formulas and
how far they are from what was measured.
"""

from agentc.memory.architectures import PUBLISHED_SHAPES, architecture_named, scratch_architecture
from agentc.memory.cards import CARDS, card_bytes
from agentc.memory.need import BASE_BYTES, MemoryNeed, MemoryPart, serving_need, training_need

__all__ = [
    "BASE_BYTES",
    "CARDS",
    "PUBLISHED_SHAPES",
    "MemoryNeed",
    "MemoryPart",
    "architecture_named",
    "card_bytes",
    "scratch_architecture",
    "serving_need",
    "training_need",
]
