"""Declares `script.run` and lowers a script stage: the job that runs it, with the text of its files
in the plan, and, where it makes metrics, one that makes them of its scores."""

from __future__ import annotations

from pathlib import PurePosixPath

from agentc.backend_api import JobDraft, LowerContext, SoftwareEnvironment, StageBackend, StageView
from agentc.backend_api.script_header import ScriptError, ScriptHeader, read_script
from agentc.kinds.artifacts import METRICS, TASK_SCORES
from agentc.kinds.field import Json
from agentc.kinds.script import PRODUCTS
from agentc_backends.scripts.files import names_in, range_of, texts_of, told_files
from agentc_backends.software import LIGHT

_PART = "scores"
_MODULE = "agentc_backends.scripts.stage"


def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job; two for `output: metrics`, whose second one computes means and intervals."""
    product = PRODUCTS[view.text("output")]
    metrics = product is METRICS
    for name in () if metrics else ("confidence", "range"):
        view.leave(name, "only `output: metrics` has scores")
    words, main = _words(view)
    given = [("sources", name) for name in names_in(view, "sources")]
    files = dict(texts_of(view, [*([] if main is None else [("run", main)]), *given]))
    header = _header(view, files.get(main or "", ""), main)
    params = view.get("params")
    own = view.scoped() if metrics else view
    for name in ("output", "run", "command", "sources", "params", "requirements"):
        own.get(name)
    network = own.flag("network")
    config: dict[str, Json] = {
        "words": [*words],
        "python": main is not None,
        "files": told_files(files),
        "params": header.told(params if isinstance(params, dict) else {}),
        "output": (TASK_SCORES if metrics else product).name,
        "seed": own.integer("seed"),
        "network": network,
    }
    running = JobDraft(
        name=_PART if metrics else "",
        kind="script",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=_software(view),
        program=("-m", f"{_MODULE}.job_script"),
        view=own,
        config=config,
        inputs=view.inputs,
        produces=(TASK_SCORES if metrics else product).name,
        extra_identity={"files": {name: context.digest_of(name) for name in files}},
        contract={
            **({"network": True} if network else {}),
            **({"reward_range": range_of(own)} if metrics else {}),
        },
    )
    return (running, _measuring(view, main)) if metrics else (running,)


def _measuring(view: StageView, main: str | None) -> JobDraft:
    own = view.scoped()
    return JobDraft(
        kind="script",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=("-m", f"{_MODULE}.job_metrics"),
        view=own,
        config={
            "confidence": own.number("confidence"),
            "range": range_of(own),
            "name": PurePosixPath(main or "script").stem,
        },
        inputs={"scores": (f":{_PART}",)},
        produces=METRICS.name,
        extra_identity={"measured_by": PurePosixPath(main or "script").stem},
    )


def _words(view: StageView) -> tuple[list[str], str | None]:
    """What is started, and which file of it is a Python script."""
    run, command = view.get("run"), view.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    if isinstance(run, str) and words:
        view.refuse("command", "`run` says already what is started", fix="remove one of them")
    elif not words and not isinstance(run, str):
        view.refuse(
            "run",
            "script.run needs a program",
            fix="set run: <a Python file>, or command: [<words>]",
        )
    return ([], run) if isinstance(run, str) else (words, None)


def _header(view: StageView, text: str, main: str | None) -> ScriptHeader:
    try:
        return ScriptHeader() if main is None else read_script(text)
    except ScriptError as error:
        view.refuse("run", f"{main} line {error.line}: {error}", fix=error.fix)
        return ScriptHeader()


def _software(view: StageView) -> SoftwareEnvironment:
    """What the spec's own lock says, or what other light jobs run in."""
    name = view.get("requirements")
    if not isinstance(name, str):
        return LIGHT
    content = view.file(name)
    try:
        lock = "" if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        lock = ""
    if not lock:
        view.refuse(
            "requirements",
            f"there is no readable lock {name}",
            fix="give a file of pinned requirements; `agentc env hash` adds the hashes",
        )
        return LIGHT
    stem = PurePosixPath(name).stem
    return SoftwareEnvironment(name=f"script-{stem}", lock=lock, file=name)


BACKEND = StageBackend(
    id="script.run",
    kind="script",
    version=1,
    doc="Runs a Python file or a command of the user's own in a folder that holds nothing but its "
    "declared files, without a network unless the stage asks for one.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"offline"}),
)
