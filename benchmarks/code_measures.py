"""How large and how tangled the code is: the measures that a refactoring is judged by.

`python -m benchmarks.code_measures [ROOT ...]` prints one column for each checkout, this one
without arguments. A checkout of another commit (`git worktree add`) is read, not imported.
"""

from __future__ import annotations

import argparse
import ast
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = {"agentc": "compiler/agentc", "agentc_backends": "backends/agentc_backends"}
COMPLEX = 20
"""Functions above this cyclomatic complexity are counted."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the product, parsed."""

    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def header(self) -> int:
        """Lines of the docstring and of imports before the first other statement."""
        last = 0
        for node in self.tree.body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not docstring and not isinstance(node, ast.Import | ast.ImportFrom):
                break
            last = node.end_lineno or last
        return last


def modules(root: Path) -> list[Module]:
    """All modules of the product in a checkout."""
    read = []
    for folder in PACKAGES.values():
        for path in sorted((root / folder).rglob("*.py")):
            if "diagnostics/examples" in path.as_posix():
                continue  # scripts of example specs
            parts = path.relative_to((root / folder).parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            read.append(Module(name, text, ast.parse(text)))
    return read


def calls(product: list[Module], wanted: Callable[[ast.Call], bool]) -> int:
    """Calls of the product that are as wanted."""
    return sum(
        isinstance(node, ast.Call) and wanted(node)
        for module in product
        for node in ast.walk(module.tree)
    )


def id_keys(product: list[Module]) -> int:
    """Uses of `id(...)`: keys of caches by address."""
    return calls(product, lambda call: isinstance(call.func, ast.Name) and call.func.id == "id")


def leaves(product: list[Module]) -> int:
    """Calls of `.leave(...)`: settings that a backend disowns one by one."""
    return calls(
        product, lambda call: isinstance(call.func, ast.Attribute) and call.func.attr == "leave"
    )


def group_of(name: str) -> str:
    """The package under the top one that a module is in, or the module itself there."""
    return ".".join(name.split(".")[:2])


def imported(module: Module, known: frozenset[str]) -> Iterator[str]:
    """The modules of the product that a module imports, at the top or later."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in known or node.module in known:
                    yield whole if whole in known else node.module


def mutual_groups(product: list[Module]) -> list[tuple[str, str]]:
    """Pairs of groups that import each other."""
    known = frozenset(module.name for module in product)
    arrows = {
        (group_of(module.name), group_of(name))
        for module in product
        for name in imported(module, known)
    }
    return sorted((one, other) for one, other in arrows if one < other and (other, one) in arrows)


def complexity(function: ast.AST) -> int:
    """Cyclomatic complexity as radon counts it: with boolean operators and comprehensions, without
    the functions and classes inside."""
    total = 1
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        match node:
            case ast.BoolOp(values=values):
                total += len(values) - 1
            case ast.comprehension(ifs=conditions):
                total += 1 + len(conditions)
            case ast.For() | ast.AsyncFor() | ast.While():
                total += 1 + bool(node.orelse)
            case ast.Try(handlers=handlers, orelse=orelse):
                total += len(handlers) + bool(orelse)
            case ast.If() | ast.IfExp() | ast.Assert() | ast.Lambda() | ast.match_case():
                total += 1
        todo.extend(ast.iter_child_nodes(node))
    return total


def complex_functions(product: list[Module]) -> int:
    """Functions and methods above COMPLEX."""
    return sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and complexity(node) > COMPLEX
        for module in product
        for node in ast.walk(module.tree)
    )


def python_lines(folder: Path) -> int:
    """Lines of all Python files below a folder."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in folder.rglob("*.py"))


def measure(root: Path) -> dict[str, str]:
    """The measures of a checkout, as they are printed."""
    product = modules(root)
    lines = [module.lines for module in product]
    header = sum(module.header for module in product)
    classes = Counter(
        node.name
        for module in product
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    )
    return {
        "product lines": f"{sum(lines):,}",
        "product modules": f"{len(product):,}",
        "median lines of a module": f"{statistics.median(lines):.0f}",
        "modules over 400 lines": f"{sum(count > 400 for count in lines)}",
        "share of headers": f"{header / sum(lines):.1%}",
        "classes": f"{classes.total():,}",
        "`.leave(...)` calls": f"{leaves(product)}",
        "`id(...)` calls": f"{id_keys(product)}",
        f"functions above complexity {COMPLEX}": f"{complex_functions(product)}",
        "pairs of groups that import each other": f"{len(mutual_groups(product))}",
        "test lines": f"{python_lines(root / 'tests'):,}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("roots", nargs="*", type=Path, default=[Path(__file__).parents[1]])
    columns = [measure(root) for root in parser.parse_args().roots]
    width = max(map(len, columns[0]))
    for name in columns[0]:
        print(name.ljust(width), *(column[name].rjust(10) for column in columns))


if __name__ == "__main__":
    main()
