"""Diagnostic codes of layer 1: reading the file."""

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
        "and length of a value, so that a stranger's file cannot exhaust the machine.",
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
        "`*name` repeats what `&name` marked earlier, and cannot stand inside of it.",
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
        "stands where the name of an entry was meant.",
    ),
    Code(
        "AGC120",
        "something that looks like a password, token or private key",
        "A spec is published, copied into every compiled directory and kept in the store's "
        "records, so a credential may not stand in it, nor in its comments, nor in a `-p` value. "
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
        "What a spec names has to lie in its own folder, links followed: a spec of somebody else "
        "could otherwise take in any file of yours. On machines where models lie elsewhere, "
        "`--allow-path DIR` or the variable AGENTC_ALLOW_PATH allows a directory.",
    ),
    Code(
        "AGC125",
        "a character that looks like another, or cannot be seen, breaks YAML",
        "A no-break space, a full-width colon or a typographic quote stands where YAML wants the "
        "ordinary one. Word processors, chats and web pages put them in. Where such a character "
        "is part of a key, a name or a value that is refused, a note of that error names it.",
    ),
)
