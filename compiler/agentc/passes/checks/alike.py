"""Rules about models that read the same tokens: a trained one and its reference, a critic and the
policy whose candidates it ranks."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.diagnostic import Severity
from agentc.diagnostics.suggest import listed
from agentc.ir.module import Stage
from agentc.kinds.artifacts import CRITIC_CHECKPOINT
from agentc.kinds.groups import PAIR_TRAINERS, kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext, place

_SAME_ROOT = "that descends from the same model"


def reference_alike(subject: StageContext) -> Iterator[Finding]:
    """The reference reads tokens and conversations as the model that is trained does."""
    trained, reference = subject.model("model"), subject.model("reference")
    if trained is not None and reference is not None:
        yield from _unlike(trained, reference, "the trained model", "the reference", "reference")


def critic_alike(subject: StageContext) -> Iterator[Finding]:
    """A critic reads the tokens that the policy of the candidates wrote.

    So does its reference then: where that is unlike the critic, it is found there."""
    policy = subject.model("candidates") or subject.model("policy")
    critic = subject.model("critic")
    if policy is not None and critic is not None:
        yield from _unlike(policy, critic, "the candidates' policy", "the critic", "critic")


def _unlike(policy: Settings, other: Settings, who: str, whom: str, path: str) -> Iterator[Finding]:
    """What keeps `other` from reading what `policy` reads: at most one finding."""
    if policy.entry is other.entry:
        return
    ours, theirs = policy.entry, other.entry
    assert isinstance(ours, Stage)
    assert isinstance(theirs, Stage)
    fix = f"take a {path} {_SAME_ROOT}"
    severity: Severity = "error"
    made = [each.backend == "model.scratch" for each in (ours, theirs)]
    if policy.get("chat_format") != other.get("chat_format"):
        message = f"{who} and {whom} write conversations in different chat formats"
        notes: tuple[str, ...] = (policy.shown("chat_format"), other.shown("chat_format"))
    elif all(made):
        message = f"{who} and {whom} have different tokenizers"
        notes = _vocabularies(policy, other)
        if not notes:
            return
    elif any(made) or policy.get("repo") != other.get("repo"):
        message = f"{whom} descends from another model (`{theirs.id}`) than {who} (`{ours.id}`)"
        notes = ("their log-probabilities compare only if both have the same tokenizer",)
        severity = "warning"
        fix = ""
    else:
        return
    yield Finding(message=message, path=path, severity=severity, notes=notes, fix=fix or None)


def _vocabularies(policy: Settings, other: Settings) -> tuple[str, ...]:
    """Why two models of this spec have different tokenizers; nothing where they have not."""
    ours, theirs = policy.entry, other.entry
    assert isinstance(ours, Stage)
    assert isinstance(theirs, Stage)
    if policy.get("vocab_size") != other.get("vocab_size"):
        return policy.shown("vocab_size"), other.shown("vocab_size")
    if ours.inputs.get("corpus") == theirs.inputs.get("corpus"):
        return ()
    return tuple(
        f"the tokenizer of `{each.id}` is trained on {listed(each.inputs.get('corpus', ()))} "
        f"({place(each, 'corpus')})"
        for each in (ours, theirs)
    )


_UNLIKE = Code(
    "AGC648",
    "a reference unlike the policy",
    "DPO and critics compare log-probabilities of the same tokens under two models. With another "
    "tokenizer or chat format these are not the same tokens.",
)
ALIKE: tuple[Rule, ...] = (
    Rule(code=_UNLIKE, kinds=PAIR_TRAINERS, check=reference_alike),
    Rule(
        code=_UNLIKE,
        kinds=kinds_where(lambda kind: any(CRITIC_CHECKPOINT in r.accepts for r in kind.roles)),
        check=critic_alike,
    ),
)
