"""Takes out of TextWorld what it does again and again: imported in ALFWorld's environment only.

Translating the same problem to SAS (four times for each game), a second translation that only the
planner needs, parsing the same grammar texts, and deep copies of contexts that nobody changes.
That the games tell the same with it is compared, not assumed (`benchmarks/alfworld_equality.py`).
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any


def memoise() -> None:
    """Patch the imported TextWorld, once."""
    import fast_downward
    from textworld.envs.pddl import logic, textgen

    translate, load_lib = fast_downward.pddl2sas, fast_downward.load_lib

    @lru_cache(maxsize=2)
    def translated(domain: str, problem: str) -> Any:
        return translate(domain, problem)

    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        return (None, "") if optimize else translated(domain, problem)

    def load_lib_without_planner() -> Any:
        library = load_lib()
        library.load_sas_replan = lambda text: None
        return library

    fast_downward.pddl2sas = pddl2sas
    fast_downward.load_lib = load_lib_without_planner
    logic._parse_and_convert = lru_cache(maxsize=8)(logic._parse_and_convert)
    parsed = lru_cache(maxsize=None)(textgen._parse_and_convert)

    def parse(text: str, rule_name: str, trace: bool = False) -> Any:
        # Symbols are given a context by whoever asked for them.
        return copy.deepcopy(parsed(text, rule_name=rule_name))

    textgen._parse_and_convert = parse
    textgen.Rule = type(
        "Rule",
        (),
        {"parse_conjunctive_query": lru_cache(maxsize=None)(textgen.Rule.parse_conjunctive_query)},
    )
    textgen.copy_context = lambda context: {
        **context,
        "variables": dict(context["variables"]),
        "mapping": dict(context["mapping"]),
    }
