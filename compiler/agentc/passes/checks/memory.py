"""Rules about what fits into a GPU, for stages whose `placement.gpu` says what one holds.

`memory_of.py` has the sums; `remedies.py` looks for the nearest settings that fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api import ServerBackend
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.suggest import did_you_mean
from agentc.ir.module import Resource, Stage
from agentc.kinds.table import LEASING, TRAINERS, kinds_where
from agentc.memory import CARDS, card_bytes
from agentc.memory.cards import card_label
from agentc.memory.need import gigabytes
from agentc.passes.checks.memory_remedies import remedies, would_lower
from agentc.passes.checks.model_holders import CARD, ModelHolder, holders_of
from agentc.passes.checks.model_servers import BESIDE, leased_servers
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext
from agentc.text import some

_PLACED = kinds_where(lambda kind: not kind.gathers)
_SHOWN = 3
_COUNT, _MOST_COUNTED = "placement.gpus", 8
"""A bare number up to this is a number of GPUs, rather than of GB."""


def valid_card(subject: StageContext) -> Iterator[Finding]:
    """`placement.gpu` is a card of the table, or a number of GB."""
    yield from _unknown(subject.settings)
    for server in leased_servers(subject):
        if server.is_shared:
            yield from _unknown(server.settings)


def _unknown(place: Settings) -> Iterator[Finding]:
    said = place.get(CARD)
    if said is None:
        return
    number = int(str(said)) if str(said).isdecimal() else None
    if number == 0:
        yield Finding(
            message="`gpu` is the memory of each GPU, which cannot be 0 GB",
            path=CARD,
            at=place.entry if isinstance(place.entry, Resource) else None,
            fix="for their number write `gpus: 0`",
        )
        return
    if number is not None and number <= _MOST_COUNTED and place.get(_COUNT) is None:
        yield Finding(
            message=f"`gpu` is the memory of each GPU: {said} GB, and nobody requests a GPU",
            path=CARD,
            at=place.entry if isinstance(place.entry, Resource) else None,
            fix=f"for their number write `gpus: {said}`, for memory `{said}gb`",
        )
        return
    if card_bytes(said) is not None:
        yield from _card_without_gpus(place, said)
        return
    name = str(said).lower()
    alike = [each for each in CARDS if each.split("-")[0] == name.split("-")[0]]
    hint = " or ".join(f"`{each}`" for each in alike)
    yield Finding(
        message=f"no GPU is known as `{said}`",
        path=CARD,
        at=place.entry if isinstance(place.entry, Resource) else None,
        expected="a card, or a number of GB",
        notes=(f"known: {some(CARDS, len(CARDS))}",),
        fix=f"write {hint}" if hint else did_you_mean(name, tuple(CARDS)) or "write its GB: `80`",
    )


def _card_without_gpus(place: Settings, said: object) -> Iterator[Finding]:
    """A card where no GPU is asked for holds nothing against itself. `defaults:` name one for all
    stages, those without GPUs among them."""
    entry = place.entry
    if place.get(_COUNT) is not None or (isinstance(entry, Stage) and CARD in entry.defaulted):
        return
    yield Finding(
        message=f"`gpu` says what each GPU holds ({card_label(said)}), and nobody requests one",
        path=CARD,
        at=entry if isinstance(entry, Resource) else None,
        severity="warning",
        notes=("without `gpus` the job gets none, and whether it fits is not looked at",),
        fix="add `gpus: 1`, or as many as there are to be; or leave `gpu` out",
    )


def fits_into_gpu(subject: StageContext) -> Iterator[Finding]:
    """What a stage holds at most fits into the GPU that `placement.gpu` names."""
    for role, holder in holders_of(subject).items():
        if role not in BESIDE:  # the policy's is as large as the largest of them
            yield from _fits(holder, subject)


def _fits(holder: ModelHolder, subject: StageContext) -> Iterator[Finding]:
    card = holder.card
    need = None if card is None else holder.need()
    if card is None or need is None or need.fits(card):
        return
    server = isinstance(holder.backend, ServerBackend)
    who = f"`{subject.stage.id}`" if holder.leased is None else holder.leased.who
    label = card_label(holder.get(CARD))
    room = gigabytes(card * need.share)
    has = f"{label} has {room}" if need.share == 1 else f"{need.share:g} of {label} is {room}"
    found = remedies(holder, subject)[:_SHOWN]
    yield Finding(
        message=f"{who} needs {gigabytes(need.device)} GB of each GPU, and {has}",
        path=CARD,
        at=holder.place.entry if isinstance(holder.place.entry, Resource) else None,
        notes=(f"{_what(holder)}: {need.sum_text()}", *_processes(holder, server)),
        fix="; ".join(f"{each.words}: {gigabytes(each.device)} GB" for each in found)
        or "nothing that can be set here makes it fit: a smaller model, "
        f"{_adapters(holder, subject)}or more GPUs of more memory",
    )


def _adapters(holder: ModelHolder, subject: StageContext) -> str:
    """Said of trainings that would take them."""
    backend = holder.backend
    if isinstance(backend, ServerBackend) or holder.get("lora") is not None:
        return ""
    taken = would_lower(subject, backend, {"lora": {"rank": 8}})
    return "adapters (`lora`), " if taken else ""


def _what(holder: ModelHolder) -> str:
    count = holder.model.parameters
    size = f"{count / 1e9:.3g}B" if count >= 1e9 else f"{count / 1e6:.3g}M"
    # Where a backend has stages of its own, they say what is shared out unless `sharding` does.
    staged = holder.get("zero_stage") is not None and holder.get("sharding") == "none"
    shared = "zero_stage" if staged else "sharding"
    names = ("dtype", shared, "tensor_parallel")
    said = [(name, holder.get(name)) for name in names]
    words = [f"{name} {value}" for name, value in said if value is not None]
    return ", ".join([f"{size} weights", *words])


def _processes(holder: ModelHolder, server: bool) -> tuple[str, ...]:
    if server:
        return ()
    sizes = [f"{name} {holder.get(name)}" for name in ("processes", "micro_batch", "max_length")]
    return (f"with {', '.join(sizes)}",)


MEMORY: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC660",
            "more than a GPU holds",
            "The weights, gradients, optimiser state and activations of a training, or the weights "
            "and the longest conversation of a server, are more than the GPU that `placement.gpu` "
            "names can hold: the job would wait in the queue and then end with an error. The sum "
            "is in the message; docs/design/memory.md says how it is made.",
        ),
        kinds=(*TRAINERS, *LEASING),
        check=fits_into_gpu,
    ),
    Rule(
        code=Code(
            "AGC661",
            "an unknown GPU",
            "`placement.gpu` says how much memory each GPU has, as a card's name or a number of "
            "GB. What the cluster calls its GPUs belongs into `gpu_type`, and how many there are "
            "into `gpus`.",
        ),
        kinds=_PLACED,
        check=valid_card,
    ),
)
