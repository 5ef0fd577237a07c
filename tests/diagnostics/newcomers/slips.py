"""Slips of people who write their first specs: what they change in `base.yaml`, what is wrong
with it, and words that the first error has to hold. Written before any output was seen; words
were changed afterwards only where a message says the same in others.

`test_newcomers.py` runs them. Invisible and look-alike characters are escapes here.
"""

# ruff: noqa: E501 - a table of one line each
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slip:
    """`edits` are (old, new) in turn; `words` are in the first error, which stands in a line that
    the edits changed or beside one, unless `line` is the text of another. `most` errors at most;
    with 0 a warning is enough."""

    name: str
    cause: str
    edits: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    most: int = 1
    line: str | None = None
    params: tuple[tuple[str, str], ...] = ()


def _slip(
    name: str,
    cause: str,
    old: str,
    new: str,
    *words: str,
    most: int = 1,
    line: str | None = None,
    params: tuple[tuple[str, str], ...] = (),
) -> Slip:
    return Slip(name, cause, ((old, new),), words, most, line, params)


_SFT = "    kind: sft\n    model: base"
_PRE = "  sft:\n"

CHARACTERS = (
    _slip("cyrillic_a_in_key", "Cyrillic a in a key", "data: expert\n", "d\u0430ta: expert\n", "U+0430", "data"),
    _slip("greek_o_in_key", "Greek omicron in a key", "model: base\n", "m\u03bfdel: base\n", "U+03BF", "model"),
    _slip("cyrillic_in_kind", "Cyrillic ie in a kind", "kind: sft", "kind: s\u0192t", "U+0192"),
    _slip("cyrillic_in_section", "Cyrillic ie in a section's name", "stages:\n  expert:\n", "stag\u0435s:\n  expert:\n", "U+0435", "stages"),
    _slip("cyrillic_in_reference", "Cyrillic ie in a stage's name", "data: expert\n", "data: \u0435xpert\n", "U+0435", "expert"),
    _slip("cyrillic_in_expression", "Cyrillic e's in a param's name", '"{{ rate }}"', '"{{ r\u0430te }}"', "U+0430", "rate"),
    _slip("cyrillic_in_declared_stage", "the declaration has a Cyrillic letter", _PRE, "  s\u0192t:\n", "U+0192"),
    _slip("fullwidth_digit", "a fullwidth digit", "epochs: 3", "epochs: \uff13", "U+FF13", "3"),
    _slip("arabic_digit", "an Arabic digit", "epochs: 3", "epochs: \u0663", "U+0663", "3"),
    _slip("fullwidth_comma", "a fullwidth comma in a flow mapping", "{kind: evaluate, model: base", "{kind: evaluate\uff0c model: base", "U+FF0C", ","),
    _slip("corner_brackets", "corner brackets for quotes", "model: eto.dpo\n    split: test", "model: eto.dpo\n    split: \u300ctest\u300d", "U+300C"),
    _slip("guillemets", "guillemets for quotes", "kind: expert\n    split: train", "kind: expert\n    split: \u00abtrain\u00bb", "U+00AB"),
    _slip("em_space_indent", "an em space as indentation", "    model: base", "\u2003   model: base", "U+2003"),
    _slip("ideographic_space", "an ideographic space after the colon", "kind: sft", "kind:\u3000sft", "U+3000"),
    _slip("no_break_space_after_colon", "a no-break space after the colon", "kind: sft", "kind:\u00a0sft", "U+00A0"),
    _slip("no_break_space_at_end", "a no-break space after a value", "kind: sft\n", "kind: sft\u00a0\n", "U+00A0"),
    _slip("no_break_space_in_indent", "a no-break space in the indentation", "    epochs: 3", "   \u00a0epochs: 3", "U+00A0"),
    _slip("zero_width_in_number", "an invisible character in a number", "epochs: 3", "epochs: 3\u200d", "U+200D"),
    _slip("bom_inside", "a byte order mark in the middle", "kind: sft", "\ufeffkind: sft", "U+FEFF"),
    _slip("soft_hyphen_in_key", "a soft hyphen in a key", "hidden_size", "hidden_\u00adsize", "U+00AD"),
    _slip("zero_width_in_section", "an invisible character in a section's name", "servers:", "servers\u200b:", "U+200B"),
    _slip("en_dash_bullet", "an en dash for the `-` of a list", "of: [untrained, test]", "of:\n      \u2013 untrained\n      \u2013 test", "U+2013"),
    _slip("bullet_bullet", "a bullet for the `-` of a list", "of: [untrained, test]", "of:\n      \u2022 untrained\n      \u2022 test", "U+2022"),
    _slip("fullwidth_brackets", "fullwidth brackets around a list", "of: [untrained, test]", "of: \uff3buntrained, test\uff3d", "U+FF3B"),
    _slip("curly_braces_fullwidth", "fullwidth braces", "{kind: evaluate, model: base, split: test}", "\uff5bkind: evaluate, model: base, split: test\uff5d", "U+FF5B"),
    _slip("curly_quotes_expression", "curly quotes around an expression", '"{{ rate }}"', "\u201c{{ rate }}\u201d", "U+201C", "straight"),
    _slip("curly_quotes_name", "curly quotes around the name", "name: demo", "name: \u2018demo\u2019", "U+2018", "`demo`"),
    _slip("curly_quotes_inside_expression", "curly quotes in an expression", '"{{ rate }}"', '"{{ rate if \u2018a\u2019 else 1 }}"', "U+2018"),
    _slip("fullwidth_letters", "fullwidth letters in a kind", "kind: sft", "kind: \uff53\uff46\uff54", "U+FF53", "sft"),
    _slip("narrow_space_in_number", "a narrow no-break space between thousands", "max_length: 512", "max_length: 1\u202f024", "U+202F"),
    _slip("no_break_hyphen_exponent", "a no-break hyphen for a minus", "lr: 1e-6", "lr: 1e\u20116", "U+2011", "1e-6"),
    _slip("superscripts", "superscripts for an exponent", "lr: 1e-6", "lr: 10\u207b\u2076", "U+207B"),
    _slip("times_sign", "a multiplication sign", "lr: 1e-6", "lr: 1\u00d710^-6", "1e-6"),
    _slip("half", "a fraction character", "beta: 0.1", "beta: \u00bd", "U+00BD"),
    _slip("times_in_expression", "a multiplication sign in an expression", '"{{ rate }}"', '"{{ 2 \u00d7 rate }}"', "U+00D7", "*"),
    _slip("at_least_in_expression", "a greater-or-equal sign in an expression", '"{{ rate }}"', '"{{ 1 if rate \u2265 0 else 2 }}"', "U+2265", ">="),
    _slip("fullwidth_colon_in_block", "a fullwidth colon after a key", "    epochs: 3", "    epochs\uff1a 3", "U+FF1A", "`:`"),
    _slip("armenian_colon", "an Armenian full stop that looks like a colon", "    epochs: 3", "    epochs\u0589 3", "U+0589"),
    _slip("line_separator", "a line separator in a value", "kind: expert\n    split: train", "kind: expert\n    split: tr\u2028ain", "U+2028"),
    _slip("emoji_in_name", "an emoji in a stage's name", "  untrained: {", "  un\U0001f680trained: {", "U+1F680", most=3),
    _slip("accent_in_name", "an accented letter in a name", "  untrained: {", "  untr\u00e4ined: {", "U+00E4", most=3),
    _slip("fullwidth_hash", "a fullwidth number sign for a comment", "epochs: 3", "epochs: 3 \uff03 as in the paper", "U+FF03"),
    _slip("prime_for_quote", "a prime for a quote", "split: test}", "split: \u2032test\u2032}", "U+2032"),
)  # fmt: skip

NUMBERS = (
    _slip("lr_underflows", "smaller than any number", "lr: 1e-6", "lr: 1e-400", "too small"),
    _slip("epochs_overflows", "larger than any number", "epochs: 3", "epochs: 1e999", "too large"),
    _slip("digits_without_end", "four hundred digits", "max_length: 512", "max_length: " + "5" * 400, "too large"),
    _slip("vocabulary_of_terabytes", "a vocabulary of 1e12", "vocab_size: 768", "vocab_size: 1e12", "vocab_size", "from", "to"),
    _slip("hidden_of_terabytes", "a width of 1e9", "hidden_size: 128", "hidden_size: 1000000000", "hidden_size", "from", "to"),
    _slip("layers_of_a_million", "a million layers", "layers: 2", "layers: 1000000", "layers", "from", "to"),
    _slip("context_of_a_billion", "a context of 1e9", "context: 640", "context: 1000000000", "context", "from", "to"),
    _slip("rounds_of_a_million", "a million rounds", "n: 2", "n: 1000000", "10000"),
    _slip("budget_infinite", "an infinite budget", "wall_hours: 2", "wall_hours: .inf", "finite"),
    _slip("budget_overflows", "a budget too large", "wall_hours: 2", "wall_hours: 1e999", "too large"),
    _slip("param_default_overflows", "a default too large", "default: 1e-3", "default: 1e999", "too large"),
    _slip("param_bound_overflows", "a bound too large", "default: 1e-3}", "default: 1e-3, max: 1e999}", "too large"),
    _slip("typed_param_overflows", "-p with a number too large", "epochs: 3", "epochs: 3", "too large", params=(("rate", "1e999"),)),
    _slip("hexadecimal_float", "a hexadecimal float", "lr: 1e-6", "lr: 0x1p-3", "0x1p-3"),
    _slip("float_suffix", "a C suffix", "lr: 1e-6", "lr: 1e-6f", "1e-6"),
    _slip("unit_behind", "a unit behind a number", "epochs: 3", "epochs: 3 epochs", "3"),
    _slip("word_for_number", "a number as a word", "epochs: 3", "epochs: three", "three"),
    _slip("broken_exponent", "an exponent with two signs", "lr: 1e-6", "lr: 1e--6", "1e--6"),
    _slip("space_in_exponent", "a space in a number", "lr: 1e-6", "lr: 1 e-6", "1e-6"),
    _slip("ratio_as_fraction", "a fraction", "lr: 1e-6", "lr: 1/1000000", "1e-06"),
    _slip("two_points", "a number with two points", "beta: 0.1", "beta: 0.1.0", "0.1.0"),
    _slip("two_values", "two values for one", "lr: 1e-6", "lr: 1e-6 or 2e-6", "lr"),
    _slip("negative_epochs", "a negative count", "epochs: 3", "epochs: -3", "greater than 0", "-3"),
    _slip("clock_for_hours", "a clock time for hours", "wall_hours: 2", "wall_hours: 2:30", "2.5"),
    _slip("unlimited", "unlimited for null", "max_length: 512", "max_length: unlimited", "unlimited"),
    _slip("kilo_tokens", "a suffix and a unit", "max_length: 512", "max_length: 4k tokens", "4000"),
    _slip("decimal_comma_zero", "a decimal comma", "lr: 1e-6", "lr: 0,001", "0.001"),
    _slip("decimal_comma_leading", "a decimal comma without a leading digit", "lr: 1e-6", "lr: ,001", ".001"),
    _slip("thousands_by_space", "a space between thousands", "max_length: 512", "max_length: 1 024", "1024"),
    _slip("thousands_by_apostrophe", "an apostrophe between thousands", "max_length: 512", "max_length: 1'024", "1024"),
    _slip("trailing_comma", "a comma after the value", "epochs: 3", "epochs: 3,", "3"),
    _slip("trailing_semicolon", "a semicolon after the value", "epochs: 3", "epochs: 3;", "3"),
    _slip("approximately", "a tilde before a number", "epochs: 3", "epochs: ~3", "3"),
    _slip("range_for_number", "a range", "epochs: 3", "epochs: 1-3", "1-3"),
)  # fmt: skip

EMPTY = (
    _slip("models_null", "`models` is empty", CUT_MODELS := """models:
  base:
    backend: scratch
    architecture: llama
    hidden_size: 128
    layers: 2
    heads: 2
    context: 640
    vocab_size: 768
    chat_format: chatml
    corpus: expert
""", "models:\n", "models", "empty"),
    _slip("models_list", "`models` is a list", CUT_MODELS, "models: [base]\n", "models", "list"),
    _slip("environments_empty", "`environments` is empty", "environments:\n  craft:\n    backend: textcraft\n    max_depth: 2\n", "environments: {}\n", "environments", "empty"),
    _slip("servers_null", "`servers` is empty", "servers:\n  local:\n    backend: transformers\n", "servers:\n", "servers", "empty"),
    _slip("prompts_list", "`prompts` is a list", "prompts:\n  react:\n    instruction: Craft the goal.\n    reply_format: react\n", "prompts: []\n", "prompts"),
    _slip("params_list", "`params` is a list", "  seed: {type: int, default: 0, min: 0}\n  rate: {type: float, default: 1e-3}\n", "  - seed: 0\n  - rate: 1e-3\n", "params", "list"),
    _slip("params_null", "`params` is empty, and used", "  seed: {type: int, default: 0, min: 0}\n  rate: {type: float, default: 1e-3}\n", "", "params", "empty"),
    _slip("param_bare_value", "a param is a bare value", "rate: {type: float, default: 1e-3}", "rate: 1e-3", "rate", "type"),
    _slip("defaults_list", "`defaults` is a list", '  seed: "{{ seed }}"\n  max_length: 512\n  truncation: drop\n  global_batch: 16\n', '  - seed: "{{ seed }}"\n  - max_length: 512\n', "defaults", most=1),
    _slip("claims_list", "`claims` is a list", "  gain: {what", "  - {what", "claims", "list"),
    _slip("scales_list", "`scales` is a list", "  smoke:\n    stages:", "  - smoke:\n    stages:", "scales", "list"),
    _slip("stages_text", "`stages` is a text", "scales:\n  smoke:\n", "scales:\n  smoke: fast\n  other:\n", "smoke", "fast"),
    _slip("repeat_null", "`repeat` is empty", "    repeat:\n      n: 2\n      carry:\n        policy: {from: sft, next: dpo}\n      stages:\n        explore:", "    repeat:\n    n: 2\n    stages:\n        explore:", "repeat", most=2),
    _slip("repeat_stages_empty", "a repeat without stages", "n: 2\n", "n: 2\n      stage: {}\n", "stage"),
    _slip("carry_list", "`carry` is a list", "        policy: {from: sft, next: dpo}", "        - policy: {from: sft, next: dpo}", "carry", "list"),
    _slip("carry_text", "a carried name is a text", "policy: {from: sft, next: dpo}", "model: sft", "policy", "from"),
    _slip("carry_without_next", "`next` is missing", "{from: sft, next: dpo}", "{from: sft}", "next"),
    _slip("compare_of_nothing", "`of` is empty", "of: [untrained, test]", "of: []", "of", "empty"),
    _slip("compare_of_null", "`of` is null", "of: [untrained, test]", "of:", "of"),
    _slip("stage_null", "a stage is empty", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained:", "untrained", "kind"),
    _slip("environment_null", "an environment is empty", "    backend: textcraft\n    max_depth: 2\n", "", "craft", "backend"),
    _slip("environment_text", "an environment is a text", "  craft:\n    backend: textcraft\n    max_depth: 2\n", "  craft: textcraft\n", "craft", "backend"),
    _slip("model_expression", "a model is an expression", CUT_MODELS, 'models:\n  base: "{{ rate }}"\n', "base", 'write `base: {repo: "{{ rate }}"}`'),
    _slip("name_null", "the name is empty", "name: demo", "name:", "name"),
    _slip("name_empty_text", "the name is an empty text", "name: demo", 'name: ""', "name", "empty"),
    _slip("description_list", "the description is a list", "description: A small experiment.", "description: [small]", "description"),
    _slip("budget_number", "the budget is a number", "budget:\n  wall_hours: 2", "budget: 2", "budget", "wall_hours"),
    _slip("matrix_list", "the matrix is a list", "name: demo", "name: demo\nmatrix: [seed]", "matrix", "list"),
    _slip("matrix_axis_null", "an axis is empty", "name: demo", "name: demo\nmatrix: {seed: }", "seed", "empty"),
    _slip("stage_as_list_item", "stages of a repeat as a list", "        explore:\n          kind: rollout", "        - explore:\n          kind: rollout", "stages"),
    _slip("decode_text", "`decode` is a text", "decode: {max_tokens: 64, temperature: 0.7}", "decode: greedy", "decode", "greedy"),
    _slip("placement_number", "`placement` is a number", "    epochs: 3", "    epochs: 3\n    placement: 1", "placement"),
    _slip("paper_text", "`paper` is a text", "name: demo", "name: demo\npaper: ETO (Song et al.)", "paper", "title"),
    _slip("whole_spec_in_list", "the spec is a list", "agentc: 1\n", "- agentc: 1\n", "list"),
)  # fmt: skip

SYNTAX = (
    _slip("no_space_after_colon", "no space after the colon", "    kind: sft\n", "    kind:sft\n", "kind:sft", "space"),
    _slip("equals_sign", "`=` for `:`", "    epochs: 3", "    epochs = 3", "epochs", ":"),
    _slip("brace_not_closed", "a brace is not closed", "split: test}", "split: test", "not closed"),
    _slip("brace_too_many", "a brace too many", "split: test}", "split: test}}", "}"),
    _slip("bracket_too_many", "a bracket too many", "[untrained, test]", "[untrained, test]]", "]"),
    _slip("bracket_for_brace", "a list closed by a brace", "[untrained, test]", "[untrained, test}", "]"),
    _slip("single_quote_not_closed", "a quote is not closed", "instruction: Craft the goal.", "instruction: 'Craft the goal.", "not closed", "quote"),
    _slip("double_quote_not_closed", "a quote is not closed, and another one comes", "description: A small experiment.", 'description: "A small experiment.', "not closed", "quote"),
    _slip("apostrophe_in_quotes", "an apostrophe inside single quotes", "description: A small experiment.", "description: 'It's small.'", "quote"),
    _slip("text_after_quotes", "text after the closing quote", "description: A small experiment.", 'description: "Small" and fine.', "quote"),
    _slip("starts_with_percent", "a value starts with %", "split: test}", "split: %test}", "%"),
    _slip("starts_with_backtick", "a value in backticks", "kind: sft", "kind: `sft`", "`"),
    _slip("starts_with_star", "a star for all stages", "of: [untrained, test]", "of: *", "*"),
    _slip("undefined_alias", "an alias without anchor", "split: test}", "split: *test}", "test"),
    _slip("tag_important", "a tag", "kind: sft", "kind: !sft", "!sft"),
    _slip("list_in_line", "a list item behind a key", "of: [untrained, test]", "of: - untrained", "-"),
    _slip("one_space_less", "one line is indented by a space less", "    model: base", "   model: base", "indent"),
    _slip("one_space_more", "one line is indented by a space more", "    model: base", "     model: base", "indent"),
    _slip("section_indented", "a section is indented", "servers:\n", " servers:\n", "indent"),
    _slip("conflict_markers", "conflict markers of git", "    epochs: 3\n", "<<<<<<< HEAD\n    epochs: 3\n=======\n    epochs: 4\n>>>>>>> main\n", "conflict"),
    _slip("markdown_fence", "a fence of Markdown", "agentc: 1\n", "```yaml\nagentc: 1\n", "```"),
    _slip("windows_path", "a Windows path in double quotes", "description: A small experiment.", 'description: "C:\\data\\new"', "\\"),
    _slip("complex_key", "a question mark as a key", "    epochs: 3", "    ? epochs\n    : [3]\n    ? [lr2]\n    : 3", "key"),
    _slip("section_twice", "a section given twice", "budget:", "defaults: {epochs: 2}\nbudget:", "defaults", "twice"),
    _slip("comment_without_space", "a comment without a space before it", "epochs: 3", "epochs: 3# as in the paper", "#"),
    _slip("slashes_for_comment", "// for a comment", "epochs: 3", "epochs: 3 // as in the paper", "#"),
    _slip("python_none", "None for null", "max_depth: 2", "max_depth: None", "null"),
    _slip("python_true", "a quoted boolean", "reply_format: react", "reply_format: true", "reply_format"),
    _slip("toml_section", "a section of TOML", "servers:\n", "[servers]\n", "servers", line="[servers]"),
    _slip("json_comment", "a JSON comment before the spec", "agentc: 1\n", "/* my spec */\nagentc: 1\n", "/*"),
    _slip("template_statement", "a Jinja statement", "    epochs: 3\n", "    {% if seed %}\n    epochs: 3\n    {% endif %}\n", "{%"),
    _slip("half_expression", "an expression closed by one brace", '"{{ rate }}"', '"{{ rate }"', "}}"),
    _slip("dollar_expression", "a shell variable for an expression", '"{{ rate }}"', "${rate}", "{{ rate }}"),
    _slip("single_braces", "single braces for an expression", '"{{ rate }}"', '"{rate}"', "{{ rate }}"),
)  # fmt: skip

NAMES = (
    _slip("takes_itself", "a stage takes itself", "data: expert\n", "data: sft\n", "sft", "own output"),
    _slip("no_such_repeat", "a repeat that is none", "of: [untrained, test]", 'of: [untrained, "loop.*.dpo"]', "loop", "eto"),
    _slip("round_zero", "rounds count from 1", "model: eto.dpo", "model: eto.0.dpo", "round 0", "1"),
    _slip("two_dots", "two dots", "model: eto.dpo", "model: eto..dpo", "eto..dpo"),
    _slip("index_brackets", "an index in brackets", "model: eto.dpo", "model: eto[1].dpo", "eto.1.dpo"),
    _slip("slash_for_dot", "a slash for the dot", "model: eto.dpo", "model: eto/dpo", "eto.dpo"),
    _slip("capitals_in_reference", "capitals in a reference", "data: expert\n", "data: EXPERT\n", "expert"),
    _slip("section_in_reference", "the section in a reference", "model: base\n", "model: models.base\n", "base"),
    _slip("output_in_reference", "an output in a reference", "model: eto.dpo", "model: sft.checkpoint", "sft"),
    _slip("expression_for_reference", "an expression for a stage", "data: expert\n", 'data: "{{ expert }}"\n', "expert"),
    _slip("name_with_space", "a space in a name", "  untrained: {", "  un trained: {", "un trained", most=3),
    _slip("name_with_dash", "a dash in a name", "  untrained: {", "  un-trained: {", "un_trained", most=3),
    _slip("name_starts_with_digit", "a name starts with a digit", "  untrained: {", "  0shot: {", "0shot", most=4),
    _slip("name_is_number", "a name is a number", "  untrained: {", "  1: {", "1", most=4),
    _slip("name_is_null", "a name is null", "  untrained: {", "  null: {", "null", most=4),
    _slip("experiment_with_slash", "a slash in the experiment's name", "name: demo", "name: me/demo", "me/demo"),
    _slip("experiment_with_capital", "a capital in the experiment's name", "name: demo", "name: Demo", "demo"),
    _slip("experiment_with_space", "a space in the experiment's name", "name: demo", "name: my demo", "my_demo"),
    _slip("experiment_too_long", "a name of 300 letters", "name: demo", "name: " + "d" * 300, "64"),
    _slip("stage_too_long", "a stage's name of 200 letters", "  untrained: {", "  " + "u" * 200 + ": {", "64", most=4),
    _slip("key_too_long", "a key of 3000 letters", "    epochs: 3", "    " + "e" * 3000 + ": 3", "256"),
    _slip("stage_named_report", "a stage named as one that agentc adds", "  untrained: {", "  report: {kind: evaluate, model: base, split: test}\n  untrained: {", "report", most=0),
    _slip("unknown_split", "a split that the environment lacks", "split: test}", "split: dev}", "dev", "test"),
    _slip("baseline_outside", "the baseline is not compared", "baseline: untrained", "baseline: sft", "baseline", most=2),
    _slip("claim_on_training", "a claim about a training", "stage: test,", "stage: sft,", "sft"),
    _slip("claim_against_itself", "a claim of a stage against itself", "difference_from: untrained", "difference_from: test", "itself"),
    _slip("model_as_data", "a model where data is wanted", "data: expert\n", "data: base\n", "base"),
    _slip("data_as_model", "data where a model is wanted", "model: base\n", "model: expert\n", "expert"),
    _slip("carried_from_itself", "carried from the stage that the round makes", "{from: sft, next: dpo}", "{from: dpo, next: dpo}", "dpo"),
    _slip("environment_misspelt", "an environment misspelt in a stage", "    epochs: 3", "    epochs: 3\n    environment: craft", "environment"),
)  # fmt: skip

EXPRESSIONS = (
    _slip("param_below", "a default uses a param below it", "default: 0, min: 0}", 'default: "{{ rate }}", min: 0}', "rate", "above"),
    _slip("param_uses_itself", "a default uses itself", "default: 1e-3}", 'default: "{{ rate }}"}', "rate", "itself"),
    _slip("param_type_integer", "`integer` for `int`", "type: int,", "type: integer,", "int"),
    _slip("param_type_number", "`number` for `float`", "type: float,", "type: number,", "float"),
    _slip("param_default_list", "a list for an int", "default: 0, min: 0}", "default: [0, 1], min: 0}", "seed", "list"),
    _slip("param_bounds_crossed", "min above max", "default: 0, min: 0}", "default: 0, min: 5, max: 1}", "min", "max"),
    _slip("attribute_of_params", "`params.rate`", '"{{ rate }}"', '"{{ params.rate }}"', "rate"),
    _slip("empty_expression", "an empty expression", '"{{ rate }}"', '"{{ }}"', "empty"),
    _slip("environment_variable", "a variable of the shell", '"{{ rate }}"', "\"{{ env('LR') }}\"", "env"),
    _slip("default_filter", "a filter of Jinja's", '"{{ rate }}"', '"{{ rate | default(1) }}"', "default"),
    _slip("expression_then_text", "arithmetic outside the braces", "epochs: 3", 'epochs: "{{ seed }} + 3"', "inside of the braces"),
    _slip("expression_overflows", "a number too large in an expression", '"{{ rate }}"', '"{{ 1e999 }}"', "too large"),
    _slip("power_by_caret", "a caret for a power", '"{{ rate }}"', '"{{ 10 ^ -3 }}"', "**"),
    _slip("assignment", "`=` for `==`", '"{{ rate }}"', '"{{ 1 if seed = 0 else 2 }}"', "=="),
    _slip("python_and", "`&&` for `and`", '"{{ rate }}"', '"{{ 1 if seed && rate else 2 }}"', "and"),
    _slip("ternary", "C's ternary", '"{{ rate }}"', '"{{ seed ? 1 : 2 }}"', "if"),
    _slip("text_for_number", "an expression gives a text", '"{{ rate }}"', "\"{{ 'fast' }}\"", "lr", "fast"),
    _slip("matrix_range_text", "a range as text", "name: demo", "name: demo\nmatrix: {seed: 0..4}", "seed", "list"),
    _slip("matrix_number", "a number for a list", "name: demo", "name: demo\nmatrix: {seed: 3}", "[3]"),
    _slip("matrix_over_model", "a sweep over a model", "name: demo", "name: demo\nmatrix: {base: [1, 2]}", "base", "param"),
    _slip("matrix_huge", "a range of a million", "name: demo", 'name: demo\nmatrix: {seed: "{{ range(1000000) }}"}', "1000000", "10000"),
    _slip("matrix_excludes_all", "everything is excluded", "name: demo", "name: demo\nmatrix: {seed: [0], exclude: [{seed: 0}]}", "exclude"),
    _slip("matrix_wrong_value", "a value of the wrong type in an axis", "name: demo", "name: demo\nmatrix: {seed: [0, one]}", "one"),
    _slip("scale_unknown_stage", "a scale of a stage that is none", "      expert: {limit: 32}", "      exprt: {limit: 32}", "exprt", "expert"),
    _slip("scale_unknown_param", "a scale of a param that is none", "  smoke:\n", "  smoke:\n    params: {epochs: 1}\n", "epochs"),
    _slip("scale_with_name", "a scale renames the experiment", "  smoke:\n", "  smoke:\n    name: small\n", "name"),
    _slip("scale_new_matrix", "a scale sweeps where the spec does not", "  smoke:\n", "  smoke:\n    matrix: {seed: [0, 1]}\n", "matrix"),
    _slip("use_nowhere", "a template that is none", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: evalute, with: {model: base}}", "evaluate"),
    _slip("use_number", "a number for a template", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: [evaluate], with: {model: base}}", "use"),
    _slip("with_alone", "`with` without `use`", "split: test}", "split: test, with: {a: 1}}", "with", "use"),
    _slip("template_param_missing", "a template's param is missing", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: evaluate}", "model"),
    _slip("template_param_beside", "a param of the template beside `use`", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: evaluate, modle: base}", "model", most=2),
    _slip("template_of_other_section", "a template of another section", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: eto/defaults}", "eto/defaults"),
    _slip("use_itself", "the spec uses itself", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: ./base.yaml}", "spec", line="agentc: 1"),
    _slip("use_too_long", "a template's name of 5000 letters", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: " + "u" * 5000 + "}", "template"),
    _slip("use_local_too_long", "a template file's name of 5000 letters", "  untrained: {kind: evaluate, model: base, split: test}", "  untrained: {use: ./" + "u" * 5000 + ".yaml}", "template"),
)  # fmt: skip

MEANING = (
    _slip("instruction_empty", "an empty instruction", "instruction: Craft the goal.", 'instruction: ""', "instruction", "empty", most=0),
    _slip("repo_is_url", "a URL where a hub id is wanted", CUT_MODELS, "models:\n  base: {backend: hf, repo: https://huggingface.co/meta-llama/Llama-2-7b-hf, revision: main}\n", "meta-llama/Llama-2-7b-hf", most=2),
    _slip("repo_without_owner", "a hub id of three parts", CUT_MODELS, "models:\n  base: {backend: hf, repo: a/b/c}\n", "owner/name", most=2),
    _slip("setting_of_other_environment", "another environment's setting", "max_depth: 2", "simplification: easy", "simplification", "max_depth"),
    _slip("oracle_server_without_url", "a setting that another one needs", "    backend: textcraft\n    max_depth: 2\n", "    backend: twenty_questions\n    oracle: server\n", "oracle_url", most=2),
    _slip("version_quoted", "the version in quotes", "agentc: 1\n", 'agentc: "1"\n', "agentc: 1"),
    _slip("version_fraction", "the version as a fraction", "agentc: 1\n", "agentc: 1.0\n", "1"),
    _slip("version_with_v", "the version with a v", "agentc: 1\n", "agentc: v1\n", "1"),
    _slip("dataset_url", "a URL for a file", "  expert:\n    kind: expert\n    split: train\n", "  expert:\n    kind: expert\n    split: train\n  extra: {kind: dataset, path: https://example.org/data.jsonl}\n", "data.jsonl", most=2),
    _slip("dataset_nowhere", "a file that is not there", "  expert:\n    kind: expert\n    split: train\n", "  expert:\n    kind: expert\n    split: train\n  extra: {kind: dataset, path: nowhere.jsonl}\n", "nowhere.jsonl"),
    _slip("stop_as_text", "`stop` as a text", "temperature: 0.7}", 'temperature: 0.7, stop: "Observation:"}', "stop", "[", most=1),
    _slip("temperature_negative", "a negative temperature", "temperature: 0.7}", "temperature: -0.7}", "temperature"),
    _slip("heads_do_not_divide", "heads that do not divide the width", "heads: 2", "heads: 3", "heads", "128"),
    _slip("gpus_negative", "a negative number of GPUs", "    epochs: 3", "    epochs: 3\n    placement: {gpus: -1}", "gpus"),
    _slip("minutes_as_clock", "a clock time for minutes", "    epochs: 3", "    epochs: 3\n    placement: {minutes: 1:30:00}", "minutes"),
    _slip("memory_with_unit", "memory with a unit", "    epochs: 3", "    epochs: 3\n    placement: {mem_mb: 16GB}", "16"),
    _slip("secret_in_setting", "a secret where none can stand", "description: A small experiment.", "description: {secret: HF_TOKEN}", "description"),
)  # fmt: skip

HABITS = (
    _slip("hub_id_as_model", "a hub id where a stage is named", "    kind: sft\n    model: base", "    kind: sft\n    model: Qwen/Qwen2.5-0.5B-Instruct", "models: {base: Qwen/Qwen2.5-0.5B-Instruct}"),
    _slip("file_as_data", "a file where a stage is named", "data: expert\n", "data: data/train.jsonl\n", "dataset", "path"),
    _slip("seeds_in_defaults", "several seeds for one", '  seed: "{{ seed }}"', "  seed: [0, 1, 2]", "matrix"),
    _slip("list_of_rates", "a list to sweep over", 'lr: "{{ rate }}"', "lr: [1e-5, 2e-5]", "matrix"),
    _slip("depends_on", "dependencies written out", "    epochs: 3", "    epochs: 3\n    depends_on: [expert]", "leave it out", "inputs"),
    _slip("environment_in_stage", "an environment declared in a stage", "    kind: expert\n    split: train", "    kind: expert\n    environment: {backend: textcraft}\n    split: train", "environments"),
    _slip("prompt_as_text", "the prompt's text in a stage", "  untrained: {kind: evaluate, model: base,", "  untrained: {kind: evaluate, model: base, prompt: You are a helpful agent.,", "prompts"),
    _slip("server_as_backend", "a server's backend in a stage", "  untrained: {kind: evaluate, model: base,", "  untrained: {kind: evaluate, model: base, server: vllm,", "servers", "local"),
    _slip("report_to", "wandb in a stage", "    epochs: 3", "    epochs: 3\n    report_to: wandb", "track"),
    _slip("output_dir", "where results go", "name: demo", "name: demo\noutput_dir: ./out", "--store"),
    _slip("device", "a device", "name: demo", "name: demo\ndevice: cuda", "placement"),
    _slip("do_sample", "sampling switched on", "temperature: 0.7}", "temperature: 0.7, do_sample: true}", "temperature"),
    _slip("eval_steps", "evaluation while training", "    epochs: 3", "    epochs: 3\n    eval_steps: 100", "evaluate"),
    _slip("deepspeed", "a file of DeepSpeed", "    epochs: 3", "    epochs: 3\n    deepspeed: ds_z3.json", "sharding"),
    _slip("condition", "a condition", "    epochs: 3", '    epochs: 3\n    when: "{{ seed == 0 }}"', "no stage is conditional"),
    _slip("extends", "a spec that extends another", "name: demo", "name: demo\nextends: ./other.yaml", "use"),
    _slip("kind_in_capitals", "a kind in capitals", "kind: sft", "kind: SFT", "sft"),
    _slip("kind_as_key", "a kind as a key", "  results:\n    kind: compare\n    of: [untrained, test]\n    baseline: untrained", "  results:\n    compare: [untrained, test]\n    baseline: untrained", "kind: compare"),
    _slip("of_as_text", "a list as a text", "of: [untrained, test]", "of: untrained, test", "[untrained, test]"),
    _slip("all_tasks", "a word for all", "kind: expert\n    split: train", "kind: expert\n    split: train\n    limit: all", "null"),
    _slip("flash_attention", "another trainer's attention", "    epochs: 3", "    epochs: 3\n    flash_attn: fa2", "attention"),
    _slip("quantised", "four bits", "    epochs: 3", "    epochs: 3\n    load_in_4bit: true", "load_in_4bit", "lora"),
    _slip("misspelt_algorithm", "an algorithm that nothing implements", "  untrained: {", "  rl: {kind: online_rl, model: sft, split: train, iterations: 2, episodes: 4, algorithm: gpro}\n  untrained: {", "one of `grpo`, ", "`filtered_bc`", "did you mean `grpo`"),
    _slip("two_settings_on_a_line", "two settings on one line", "    epochs: 3", "    epochs: 3  packing: true", "line"),
    _slip("claim_as_sentence", "a claim as a sentence", "  gain: {what: ETO over nothing, stage: test, difference_from: untrained, above: 0}", "  gain: test is better than untrained", "gain", "stage"),
    _slip("reward_function", "a reward function", "          kind: rollout\n", "          kind: rollout\n          reward_function: my.py\n", "environment"),
)  # fmt: skip

AUDIT = (
    _slip("kind_rft", "a method for a kind", "    kind: sft\n", "    kind: rft\n", "min_reward", "sft"),
    _slip("kind_grpo", "an algorithm for a kind", "    kind: sft\n", "    kind: grpo\n", "online_rl", "algorithm: grpo"),
    _slip("kind_ppo", "an algorithm for a kind", "    kind: sft\n", "    kind: ppo\n", "online_rl", "algorithm: ppo"),
    _slip("kind_eval", "a shorter word for a kind", "{kind: evaluate, model: base", "{kind: eval, model: base", "did you mean `evaluate`", "`script`", "`verdicts`"),
    _slip("filter_expression", "a filter as an expression", "    epochs: 3", "    epochs: 3\n    filter: reward >= 1", "min_reward", "best_per_task", "keep_best"),
    _slip("expert_n", "how many, as other tools say it", "    kind: expert\n", "    kind: expert\n    n: 100\n", "limit", "attempts"),
    _slip("evaluate_n", "attempts by another name", "{kind: evaluate, model: base", "{kind: evaluate, n: 4, model: base", "attempts"),
    _slip("top_k", "a setting that no server has", "temperature: 0.7}", "temperature: 0.7, top_k: 50}", "do not sample by top-k"),
    _slip("bf16", "a switch for a type", "    epochs: 3", "    epochs: 3\n    bf16: true", "dtype: bfloat16"),
    _slip("fp16", "a switch for a type that there is not", "    epochs: 3", "    epochs: 3\n    fp16: true", "dtype: bfloat16"),
    _slip("seeds", "seeds at the top level", "name: demo", "name: demo\nseeds: [0, 1]", "matrix: {seed: [0, 1]}"),
    _slip("metric_accuracy", "another metric", "stage: test,", "stage: test, metric: accuracy,", "did you mean `success`"),
    _slip("greater_than", "another relation", "above: 0}", "greater_than: 0}", "did you mean `above`"),
    _slip("colon_in_flow", "a colon in a text of a flow mapping", "  react:\n    instruction: Craft the goal.\n    reply_format: react", "  react: {instruction: Task: craft it, then stop., reply_format: react}", "quotes", '"Task: craft it, then stop."'),
    _slip("list_in_round", "a list for a value of each round", "beta: 0.1", "beta: [0.1, 0.3]", "per_round", "[0.1, 0.3]"),
    _slip("list_in_group_in_round", "the same in a group", "          model: policy\n          split: train", "          model: policy\n          decode: {temperature: [0.5, 1.0]}\n          split: train", "per_round", "[0.5, 1.0]"),
    _slip("backend_gym", "another name of a backend", "backend: textcraft", "backend: gym", "did you mean `gymnasium`", "env.webshop"),
    _slip("loss_type", "another name of the loss", "beta: 0.1", "beta: 0.1\n          loss_type: ipo", "`loss`", "`hinge`", "`ipo`"),
    _slip("model_name_or_folder", "a name without an owner", CUT_MODELS, "models:\n  base: Qwen2.5-0.5B\n", "no readable directory Qwen2.5-0.5B", "repo"),
    _slip("huggingface_and_name", "two words of other tools for a model", CUT_MODELS, "models:\n  base: {backend: huggingface, name: Qwen/Qwen2.5-0.5B}\n", "write `base: Qwen/Qwen2.5-0.5B`"),
    _slip("path_of_hub_name", "a hub's name for a path", CUT_MODELS, "models:\n  base: {path: Qwen/Qwen2.5-0.5B}\n", "did you mean `repo`"),
    _slip("env_section", "another name of a section", "environments:\n", "env:\n", "did you mean `environments`"),
    _slip("repeat_number", "a number of rounds for what they are", "    repeat:\n      n: 2\n      carry:\n        policy: {from: sft, next: dpo}\n      stages:\n        explore:", "    repeat: 2\n    stages:\n        explore:", "write `repeat: {n: 2, stages: {...}}`", most=2),
    _slip("kind_pairs", "a kind in the plural", "kind: pair\n", "kind: pairs\n", "one of `pair`, ", "did you mean `pair`"),
    _slip("wrong_split", "a split that the environment lacks", "    model: eto.dpo\n    split: test", "    model: eto.dpo\n    split: valid", "`valid`", "did you mean `validation`"),
)  # fmt: skip

_DATA = "stages:\n  expert:\n"
_KEEP = "  keep:\n    kind: script\n    command: [ls]\n    output: trajectories\n"
_SEARCH = "name: demo\nsearch:\n  over: {rate: {low: 1e-6, high: 1e-3}}\n  stage: test\n"

STRANGERS = (
    _slip("format_dpo", "a method for a format", _DATA, "stages:\n  talk: {kind: dataset, path: slip.yaml, format: dpo}\n  expert:\n", "`dpo`", "did you mean `preference`"),
    _slip("format_openai", "a company for a format", _DATA, "stages:\n  talk: {kind: dataset, path: slip.yaml, format: openai}\n  expert:\n", "did you mean `messages`"),
    _slip("glob_for_path", "a pattern for a file", _DATA, "stages:\n  talk: {kind: dataset, path: data/*.jsonl}\n  expert:\n", "data/*.jsonl is a pattern", "one file", "`cat data/*.jsonl"),
    _slip("qwen_for_chatml", "a model's name for its chat format", "chat_format: chatml", "chat_format: qwen", "did you mean `chatml`"),
    _slip("needs_as_list", "`needs` as a list", "above: 0}", "above: 0, needs: [model=llama]}", "claims.gain.needs", "`{model: llama}`"),
    _slip("inputs_as_list", "inputs of a script without names", _DATA, f"stages:\n{_KEEP}    inputs: [expert]\n  expert:\n", "`inputs`", "`{NAME: expert}`"),
    _slip("search_min_max", "other words for the ends of a range, and for trials", "name: demo\n", _SEARCH.replace("low", "min").replace("high", "max") + "  n_trials: 20\n", "did you mean `low`", most=3),
    _slip("placement_gres", "SLURM's word for GPUs", "    epochs: 3", "    epochs: 3\n    placement: {gres: 1}", "did you mean `gpus`"),
)  # fmt: skip

SLIPS = (
    *(*CHARACTERS, *NUMBERS, *EMPTY, *SYNTAX, *NAMES),
    *(*EXPRESSIONS, *MEANING, *HABITS, *AUDIT, *STRANGERS),
)
