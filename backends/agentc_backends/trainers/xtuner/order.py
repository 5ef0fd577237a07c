"""The order in which XTuner meets the rows: the permutations that every trainer uses, epoch after
epoch, dealt to the processes by whole micro-batches.

mmengine's own sampler deals single rows, so that the rows of a micro-batch, and with them the
result, would depend on the number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from itertools import count, islice

from agentc_backends.trainers.common.order import permutation


class RowOrder:
    """An endless sampler for torch's DataLoader.

    The rows of all epochs form one stream; `batch_size` rows in a row are a micro-batch, and
    process r of n takes the micro-batches r, r + n, ... Step s of a run thus holds the rows from
    s * global_batch on, however many processes there are.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        seed: int,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        if rank is None or world_size is None:
            from mmengine.dist import get_dist_info

            rank, world_size = get_dist_info()
        self.rows = len(dataset)
        self.batch_size = batch_size
        self.seed = seed
        self.rank = rank
        self.world_size = world_size

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[int]:
        stream = self._stream()
        for batch in count():
            rows = list(islice(stream, self.batch_size))
            if batch % self.world_size == self.rank:
                yield from rows

    def _stream(self) -> Iterator[int]:
        for epoch in count():
            yield from permutation(self.rows, self.seed, epoch)
