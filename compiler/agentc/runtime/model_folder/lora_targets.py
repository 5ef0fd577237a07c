"""Targets of low-rank adapters, checked against the modules of a model.

PEFT takes a list of names of which one matches, and leaves out the others without a word.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Collection, Iterable, List, Mapping, Optional, Sequence, Tuple

from agentc.runtime.model_folder.safetensors import Tensor

INPUT_EMBEDDINGS = ("embed_tokens", "wte", "word_embeddings", "embed_in")
OUTPUT_EMBEDDINGS = ("lm_head", "embed_out")
_ENDS = (*INPUT_EMBEDDINGS, *OUTPUT_EMBEDDINGS)
_USUAL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_MOST_NAMES = 12


@dataclass(frozen=True)
class TargetFault:
    """What is wrong with a target, by its place in the list, and what to do about it."""

    number: int
    message: str
    fix: str

    def __str__(self) -> str:
        return "%s; %s" % (self.message, self.fix)


def modules_of(tensors: Mapping[str, Tensor]) -> Tuple[str, ...]:
    """The modules that an adapter can be put on, by the tensors of a checkpoint: matrices. Of
    quantised layers the weights have other names and shapes."""
    return tuple(
        name[: -len(end)]
        for name, tensor in tensors.items()
        for end in (".weight", ".qweight")
        if name.endswith(end) and (len(tensor.shape) == 2 or end == ".qweight")
    )


def usual_modules() -> Tuple[str, ...]:
    """Those of Llama, Mistral and Qwen2, whose embeddings are known to be tied or not."""
    return (*_USUAL, "embed_tokens", "lm_head")


def target_faults(
    targets: Sequence[str], modules: Iterable[str], tied: bool, *, exact: bool
) -> List[TargetFault]:
    """One for each target that no module matches, or that is on tied embeddings. `modules` are
    dotted names; with `exact` they are those of the model in memory, else those of its files, which
    may begin otherwise."""
    names = tuple(modules)
    last = {name.rpartition(".")[2] for name in names}
    free = _in_order(last.difference(_ENDS))
    faults: List[TargetFault] = []
    for number, target in enumerate(targets):
        end = target.rpartition(".")[2]
        if tied and end in _ENDS:
            message = "`lora.targets` names `%s`, which is tied: input and output embeddings are "
            message += "the same weights, and an adapter changes only one of them"
            fix = "leave `%s` out; the model also has %s" % (target, _listed(free))
            faults.append(TargetFault(number, message % target, fix))
        elif not (_matches(target, names) if exact else end in last):
            near = _nearest(target, free)
            fix = "did you mean `%s`?" % near if near else "leave `targets` out to adapt them all"
            message = "`lora.targets` names `%s`; the model has %s" % (target, _listed(free))
            faults.append(TargetFault(number, message, fix))
    return faults


def _matches(target: str, names: Collection[str]) -> bool:
    """Whether PEFT puts an adapter somewhere for this name."""
    return any(name == target or name.endswith("." + target) for name in names)


def _nearest(target: str, names: Sequence[str]) -> Optional[str]:
    near = difflib.get_close_matches(target, names, 1, 0.7)
    return near[0] if near else None


def _in_order(names: Iterable[str]) -> List[str]:
    def rank(name: str) -> Tuple[int, str]:
        return (_USUAL.index(name) if name in _USUAL else len(_USUAL), name)

    return sorted(names, key=rank)


def _listed(names: Sequence[str]) -> str:
    quoted = ["`%s`" % name for name in names[:_MOST_NAMES]]
    more = len(names) - len(quoted)
    return ", ".join(quoted) + (" and %d more" % more if more else "")
