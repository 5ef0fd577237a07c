"""Post-conditions of artifacts, by type; a job whose artifact breaks one publishes nothing.

The file formats are those of docs/design/contracts.md, section 4. Rows are checked in
`row_contracts`, search trees in `tree_contracts`, turns in `turn_contracts`, models, critics and
runs of RL in `model_contracts`, tables in `table_contracts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentc.program.artifact_files import FACTS_FILE

if TYPE_CHECKING:
    from agentc.runtime.contracts.row_contracts import Finding

PRIVATE = frozenset(("PrivilegedInformation",))
"""Types of artifacts whose files nobody but their owner may read."""
SHOWN = 20
"""So many violations are listed; the rest is counted."""


class Violation(NamedTuple):
    """What is wrong, and where: a file of the artifact, a row (from 1), a field."""

    file: str
    row: int | None
    field: str | None
    message: str

    def __str__(self) -> str:
        place = self.file
        if self.row is not None:
            place += f" row {self.row}"
        if self.field is not None:
            place += f", field {self.field}"
        return f"{place}: {self.message}"


class ContractError(Exception):
    """The artifact breaks its contract; `violations` says how."""

    def __init__(self, artifact: str, violations: list[Violation]) -> None:
        self.violations = violations
        lines = ["  " + str(violation) for violation in violations[:SHOWN]]
        if len(violations) > SHOWN:
            lines.append(f"  and {len(violations) - SHOWN} more")
        super().__init__("the {} breaks its contract:\n{}".format(artifact, "\n".join(lines)))


class Artifact(NamedTuple):
    """What a check may look at: the directory, the contract of the job, and its inputs."""

    data: Path
    contract: Mapping[str, Any]
    inputs: Mapping[str, list[str]]


CHECKS = {
    "Trajectories": ("row_contracts", "check_trajectories"),
    "SFTDataset": ("row_contracts", "check_conversations"),
    "SearchTrees": ("tree_contracts", "check_trees"),
    "PreferencePairs": ("row_contracts", "check_pairs"),
    "PrivilegedInformation": ("model_contracts", "check_privileged"),
    "Candidates": ("turn_contracts", "check_candidates"),
    "CandidateScores": ("turn_contracts", "check_scores"),
    "RewardedTurns": ("turn_contracts", "check_rewarded"),
    "Checkpoint": ("model_contracts", "check_checkpoint"),
    "CriticCheckpoint": ("model_contracts", "check_critic"),
    "PolicyRun": ("model_contracts", "check_run"),
    "VisionEncoder": ("model_contracts", "check_encoder"),
    "TextEncoder": ("model_contracts", "check_text_encoder"),
    "TaskScores": ("table_contracts", "check_task_scores"),
    "Metrics": ("table_contracts", "check_metrics"),
    "Comparison": ("table_contracts", "check_comparison"),
    "Verdicts": ("table_contracts", "check_verdicts"),
    "Report": ("table_contracts", "check_report"),
}
"""Module and function of each type's check. A job's wrapper imports the one that it needs: all of
them would cost each job 20 ms."""


def check_artifact(
    artifact: str,
    data: Path,
    contract: Mapping[str, Any],
    inputs: Mapping[str, list[str]],
    facts: Mapping[str, Any],
) -> None:
    """Raise ContractError when the artifact in `data` is not what its type promises.

    `inputs` maps roles to data directories of the job's inputs; `facts` are what the program
    reported.
    """
    found = [Violation(*v) for v in _check_files(data)]
    found += [Violation(*v) for v in _check_facts(facts)]
    if artifact in CHECKS:
        module, name = CHECKS[artifact]
        check = getattr(import_module("agentc.runtime.contracts." + module), name)
        subject = Artifact(data, contract, inputs)
        for violation in check(subject):
            file, row, field, message = violation
            found.append(Violation(file, row or None, field, message))
            if len(found) >= 1000:
                break
    if found:
        raise ContractError(artifact, found)


def _check_files(data: Path) -> Iterator[Finding]:
    entries = sorted(data.rglob("*")) if data.is_dir() else []
    if not any(entry.is_file() for entry in entries):
        yield ("data", None, None, "the artifact is empty: the program wrote no file")
    for entry in entries:
        if entry.is_symlink():
            name = str(entry.relative_to(data))
            yield (
                name,
                None,
                None,
                "is a symbolic link; an artifact is self-contained, copy the file",
            )


def _check_facts(facts: Mapping[str, Any]) -> Iterator[Finding]:
    for name in sorted(facts):
        value = facts[name]
        if name.endswith("trained_tokens") and (not _is_number(value) or value <= 0):
            yield (
                FACTS_FILE,
                None,
                name,
                f"is {value!r}; at least one token must carry loss (are all replies truncated "
                "away?)",
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
