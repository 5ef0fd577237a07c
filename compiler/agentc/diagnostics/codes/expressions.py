"""Diagnostic codes of layer 3: expressions and params."""

from agentc.diagnostics.codes.code import Code

EXPRESSIONS: tuple[Code, ...] = (
    Code(
        "AGC301",
        "unknown name in an expression",
        "Expressions know the spec's params, and `round` inside a repeat.",
    ),
    Code(
        "AGC302",
        "an expression that cannot be parsed",
        "Between `{{` and `}}` stands one Jinja expression.",
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
        "Attributes, calls of methods, and huge numbers, texts and ranges are refused, so that a "
        "stranger's spec can neither run code nor stall the compiler.",
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
        "Only settings that are made for it take a secret (`agentc schema` shows them): what any "
        "other setting holds is written into the plan, the store and the report. A secret is also "
        "always a whole value, never a part of a text.",
    ),
    Code(
        "AGC321",
        "a secret that is not set, or cannot be sent",
        "The spec refers to a secret by the name of an environment variable, and the shell that "
        "runs agentc does not have it, or has a line break in it where a key is one line. Nothing "
        "was started. The message does not show the value.",
        no_example="Only `agentc run` asks the shell whether it is set.",
    ),
    Code(
        "AGC322",
        "a literal where a reference to a secret belongs",
        "A key that stands in a spec ends up in repositories, plans and reports. The setting takes "
        "`{secret: NAME}` or `\"{{ secret('NAME') }}\"`; the value is read from the environment "
        "variable NAME when the job runs, and never written. What stood there is not shown.",
    ),
    Code(
        "AGC323",
        "expressions that take too much work",
        "All expressions of a spec together may handle ten million list items, which takes "
        "some seconds; a stranger's file must not keep a machine busy for longer. Rounds and "
        "sweeps evaluate an expression again for each of their stages.",
        no_example="An example would take thousands of lines.",
    ),
)
