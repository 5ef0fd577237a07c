"""`agentc push STAGE REPOSITORY`: a checkpoint with a card of what it is, to a model hub.

The card is `agentc.published.model_card`; what is uploaded lies in a folder first, and `--to` alone
makes that. huggingface_hub uploads it, where it is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.cli.arguments import names_spec
from agentc.cli.choose_run import add_variant_arguments, choose_run
from agentc.cli.parser import add_store_argument
from agentc.cli.provenance import find_object, provenance_document
from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_STORE, EXIT_USAGE, CommandError
from agentc.program.artifact_files import METRICS_FILE, RUN_FILE, SCORED_FILE
from agentc.resources import install_command

if TYPE_CHECKING:
    from agentc.published.model_card import CardEvaluation, CardFacts
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.objects import StoredObject
    from agentc.store.run_history import PastRun

HELP = "push a checkpoint to a model hub, with a card of what it was made from and how it did"

_EPILOG = """\
  agentc push sft somebody/eto-textcraft --run specs/eto.yaml
  agentc push eto.2.dpo --run quickstart --to model    only the folder; nothing is uploaded

huggingface_hub has to be installed beside agentc to upload: `pip install
"/path/to/checkout[hub]"`. HF_TOKEN and HF_ENDPOINT mean what they mean to it; only it reads the
token, which is in no file. A repository that is made is private unless --public is given.
"""
_ENDINGS = frozenset({".json", ".safetensors", ".jinja", ".txt", ".model", ".py"})
"""Of files that a checkpoint is loaded from."""
_GIT_S = 30.0
_OF_THE_RUN = frozenset({RUN_FILE, SCORED_FILE})


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "name", metavar="OBJECT|STAGE", help="a checkpoint: its stage, or an object as sft/2c9237d0"
    )
    parser.add_argument("repository", nargs="?", metavar="OWNER/NAME", help="where to push it")
    parser.add_argument(
        "--run", metavar="NAME|SPEC", help="the experiment; default: the one run last"
    )
    add_variant_arguments(parser)
    add_store_argument(parser)
    parser.add_argument("--spec", type=Path, metavar="FILE", help="the spec, whose text is shown")
    parser.add_argument("--license", metavar="ID", help="for the card, such as apache-2.0")
    parser.add_argument("--public", action="store_true", help="make the repository for everybody")
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="write the folder here; must not exist yet"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the card and the files; nothing is uploaded"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0; 2 for a wrong command line; 3 when the hub refuses; 4 for a damaged store; 5 when there is
    no such checkpoint."""
    from agentc.published.model_card import model_card
    from agentc.store.paths import readable_store

    if arguments.repository is None and arguments.to is None and not arguments.dry_run:
        return _fail("name a repository, as OWNER/NAME, or a folder with --to", EXIT_USAGE)
    if arguments.to is not None and arguments.to.exists():
        return _fail(f"{arguments.to} is there already; name another folder", EXIT_USAGE)
    layout = readable_store(arguments.store)
    run = choose_run(layout, arguments.run, arguments)
    facts = _facts(arguments, layout, run)
    card = model_card(facts)
    model = facts.lineage.objects[0]
    files = _files(model)
    if arguments.dry_run:
        print(card)
        print("\n".join(["README.md", "provenance.json", *(path.name for path in files)]))
        return 0
    uploads = arguments.repository is not None
    with tempfile.TemporaryDirectory(prefix="agentc-push-") as temporary:
        folder = Path(temporary) / "model" if arguments.to is None else arguments.to
        _write(folder, card, provenance_document(facts.lineage, hosts=False), files)
        if arguments.to is not None:
            print(f"{folder}: {len(files)} files of {model.name}, README.md, provenance.json")
        return _upload(folder, arguments) if uploads else 0


def _facts(arguments: argparse.Namespace, layout: StoreLayout, run: PastRun) -> CardFacts:
    """What the card says. Raises CommandError."""
    from agentc.plan.work import object_of, read_plan
    from agentc.published.model_card import CardFacts
    from agentc.run.claims import find_verdicts
    from agentc.store.objects import trace
    from agentc.store.paths import value_text

    name, complaint = find_object(arguments, layout)
    if name is None:
        raise _PushError(complaint, EXIT_NOT_FOUND)
    try:
        lineage = trace(layout, name)
        plan = read_plan(run.folder.last_plan)
    except FileNotFoundError:
        raise _PushError(f"{arguments.name} ({name}) has no result yet", EXIT_NOT_FOUND) from None
    except (OSError, ValueError) as error:
        raise _PushError(f"the store is damaged: {error}", EXIT_STORE) from error
    model = lineage.objects[0]
    if not any(path.suffix == ".safetensors" for path in _files(model)):
        said = f"{model.name} is no checkpoint but {model.manifest.get('type')}"
        raise _PushError(f"{said}; name a stage that makes a model", EXIT_NOT_FOUND)
    typed = Path(arguments.run) if arguments.run and names_spec(arguments.run) else arguments.spec
    file, sha256 = str(plan["spec"]["file"]), str(plan["spec"]["sha256"])
    spec = _spec_text(typed, sha256)
    called = [str(job["id"]) for job in plan["jobs"] if object_of(job) == name]
    stage = next(iter(called), str(model.manifest["id"]))
    variant = run.variant
    scale = () if variant.scale is None else ("--scale", variant.scale)
    params = (word for n, v in variant.chosen.items() for word in ("-p", f"{n}={value_text(v)}"))
    return CardFacts(
        repository=arguments.repository
        or re.sub(r"[^A-Za-z0-9._-]+", "-", f"{plan['name']}-{stage}"),
        stage=stage,
        lineage=lineage,
        evaluations=_evaluations(plan, layout, name),
        experiment=plan["experiment"],
        rerun=("agentc", "run", file, *scale, *params, "--until", stage),
        spec_name=file,
        spec_sha256=sha256,
        verdicts=find_verdicts(plan, layout),
        spec=spec,
        commit=None if spec is None or typed is None else _commit(typed),
        license=arguments.license,
    )


class _PushError(CommandError):
    """Nothing was pushed; the message says why."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


def _evaluations(
    plan: Mapping[str, Any], layout: StoreLayout, model: str
) -> tuple[CardEvaluation, ...]:
    """Those of the run whose rollouts were by the model, and that have a result."""
    from agentc.plan.work import object_of
    from agentc.published.model_card import CardEvaluation

    jobs = {object_of(job): job for job in plan["jobs"]}
    found = []
    for name, job in jobs.items():
        rollouts = [jobs[each] for each in job["inputs"].get("rollouts", ()) if each in jobs]
        by_it = any(model in rollout["inputs"].get("model", ()) for rollout in rollouts)
        if job["produces"] == "Metrics" and by_it and layout.is_published(name):
            metrics = json.loads((layout.data(name) / METRICS_FILE).read_text("utf-8"))
            found.append(CardEvaluation(stage=str(job["id"]), metrics=metrics))
    return tuple(found)


def _spec_text(path: Path | None, sha256: str) -> str | None:
    """The text of the spec that was run. Raises CommandError for another one."""
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _PushError(f"cannot read {path}: {error.strerror}", EXIT_USAGE) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _PushError(
            f"{path} is not the spec that was run any more (sha256 {sha256[:12]}...); check out"
            " the one that was, or name the run instead",
            EXIT_USAGE,
        )
    return data.decode("utf-8")


def _commit(spec: Path) -> str | None:
    """The commit that the spec is in as it is; None outside of Git, or where it was changed."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words, "--", spec.name],
            cwd=spec.resolve().parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_S,
        ).stdout.strip()

    try:
        commit, changes = git("log", "-1", "--format=%H"), git("status", "--porcelain")
    except (OSError, subprocess.SubprocessError):
        return None
    return None if changes or not commit else commit


def _files(model: StoredObject) -> list[Path]:
    """What a checkpoint is loaded from; a run's curves and optimiser stay in the store."""
    return sorted(
        path
        for path in (model.path / "data").glob("*")
        if path.is_file() and path.suffix in _ENDINGS and path.name not in _OF_THE_RUN
    )


def _write(folder: Path, card: str, provenance: Mapping[str, Any], files: list[Path]) -> None:
    try:
        folder.mkdir(parents=True)
        for path in files:
            shutil.copyfile(path, folder / path.name)
        (folder / "README.md").write_text(card, encoding="utf-8")
        text = json.dumps(provenance, indent=2, ensure_ascii=False)
        (folder / "provenance.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise _PushError(f"cannot write {folder}: {error.strerror}", EXIT_USAGE) from error


def _upload(folder: Path, arguments: argparse.Namespace) -> int:
    """By huggingface_hub, in one commit."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        return _fail(
            f"huggingface_hub is not installed: `{install_command('hub')}`, or write the folder "
            "with --to and upload it by other means",
            EXIT_USAGE,
        )
    hub = HfApi(library_name="agentc")
    repository = str(arguments.repository)
    try:
        hub.create_repo(repository, private=not arguments.public, exist_ok=True)
        done = hub.upload_folder(
            repo_id=repository, folder_path=folder, commit_message=f"{arguments.name} by agentc"
        )
    except (HfHubHTTPError, OSError, ValueError) as error:
        return _fail(f"{repository} was not pushed: {error}", EXIT_FAILED)
    print(f"{repository}: {done.commit_url}")
    return 0


def _fail(message: str, code: int) -> int:
    print(f"agentc: {message}", file=sys.stderr)
    return code
