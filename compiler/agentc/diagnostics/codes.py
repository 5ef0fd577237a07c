"""The table of diagnostic codes, by layer: 1 source, 2 structure, 3 expressions and params,
4 names and rounds, 5 types, 6 backends, 7 store and run.

A code is never given another meaning; a new one takes the next free number of its layer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """`example` is a spec, or a part of one, that gets this code; "" where none is short."""

    code: str
    title: str
    explanation: str
    example: str = ""


_SOURCE: tuple[Code, ...] = (
    Code(
        "AGC101",
        "the file cannot be read",
        "The path does not exist, is a directory, or may not be read.",
    ),
    Code(
        "AGC102",
        "the file is not UTF-8 text",
        "Specs are UTF-8 without control characters. "
        "Editors on Windows may save UTF-16 or a local code page.",
    ),
    Code(
        "AGC103",
        "not valid YAML",
        "The text breaks YAML's grammar at the place shown. Most "
        "often a quote or bracket is open, or a line is indented differently than its siblings.",
        "agentc: 1\nname: [demo\n",
    ),
    Code(
        "AGC104",
        "a key is given twice",
        "YAML libraries silently keep the last of two equal keys; a spec may not depend on that.",
        "agentc: 1\nname: demo\nname: other\n",
    ),
    Code(
        "AGC105",
        "a limit is exceeded",
        "Specs are bounded in size, nesting, number of aliases "
        "and length of a value, so that a stranger's file cannot exhaust the machine.",
    ),
    Code(
        "AGC106",
        "a merge key",
        "`<<` merges mappings in ways that differ between YAML "
        "libraries. Values for several stages go under `defaults:`.",
        "agentc: 1\nname: demo\nparams:\n  <<: {}\n",
    ),
    Code(
        "AGC107",
        "a tag",
        "Tags such as `!!python/object` or `!include` have no meaning here; "
        "the type of a value follows from its place.",
        "agentc: 1\nname: !!str demo\n",
    ),
    Code(
        "AGC108",
        "more than one document",
        "One file is one spec.",
        "agentc: 1\nname: demo\n---\nname: other\n",
    ),
    Code(
        "AGC109",
        "an alias without anchor",
        "`*name` repeats what `&name` marked earlier, and cannot stand inside of it.",
        "agentc: 1\nname: *demo\n",
    ),
    Code(
        "AGC110",
        "an expression outside quotes",
        "To YAML, `{{ x }}` without quotes is a mapping "
        "whose key is a mapping. Put it in quotes; the value keeps its type all the same.",
        "agentc: 1\nname: {{ demo }}\n",
    ),
    Code(
        "AGC111",
        "a tab as indentation",
        "YAML does not allow tabs before the first word of a line.",
        "agentc: 1\nparams:\n\tseed: {type: int}\n",
    ),
    Code(
        "AGC112",
        "the file is empty",
        "There is nothing but comments or white space in it.",
        "# nothing here\n",
    ),
    Code(
        "AGC113",
        "a key is not text",
        "Keys are plain words; a list or a mapping cannot be one.",
        "agentc: 1\n? [name]\n: demo\n",
    ),
)

_STRUCTURE: tuple[Code, ...] = (
    Code(
        "AGC201",
        "unknown key",
        "No such key exists at this place. Nothing in a spec is ever "
        "ignored, so a misspelt setting cannot fall back to its default unnoticed.",
        "agentc: 1\nname: demo\nstags: {}\n",
    ),
    Code("AGC202", "a key is missing", "The key has no default and must be given.", "agentc: 1\n"),
    Code(
        "AGC203",
        "a value of the wrong type",
        "The value cannot be read as what its place wants. "
        "`yes`, `no`, `on` and `off` are words; `2e-5` and `1_000` are numbers.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch, layers: many}\n",
    ),
    Code(
        "AGC204",
        "not one of the choices",
        "The value is a word, but not one of those allowed.",
        "agentc: 1\nname: demo\nparams:\n  seed: {type: integer, default: 1}\n",
    ),
    Code(
        "AGC205",
        "out of bounds",
        "The value is of the right type but too small, too large, too short or too long.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch, layers: 0}\n",
    ),
    Code(
        "AGC206",
        "not a valid name",
        "Names of stages, models, params and other entries consist "
        "of small letters, digits and `_`, and start with a letter.",
        "agentc: 1\nname: demo\nparams:\n  Seed: {type: int, default: 1}\n",
    ),
    Code(
        "AGC207",
        "a name is taken",
        "Models and stages share one space of names, since stages refer to both in the same way.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratch}\nstages:\n"
        "  base: {kind: compare, of: []}\n",
    ),
    Code(
        "AGC208",
        "another version of the language",
        "`agentc:` names the version of the spec language; this release reads version 1.",
        "agentc: 2\nname: demo\n",
    ),
    Code(
        "AGC209",
        "unknown stage kind",
        "`kind:` says what a stage does; `agentc schema` lists the kinds.",
        "agentc: 1\nname: demo\nstages:\n  tune: {kind: fine_tune}\n",
    ),
    Code(
        "AGC210",
        "a value breaks its pattern",
        "The text does not have the form that its place wants.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: hf, repo: some/model, revision: main}\n",
    ),
    Code(
        "AGC211",
        "nothing to compile",
        "The spec declares no stage and no model.",
        "agentc: 1\nname: demo\n",
    ),
)

_EXPRESSIONS: tuple[Code, ...] = (
    Code(
        "AGC301",
        "unknown name in an expression",
        "Expressions know the spec's params, and `round` inside a repeat.",
        'agentc: 1\nname: "{{ titel }}"\n',
    ),
    Code(
        "AGC302",
        "an expression that cannot be parsed",
        "Between `{{` and `}}` stands one Jinja expression.",
        'agentc: 1\nname: "{{ 1 + }}"\n',
    ),
    Code(
        "AGC303",
        "an expression that fails",
        "The expression is well formed, but its value "
        "cannot be computed, such as a division by zero.",
        'agentc: 1\nname: "{{ 1 // 0 }}"\n',
    ),
    Code(
        "AGC304",
        "an expression that does too much",
        "Expressions compute settings from params. "
        "Attributes, calls of methods, and huge numbers, texts and ranges are refused, so that a "
        "stranger's spec can neither run code nor stall the compiler.",
        "agentc: 1\nname: \"{{ ''.__class__ }}\"\n",
    ),
    Code(
        "AGC305",
        "a param without a value",
        "The param has no default; give a value with `-p name=value`.",
        "agentc: 1\nname: demo\nparams:\n  seed: {type: int}\n",
    ),
    Code("AGC306", "unknown param", "`-p` names a param that the spec does not declare."),
    Code(
        "AGC307",
        "a param value that is not allowed",
        "The value is not of the param's type, or outside its bounds or choices.",
        "agentc: 1\nname: demo\nparams:\n  seed: {type: int, default: 1, min: 2}\n",
    ),
    Code(
        "AGC308",
        "a param that nothing uses",
        "No expression mentions the param, so changing it has no effect.",
        "agentc: 1\nname: demo\nparams:\n  seed: {type: int, default: 1}\n"
        "models:\n  base: {backend: scratch}\n",
    ),
    Code(
        "AGC309",
        "a param whose name is taken",
        "Expressions use this word for something else.",
        "agentc: 1\nname: demo\nparams:\n  round: {type: int, default: 1}\n",
    ),
)

_NAMES: tuple[Code, ...] = (
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

_TYPES: tuple[Code, ...] = (
    Code(
        "AGC501",
        "an input of the wrong type",
        "The stage takes another type of artifact than the one that the named stage produces.",
    ),
    Code(
        "AGC502",
        "an input is missing",
        "The stage cannot work without this input.",
    ),
    Code(
        "AGC503",
        "a batch that does not divide",
        "An optimiser step is made of equal shares: global_batch must be processes x "
        "micro_batch x a whole number of accumulation steps. Integer division would "
        "silently train with another batch.",
    ),
    Code(
        "AGC504",
        "no such split",
        "Environments declare the names of their task splits; docs/backends.md lists them.",
    ),
    Code(
        "AGC505",
        "repeated greedy attempts",
        "At temperature 0 a policy answers the same prompt with the same reply, so several "
        "attempts at a task add little.",
    ),
    Code(
        "AGC506",
        "more turns than the environment allows",
        "The environment ends episodes earlier, so the limit of the stage is never reached.",
    ),
    Code(
        "AGC507",
        "evaluated on training tasks",
        "The policy descends from trajectories on the same split of the same environment. "
        "Such a number says how well it remembers.",
    ),
    Code(
        "AGC508",
        "longer than the model's context",
        "The model that this stage starts from is made by this spec with fewer positions.",
    ),
    Code(
        "AGC509",
        "evaluations of different tasks",
        "Differences are paired by task; where two evaluations share no tasks there is "
        "nothing to pair.",
    ),
)

_BACKENDS: tuple[Code, ...] = (
    Code(
        "AGC601",
        "unknown backend",
        "No installed backend of that name does this kind of work.",
        "agentc: 1\nname: demo\nmodels:\n  base: {backend: scratsh}\n",
    ),
    Code(
        "AGC602",
        "a setting without effect",
        "The spec sets it, but the chosen backend does not read it, either at all or "
        "together with the other settings here. Nothing is ignored in silence; the message "
        "names installed backends that would honour it.",
    ),
    Code(
        "AGC603",
        "a setting that the backend cannot honour",
        "The backend knows the setting and says why it cannot do this.",
    ),
    Code(
        "AGC604",
        "no backend for this kind",
        "`backend: auto` found no installed backend that does this kind of work.",
    ),
    Code(
        "AGC605",
        "a backend that fails",
        "Lowering raised an exception. No spec should be able to cause that: it is a bug of "
        "the backend.",
    ),
    Code(
        "AGC606",
        "an environment, server or prompt without effect",
        "The stage names one, but its backend never asks for it.",
    ),
    Code(
        "AGC607",
        "an environment that cannot run yet",
        "The environment is declared, so that specs check and plan, but no server for it is "
        "part of this release.",
    ),
    Code(
        "AGC608",
        "a default without effect on a stage",
        "A value under `defaults:` is meant for every stage that has such a setting, but "
        "the backend of this stage can never read it.",
    ),
    Code(
        "AGC609",
        "an installed backend that cannot be used",
        "A distribution announces a backend, but it cannot be imported, is none, or claims a name "
        "that another one has. The rest works; `backend: auto` may choose otherwise than where it "
        "is whole.",
    ),
)

_RUN: tuple[Code, ...] = ()

CODES: tuple[Code, ...] = (
    *_SOURCE,
    *_STRUCTURE,
    *_EXPRESSIONS,
    *_NAMES,
    *_TYPES,
    *_BACKENDS,
    *_RUN,
)


def code_named(name: str) -> Code | None:
    """The code of that name, or None."""
    return next((code for code in CODES if code.code == name.upper()), None)
