"""What is recorded of one episode, and what its program may ask. `recorder.py` and `passing.py`
fill it; whoever runs the program reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentc_backends.agents.recorded.exchange import Exchange, Message
from agentc_backends.clients.refusals import read_refusal

_EXCERPT = 300


@dataclass(slots=True, kw_only=True)
class RecordedSession:
    """An episode. Its program authenticates by `key`, which is random and opens nothing else;
    `name` is a number for the job's own use. Each of its replies is drawn by a seed that follows
    from `seed` and its number, and there are `most_replies` of them (None: any number)."""

    name: str
    key: str
    seed: int
    most_replies: int | None
    exchanges: list[Exchange] = field(default_factory=list)
    unanswered: tuple[Message, ...] = ()
    """What the last request said, where it was refused: how its program went on."""
    overflowed: bool = False
    """The last request was longer than the context."""
    limited: bool = False
    """It asked for more than `most_replies`."""
    failed: str | None = None
    """How the server failed at the last request, or cut a reply off, where it did."""
    cut_off: list[tuple[Message, ...]] = field(default_factory=list)
    """What those requests said whose streams ended before their replies did, and that nobody asked
    again: their program may have gone on with half of a reply."""
    overruled: int = 0
    """Requests that asked to be decoded otherwise than the stage says."""

    def answered(self, exchange: Exchange) -> None:
        """The last request has its reply."""
        self.exchanges.append(exchange)
        self.cut_off = [asked for asked in self.cut_off if asked != exchange.messages]
        if not self.cut_off:
            self.failed = None
        self.overflowed, self.unanswered = False, ()

    def refused(self, status: int, content: bytes) -> None:
        """The server refused the last request, with this body."""
        self.overflowed = read_refusal(content) is not None
        said = content[:_EXCERPT].decode("utf-8", "replace")
        broken = status >= 500 and not self.overflowed
        self.failed = f"the model server: {status} {said}" if broken else None
