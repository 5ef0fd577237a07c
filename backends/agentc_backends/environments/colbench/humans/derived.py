"""Facts about a function, read off its source: parameters, conditions, constants, what it returns.

Weak, honest and without a model: for trying out real tasks, whose rows hold no facts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentc_backends.environments.colbench.tasks import HumanFact

_LONGEST = 160
_RETURN = "return returns result output"
_WORD = re.compile(r"[a-z0-9]+")


def derived_facts(reference: str) -> tuple[HumanFact, ...]:
    """Of each statement that says something, in order; empty where the source is no Python."""
    try:
        tree = ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, HumanFact] = {}
    for node in ast.walk(tree):
        for words, sentence in _said(node):
            if len(sentence) <= _LONGEST and sentence not in found:
                found[sentence] = HumanFact(_keys(words), sentence)
    return tuple(found.values())


def _said(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Key words and a sentence."""
    if isinstance(node, ast.FunctionDef):
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        listed = ", ".join(names)
        yield (
            f"parameters arguments inputs takes {listed}",
            (f"It takes {listed}." if names else "It takes nothing."),
        )
        for position, default in enumerate(reversed(node.args.defaults), 1):
            name, value = names[-position], ast.unparse(default)
            yield f"default {name}", f"The default of {name} is {value}."
        for statement in node.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                value = ast.unparse(statement.value)
                yield f"{_RETURN} {value}", f"It returns {value}."
    elif isinstance(node, ast.If):
        when = ast.unparse(node.test)
        for branch, condition in ((node.body, f"when {when}"), (node.orelse, f"unless {when}")):
            for result in branch[:1]:
                yield from _in_branch(result, condition)
    elif isinstance(node, ast.IfExp):
        value, other = ast.unparse(node.body), ast.unparse(node.orelse)
        when = ast.unparse(node.test)
        yield f"{value} {when} {other}", f"It takes {value} when {when}, else {other}."
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp):
        target = ast.unparse(node.targets[0])
        yield f"{target} {ast.unparse(node.value)}", f"{target} is {ast.unparse(node.value)}."
    elif isinstance(node, ast.For):
        each, all_of = ast.unparse(node.target), ast.unparse(node.iter)
        yield f"loop each every {each} {all_of}", f"It goes through {all_of}."


def _in_branch(result: ast.stmt, condition: str) -> Iterator[tuple[str, str]]:
    if isinstance(result, ast.Return):
        value = "nothing" if result.value is None else ast.unparse(result.value)
        yield f"{_RETURN} {condition} {value}", f"It returns {value} {condition}."
    elif isinstance(result, ast.Raise):
        error = "an error" if result.exc is None else ast.unparse(result.exc)
        yield f"error raise invalid {condition}", f"It raises {error} {condition}."
    elif isinstance(result, ast.Assign | ast.AugAssign):
        yield f"{condition} {ast.unparse(result)}", f"{ast.unparse(result)} {condition}."


def _keys(words: str) -> tuple[str, ...]:
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", words).lower()
    return tuple(dict.fromkeys(_WORD.findall(apart)))
