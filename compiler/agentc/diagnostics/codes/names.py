"""Diagnostic codes of layer 4: names, edges and rounds."""

from agentc.diagnostics.codes.code import Code

NAMES: tuple[Code, ...] = (
    Code(
        "AGC401",
        "unknown stage or model",
        "An input names something that the spec does not declare where the stage can see it.",
        "agentc: 1\nname: demo\nstages:\n  table: {kind: compare, of: [scores]}\n",
    ),
    Code(
        "AGC402",
        "unknown environment, server or prompt",
        "The name is not an entry of that section.",
        "agentc: 1\nname: demo\nenvironments:\n  shop: {backend: textcraft}\nstages:\n"
        "  expert: {kind: expert, environment: craft, split: train}\n",
    ),
    Code(
        "AGC403",
        "an environment, server or prompt must be named",
        "A section with exactly one "
        "entry is taken without being named; with none or several, the stage has to say which.",
        "agentc: 1\nname: demo\nstages:\n  expert: {kind: expert, split: train}\n",
    ),
    Code(
        "AGC404",
        "several stages where one is wanted",
        "This input takes one stage.",
        "agentc: 1\nname: demo\nmodels:\n  a: {backend: scratch}\n  b: {backend: scratch}\n"
        "stages:\n  tune: {kind: sft, model: [a, b], data: a, lr: 1e-5, global_batch: 1, "
        "max_length: 64}\n",
    ),
    Code(
        "AGC405",
        "a circle of stages",
        "Each of these stages waits for the next, so none can start.",
        "agentc: 1\nname: demo\nstages:\n  a: {kind: compare, of: [b]}\n"
        "  b: {kind: compare, of: [a]}\n",
    ),
    Code(
        "AGC406",
        "a default that no stage takes",
        "A value under `defaults:` is taken by stages "
        "whose kind has that key and which do not set it; here there is none.",
        "agentc: 1\nname: demo\ndefaults: {beta: 0.1}\nmodels:\n  base: {backend: scratch}\n",
    ),
    Code(
        "AGC407",
        "`per_round` outside a repeat",
        "Only stages inside a `repeat:` have rounds.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch, seed: {per_round: [1, 2]}}\n",
    ),
    Code(
        "AGC408",
        "too few values for the rounds",
        "`per_round:` needs a value for each round.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch}\nstages:\n  loop:\n"
        "    repeat:\n      n: 2\n      stages:\n"
        "        table: {kind: compare, of: [base], resamples: {per_round: [100]}}\n",
    ),
    Code(
        "AGC409",
        "a carried stage that cannot be carried",
        "`from:` names a stage outside the "
        "repeat (round 1 takes it); `next:` names a stage inside of it (round k takes that of "
        "round k-1).",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch}\nstages:\n  loop:\n"
        "    repeat:\n      n: 2\n      carry: {policy: {from: base, next: dpo}}\n"
        "      stages:\n        table: {kind: compare, of: [policy]}\n",
    ),
    Code(
        "AGC410",
        "a repeat inside a repeat",
        "Rounds cannot be nested in this version.",
        "agentc: 1\nname: demo\nstages:\n  outer:\n    repeat:\n      n: 2\n      stages:\n"
        "        inner: {repeat: {n: 2, stages: {}}}\n",
    ),
    Code(
        "AGC411",
        "an entry that nothing uses",
        "A model, environment, server or prompt is declared, but no stage refers to it.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch}\nprompts:\n"
        "  react: {instruction: Act.}\n",
    ),
    Code(
        "AGC412",
        "no such round",
        "The repeat has fewer rounds than the name asks for, or the "
        "name does not say which stage of the repeat is meant.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch}\nstages:\n  loop:\n"
        "    repeat:\n      n: 2\n      stages:\n        table: {kind: compare, of: [base]}\n"
        "  all: {kind: compare, of: [loop.3.table]}\n",
    ),
)
