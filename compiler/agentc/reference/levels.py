"""The levels that a spec passes on its way to a program, with the passes that work on each.

`architecture.py` makes tables of it and `architecture_picture.py` draws it. A pass of the two
tuples that stands in no level, or twice, is an error: this cannot fall behind the code.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc.front.read_module import FRONT_PASSES
from agentc.passes import PASSES


@dataclass(frozen=True, slots=True)
class Level:
    """A form of the experiment. `made_by` turns the level above into this one, `passes` work on
    it; of both, names of passes are checked against the tuples."""

    name: str
    type: str
    where: str
    made_by: tuple[str, ...]
    passes: tuple[str, ...] = ()


LEVELS: tuple[Level, ...] = (
    Level("spec text", "Source", "agentc.diagnostics.diagnostic", ("read_named",)),
    Level(
        "positioned tree", "Node", "agentc.source.tree", ("load_text",),
        ("use_templates", "choose_scale"),
    ),
    Level("declarations", "Spec", "agentc.syntax.nodes", ("read_syntax",)),
    Level(
        "module of stages", "Module", "agentc.ir.module", ("read_cells", "join"),
        ("warn_of_unused", "infer_artifacts", "choose_backends", "check_settings"),
    ),
    Level("drafts", "JobDraft, LeaseDraft", "agentc.backend_api.draft", ("a backend's lowering",)),
    Level(
        "plan of jobs", "Plan", "agentc.plan.job", ("lower",),
        ("assign_keys", "share_servers", "fuse_servers", "forecast_memory", "finish"),
    ),
    Level("plan.json, Snakefile", "text", "agentc.emit.directory", ("compile_to",)),
    Level("wrapper", "Wrapper", "agentc.runtime.wrapper", ("Snakemake",)),
    Level("program", "Job", "agentc.program.job", ("Supervisor",)),
)  # fmt: skip


def levels() -> tuple[Level, ...]:
    """All of them, first to last. Raises ValueError where their passes are not those of the code,
    each once."""
    passes = [each.__name__ for each in (*FRONT_PASSES, *PASSES)]
    placed = [name for level in LEVELS for name in _named(level, set(passes))]
    if sorted(placed) != sorted(passes):
        wrong = sorted(set(placed) ^ set(passes)) or sorted(
            {n for n in placed if placed.count(n) > 1}
        )
        raise ValueError(f"LEVELS and the tuples of passes differ in: {', '.join(wrong)}")
    return LEVELS


def _named(level: Level, passes: set[str]) -> tuple[str, ...]:
    return (*(name for name in level.made_by if name in passes), *level.passes)
