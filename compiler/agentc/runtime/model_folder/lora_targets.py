"""Targets of low-rank adapters, checked against the modules of a model.

PEFT takes a list of names of which one matches, and leaves out the others without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentc.runtime.model_folder.weights import Tensor

INPUT_EMBEDDINGS = ("embed_tokens", "wte", "word_embeddings", "embed_in")
OUTPUT_EMBEDDINGS = ("lm_head", "embed_out")
_ENDS = (*INPUT_EMBEDDINGS, *OUTPUT_EMBEDDINGS)
_USUAL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_EXPERTS = ".experts."
_ROUTERS = (".gate", ".router")
_MOST_NAMES = 12
_TIED = "`%s` is tied: input and output embeddings are the same weights, and an adapter changes one"
_READ_PAST = "losses are computed from the weights of `%s` themselves, past any adapter on it"
_IGNORED = "PEFT leaves out names that it does not find, as long as it finds one"


@dataclass(frozen=True)
class TargetFault:
    """What is wrong with a target, by its place in the list, and what to do about it."""

    number: int
    message: str
    fix: str
    note: str = ""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.message}{note}; {self.fix}"


def modules_of(tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    """The modules that an adapter can be put on, by the tensors of a checkpoint: matrices. Of
    quantised layers the weights have other names and shapes. The experts of a mixture, and the
    router that chooses among them, are parameters of one module in memory."""
    matrices = [
        name[: -len(end)]
        for name, tensor in tensors.items()
        for end in (".weight", ".qweight")
        if name.endswith(end) and (len(tensor.shape) == 2 or end == ".qweight")
    ]
    mixed = {block for name in tensors for block, inner, _ in [name.partition(_EXPERTS)] if inner}
    routers = {block + router for block in mixed for router in _ROUTERS}
    return tuple(name for name in matrices if _EXPERTS not in name and name not in routers)


def usual_modules() -> tuple[str, ...]:
    """Those of Llama, Mistral and Qwen2, whose embeddings are known to be tied or not."""
    return (*_USUAL, "embed_tokens", "lm_head")


def target_faults(
    targets: Sequence[str], modules: Iterable[str] | None, tied: bool, *, exact: bool
) -> list[TargetFault]:
    """One for each target that no module matches, or that is on embeddings that cannot be adapted.

    `modules` are dotted names, None where nobody knows them; with `exact` they are those of the
    model in memory, else those of its files, which may begin otherwise.
    """
    names = None if modules is None else tuple(modules)
    last = {name.rpartition(".")[2] for name in names or ()}
    free = _in_order(last.difference(_ENDS))
    has = f"; the model has {_listed(free)}" if free else ""
    faults: list[TargetFault] = []
    for number, target in enumerate(targets):
        end = target.rpartition(".")[2]
        message = f"`lora.targets` names `{target}`{has}"
        if end in OUTPUT_EMBEDDINGS or (tied and end in INPUT_EMBEDDINGS):
            note = _TIED if tied else _READ_PAST
            faults.append(TargetFault(number, message, f"leave `{target}` out", note % end))
        elif names is not None and not (_matches(target, names) if exact else end in last):
            near = _nearest(target, free)
            fix = f"did you mean `{near}`?" if near else "leave `targets` out to adapt them all"
            faults.append(TargetFault(number, message, fix, _IGNORED))
    return faults


def _matches(target: str, names: Collection[str]) -> bool:
    """Whether PEFT puts an adapter somewhere for this name."""
    return any(name == target or name.endswith("." + target) for name in names)


def _nearest(target: str, names: Sequence[str]) -> str | None:
    near = difflib.get_close_matches(target, names, 1, 0.7)
    return near[0] if near else None


def _in_order(names: Iterable[str]) -> list[str]:
    def rank(name: str) -> tuple[int, str]:
        return (_USUAL.index(name) if name in _USUAL else len(_USUAL), name)

    return sorted(names, key=rank)


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names[:_MOST_NAMES]]
    more = len(names) - len(quoted)
    return ", ".join(quoted) + (f" and {more} more" if more else "")
