"""Diagnostic codes of layers 1 to 3: reading the file, its keys and values, expressions and
params.
"""

from __future__ import annotations

from agentc.diagnostics.codes.code import Code

SOURCE: tuple[Code, ...] = (
    Code(
        "AGC101",
        "the file cannot be read",
        "The path does not exist, is a directory, or may not be read. Paths on the command line "
        "start at the folder where agentc is typed.",
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
    ),
    Code(
        "AGC104",
        "a key is given twice",
        "YAML libraries silently keep the last of two equal keys; a spec may not depend on that.",
    ),
    Code(
        "AGC105",
        "a limit is exceeded",
        "Specs are bounded in size, nesting, number of aliases "
        "and length of a value, so that an untrusted file cannot exhaust the machine.",
    ),
    Code(
        "AGC106",
        "a merge key",
        "`<<` merges mappings in ways that differ between YAML "
        "libraries. Values for several stages go under `defaults:`.",
    ),
    Code(
        "AGC107",
        "a tag",
        "Tags such as `!!python/object` or `!include` have no meaning here; "
        "the type of a value follows from its place.",
    ),
    Code(
        "AGC108",
        "more than one document",
        "`---` starts a second YAML document, and one file is one spec. What specs share goes into "
        "templates, or is repeated by hand.",
    ),
    Code(
        "AGC109",
        "an alias without anchor",
        "`*name` repeats what `&name` marked earlier, and cannot be inside of it.",
    ),
    Code(
        "AGC110",
        "an expression outside quotes",
        "To YAML, `{{ x }}` without quotes is a mapping "
        "whose key is a mapping. Put it in quotes; the value keeps its type all the same.",
    ),
    Code(
        "AGC111",
        "a tab as indentation",
        "YAML does not allow tabs before the first word of a line.",
    ),
    Code(
        "AGC112",
        "the file is empty",
        "There is nothing but comments or white space in it.",
    ),
    Code(
        "AGC113",
        "a key is not text",
        "YAML allows lists and mappings as keys; a spec has no use for them. Most often a bracket "
        "is where the name of an entry was meant.",
    ),
    Code(
        "AGC120",
        "something that looks like a password, token or private key",
        "A spec is published, copied into every compiled directory and kept in the store's "
        "records, so a credential may not be in it, nor in its comments, nor in a `-p` value. "
        "It is looked for by the known forms of such keys and, under names that end in `key`, "
        "`token`, `secret` or `password`, by its randomness. The message does not repeat it. "
        "Settings that take a secret take `{secret: NAME}`, the name of an environment variable.",
    ),
    Code(
        "AGC121",
        "a character that changes the order of text",
        "Unicode's overrides and isolates of writing direction (U+202A to U+202E, U+2066 to "
        "U+2069) make a reviewer see another text than the one that is compiled, in the file or, "
        "given by an escape, in a report or terminal. Languages that are written from right to "
        "left do not need them.",
        no_example="An example would show you what it is not, and so spoil this page.",
    ),
    Code(
        "AGC122",
        "a control character in a value",
        "Escapes such as `\\0` or `\\e` give characters that end file names early or drive a "
        "terminal. Tab and line breaks are allowed.",
    ),
    Code(
        "AGC123",
        "a path outside of the spec's folder",
        "What a spec names has to lie in its own folder, links followed: a spec of another user "
        "could otherwise take in any of your files. On machines where models lie elsewhere, "
        "`--allow-path DIR` or the variable AGENTC_ALLOW_PATH allows a directory.",
    ),
    Code(
        "AGC125",
        "a character that looks like another, or cannot be seen, breaks YAML",
        "A no-break space, a full-width colon or a typographic quote is where YAML wants the "
        "ordinary one. Word processors, chats and web pages put them in. Where such a character "
        "is part of a key, a name or a value that is refused, a note of that error names it.",
    ),
)


# Diagnostic codes of layer 2: keys and values of the spec.

STRUCTURE: tuple[Code, ...] = (
    Code(
        "AGC201",
        "unknown key",
        "No such key exists at this place. Nothing in a spec is ever "
        "ignored, so a misspelt setting cannot fall back to its default unnoticed. Keys of other "
        "tools get the key that means the same here. What follows from the slip is not reported: "
        "neither that the key that was meant is missing, nor what is wrong with its value.",
    ),
    Code(
        "AGC202",
        "a key is missing",
        "The key has no default, since no value of it would be right for most experiments: "
        "learning rates, batches and lengths are choices. It may be in the stage, or under "
        "`defaults:` for every stage that has such a key.",
    ),
    Code(
        "AGC203",
        "a value of the wrong type",
        "The value cannot be read as what its place wants. "
        "`yes`, `no`, `on` and `off` are words; `2e-5` and `1_000` are numbers.",
    ),
    Code(
        "AGC204",
        "not one of the choices",
        "The value is a word, but not one of those allowed. The message lists them; "
        "`agentc dev schema` says what each means.",
    ),
    Code(
        "AGC205",
        "out of bounds",
        "The value is of the right type but too small, too large, too short or too long. Bounds "
        "are those of what the value is used for: a learning rate of 0 trains nothing, a batch has "
        "at least one row.",
    ),
    Code(
        "AGC206",
        "not a valid name",
        "Names of stages, models, params and other entries consist "
        "of small letters, digits and `_`, and start with a letter.",
    ),
    Code(
        "AGC207",
        "a name is taken",
        "Models and stages share one space of names, since stages refer to both in the same way.",
    ),
    Code(
        "AGC208",
        "another version of the language",
        "`agentc:` names the version of the spec language; this release reads version 1.",
    ),
    Code(
        "AGC209",
        "unknown stage kind",
        "`kind:` says what a stage does; `agentc dev schema` lists the kinds.",
    ),
    Code(
        "AGC210",
        "a value breaks its pattern",
        "The text does not have the form that its place wants. A model's revision, for example, is "
        "a commit: a branch such as `main` may be another model tomorrow, without any notice.",
    ),
    Code(
        "AGC211",
        "nothing to compile",
        "The spec declares no stage and no model.",
    ),
    Code(
        "AGC212",
        "an empty instruction",
        "Every conversation starts with the instruction of its prompt. An empty one is allowed, "
        "and is hardly ever meant, unless whole replies are actions (`reply_format: text`): then "
        "the task may be the only text.",
    ),
    Code(
        "AGC213",
        "two first messages",
        "With `role: system` the instruction of a prompt is the system message. There is one of "
        "these at most, and no agent answers it: `system` and `acknowledgement` have no place.",
    ),
    Code(
        "AGC214",
        "a configuration of another tool",
        "The keys are those of a trainer's own configuration file. A spec describes a whole "
        "experiment: models, environments, and the stages between them, of which a training is "
        "one. Its settings go there; unknown keys get their names here one by one.",
    ),
    Code(
        "AGC215",
        "another tool's name of a key",
        "The name is accepted as an alias, so the spec compiles as written. Specs are easier to "
        "read and to search when all use one name: the one in the note.",
    ),
)


# Diagnostic codes of layer 3: expressions and params.

EXPRESSIONS: tuple[Code, ...] = (
    Code(
        "AGC301",
        "unknown name in an expression",
        "Expressions know the spec's params, and `round` inside a repeat.",
    ),
    Code(
        "AGC302",
        "an expression that cannot be parsed",
        "Between `{{` and `}}` is one Jinja expression.",
    ),
    Code(
        "AGC303",
        "an expression that fails",
        "The expression is well formed, but its value "
        "cannot be computed, such as a division by zero.",
    ),
    Code(
        "AGC304",
        "an expression that does too much",
        "Expressions compute settings from params. "
        "Attributes, calls of methods, and huge numbers, texts and ranges are refused, so that an "
        "untrusted spec can neither run code nor stall the compiler.",
    ),
    Code(
        "AGC305",
        "a param without a value",
        "The param has no default; give a value with `-p name=value`.",
    ),
    Code("AGC306", "unknown param", "`-p` names a param that the spec does not declare."),
    Code(
        "AGC307",
        "a param value that is not allowed",
        "The value is not of the param's type, or outside its bounds or choices.",
    ),
    Code(
        "AGC308",
        "a param that nothing uses",
        "No expression mentions the param at any scale, so changing it has no effect.",
    ),
    Code(
        "AGC309",
        "a param whose name is taken",
        "Expressions use this word for something else.",
    ),
    Code(
        "AGC320",
        "a secret where none can be",
        "Only settings that are made for it take a secret (`agentc dev schema` shows them): what "
        "any other setting holds is written into the plan, the store and the report. A secret is "
        "also always a whole value, never a part of a text.",
    ),
    Code(
        "AGC321",
        "a secret that is not set, or cannot be sent",
        "The spec refers to a secret by the name of an environment variable, and the shell that "
        "runs agentc does not have it, or has a line break in it where a key is one line. Nothing "
        "was started. The message does not show the value.",
        no_example="Only `agentc run` checks whether it is set.",
    ),
    Code(
        "AGC322",
        "a literal where a reference to a secret belongs",
        "A key that is in a spec ends up in repositories, plans and reports. The setting takes "
        "`{secret: NAME}` or `\"{{ secret('NAME') }}\"`; the value is read from the environment "
        "variable NAME when the job runs, and never written. What was there is not shown.",
    ),
    Code(
        "AGC323",
        "expressions that take too much work",
        "All expressions of a spec together may handle ten million list items, which takes "
        "some seconds; an untrusted file must not keep a machine busy for longer. Rounds and "
        "sweeps evaluate an expression again for each of their stages.",
        no_example="An example would take thousands of lines.",
    ),
)
