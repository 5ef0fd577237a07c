"""Fixtures of the front end's tests: a small table of backends, and reading of spec texts.

Everything is imported inside the fixtures, since tests/torch runs in a virtual environment without
agentc's own dependencies.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.diagnostics import Sink
    from agentc.ir.module import Module
    from agentc.syntax.nodes import Spec

# The torch tests run in the torch software stack (`make test-torch`), not in this one.
collect_ignore = [] if find_spec("torch") else ["torch"]

# A suite started in the background inherits ignored signals, and so would the commands it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The former name of AGENTC_SOFTWARE, which commands refuse, must not decide tests.
os.environ.pop("AGENTC_ENVIRONMENTS", None)

# A cluster on this machine, that of tests/slurm beside these or a real one, must not answer for the
# job numbers that tests make up: its job 2 may be over. Those of tests/slurm ask theirs.
os.environ["SLURM_CONF"] = os.devnull

# A machine that is busy with other tests must not fail a property for its speed.
if find_spec("hypothesis"):
    from hypothesis import settings

    settings.register_profile("shared-machine", deadline=None)
    settings.load_profile("shared-machine")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """With AGENTC_TEST_COSTS each test's processor time is written down (tests/costs.py, which a
    recipe's tree does without)."""
    folder = os.environ.get("AGENTC_TEST_COSTS")
    if folder and Path(__file__).with_name("costs.py").exists():
        from tests.costs import Costs

        config.pluginmanager.register(Costs(Path(folder)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The Makefile finds marked tests by the text of their files, so as to read no others."""
    for name in ("alone", "long", "slow", "slurm"):
        for path in {item.path for item in items if item.get_closest_marker(name)}:
            if f"mark.{name}" not in path.read_text(encoding="utf-8"):
                raise pytest.UsageError(f"{path} has tests marked {name}, and does not say so")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where all software stacks were built (`make test` says so by AGENTC_REQUIRE_SOFTWARE),
    a test that misses one has failed."""
    report = yield
    missing = "software stack" in str(report.longrepr)
    if report.skipped and missing and os.environ.get("AGENTC_REQUIRE_SOFTWARE"):
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def small_table() -> BackendTable:
    """A table that changes only with these tests, so that expected messages stay as they are.
    Nothing in it can be lowered: the front end never does."""
    from agentc.backend_api import (
        BackendTable,
        EnvironmentBackend,
        ServerBackend,
        Software,
        StageBackend,
    )
    from agentc.kinds.field import REQUIRED, Field, boolean, choice, group, integer, string, strings

    software = Software(name="none", lock="")

    def never(*_: object) -> object:
        raise AssertionError("the front end does not lower")

    def stage(id: str, kind: str, options: tuple[Field, ...] = ()) -> StageBackend:
        return StageBackend(
            id=id,
            kind=kind,
            version=1,
            doc=f"Does {kind}.",
            software=software,
            lower=never,  # type: ignore[arg-type]
            options=options,
        )

    found = (
        stage("model.scratch", "model"),
        stage("model.hf", "model"),
        stage("expert.planner", "expert"),
        stage("trl.sft", "sft", (boolean("use_liger", "Fused kernels.", False),)),
        stage("trl.dpo", "dpo", (boolean("precompute", "Reference first.", True),)),
        stage(
            "openrlhf.dpo",
            "dpo",
            (
                integer("zero_stage", "DeepSpeed stage.", 2, minimum=0, maximum=3),
                Field(
                    name="extra",
                    schema={"type": "object", "propertyNames": {"pattern": "^--"}},
                    doc="Further flags.",
                    default={},
                ),
            ),
        ),
        stage("rollout.react", "rollout", (choice("span", "Rule.", ("line", "rest"), "line"),)),
        stage("pair.contrast", "pair"),
        stage("evaluate.agent", "evaluate"),
        stage("compare.paired", "compare"),
        EnvironmentBackend(
            id="env.textcraft",
            version=1,
            doc="Crafting.",
            software=software,
            lease=never,  # type: ignore[arg-type]
            fields=(
                integer("max_depth", "Deepest goal.", None, minimum=1, nullable=True),
                integer("distractors", "Useless commands.", 10, minimum=0),
            ),
            splits=("train", "test"),
        ),
        EnvironmentBackend(
            id="env.webshop",
            version=1,
            doc="Shopping.",
            software=software,
            lease=never,  # type: ignore[arg-type]
            fields=(string("catalogue", "Folder of products.", REQUIRED),),
        ),
        ServerBackend(
            id="serve.transformers",
            version=1,
            doc="On a CPU.",
            software=software,
            lease=never,  # type: ignore[arg-type]
            fields=(integer("threads", "Threads.", 1, minimum=1, identity="placement"),),
        ),
        ServerBackend(
            id="serve.vllm",
            version=1,
            doc="On GPUs.",
            software=software,
            lease=never,  # type: ignore[arg-type]
            fields=(
                integer("replicas", "Copies.", 1, minimum=1, identity="placement"),
                group("cache", "Key/value cache.", (integer("gib", "Size.", 4, minimum=1),)),
                strings("flags", "Further flags."),
            ),
        ),
    )
    return BackendTable({backend.id: backend for backend in found})


@pytest.fixture
def read_text(
    small_table: BackendTable,
) -> Callable[..., tuple[Spec, Module | None, Sink]]:
    """Reads a spec from text, with `-p` values as keyword arguments."""
    from agentc.diagnostics import Sink
    from agentc.front.read_module import build_module
    from agentc.source.load import load_bytes

    def read(text: str | bytes, **params: str) -> tuple[Spec, Module | None, Sink]:
        sink = Sink()
        data = text.encode() if isinstance(text, str) else text
        source, root = load_bytes(data, "spec.yaml", sink)
        spec, module = build_module(source, root, params, small_table, sink)
        return spec, module, sink

    return read
