"""What a job program sees: its job file, its options, its progress line and its facts.

A program is started as `python -m <module> JOB.json` by `agentc.runtime.job`, writes its artifact
into `job.out`, and exits 0. Standard library only, Python 3.8+.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Type, TypeVar

from agentc.program.import_report import report_at_exit
from agentc.program.settings import declared_in, settings_from

Settings = TypeVar("Settings")

DRY_RUN = "AGENTC_DRY_RUN"
"""`config` in this variable ends a program where it has read its config, before it works: so the
conformance kit finds out whether it reads all of it. No job of a run ever has it."""

_OTHER_VERSION = "if another version of agentc made the plan, compile the spec again"


class JobConfig:
    """The job's `config`, read through a record: `assert_all_read` fails on a key that no code
    read, so that nothing the compiler emits is ignored in silence."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._read: Set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        if name not in self._values:
            raise RuntimeError("the plan lacks the setting %s; %s" % (name, _OTHER_VERSION))
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A setting that not every backend of the kind has."""
        self._read.add(name)
        return self._values.get(name, default)

    def read_as(self, settings: Type[Settings], at: str = "") -> Settings:
        """An instance of a dataclass of settings (`agentc.program.settings`), of the keys that bear
        the names of its fields: keys of this config, or of the mapping `at` in it, all of which
        are read then. A key that is not there leaves a field at its default. Raises RuntimeError
        where the plan does not fit the dataclass."""
        values = self[at] if at else self._values
        if not at:
            names = [each.name for each in declared_in(settings) if each.name in values]
            values = {name: self[name] for name in names}
        try:
            return settings_from(settings, values)
        except ValueError as error:
            raise RuntimeError("%s; %s" % (error, _OTHER_VERSION)) from None

    def assert_all_read(self) -> None:
        """Raise RuntimeError naming each key of the config that was never read."""
        unread = sorted(set(self._values) - self._read)
        if unread:
            names = ", ".join(unread)
            raise RuntimeError("the job program ignored: %s; %s" % (names, _OTHER_VERSION))
        if os.environ.get(DRY_RUN) == "config":
            print("%s: the whole config was read" % DRY_RUN)
            raise SystemExit(0)


class Job:
    """One running job, as described by its job file (see docs/design/contracts.md)."""

    def __init__(self, path: Path) -> None:
        self.spec: Dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        self.path = path
        self.id: str = self.spec["id"]
        self.key: str = self.spec["key"]
        self.config = JobConfig(self.spec["config"])
        self.placement: Dict[str, Any] = self.spec["placement"]
        self.out = Path(self.spec["out"])
        self.work = Path(self.spec["work"])
        self.logs = Path(self.spec["logs"])
        self.leases: Dict[str, Dict[str, Any]] = self.spec["leases"]
        self.stop_by: Optional[float] = self.spec.get("stop_by")
        self.gpus: int = int(self.spec.get("gpus") or 0)
        self._line: Dict[str, Any] = {}
        self._facts: Dict[str, Any] = {}
        self._warnings: List[str] = []
        self._facts_path = Path(self.spec["facts"])
        self._progress_path = Path(self.spec["progress"])
        self._last_progress = 0.0
        self._started = time.time()
        self._before: Optional[float] = None

    def inputs(self, role: str) -> List[Path]:
        """Data directories of the inputs of a role, in the order of the spec."""
        return [Path(p) for p in self.spec["inputs"].get(role, [])]

    def input(self, role: str) -> Path:
        """The single data directory of a role. Raises ValueError when there is not just one."""
        found = self.inputs(role)
        if len(found) != 1:
            raise ValueError("role %s has %d inputs, not one" % (role, len(found)))
        return found[0]

    def progress(
        self,
        done: float,
        total: Optional[float],
        unit: str,
        force: bool = False,
        **numbers: float,
    ) -> None:
        """Publish a progress line, at most twice a second: `done` of `total` `unit` ("rows",
        "episodes", "steps"), plus any of loss, reward, tokens_per_s, rows_per_s, ..."""
        now = time.time()
        finished = total is not None and done >= total
        self._line = {
            "done": done,
            "total": total,
            "unit": unit,
            "time": now,
            "started": self._started,
            "numbers": {k: v for k, v in numbers.items() if v is not None},
            **({} if self._before is None else {"before": self._before}),
            **({"warnings": self._warnings} if self._warnings else {}),
        }
        if not force and not finished and now - self._last_progress < 0.5:
            return
        self._last_progress = now
        write_json(self._progress_path, self._line)

    def done_before(self, done: float) -> None:
        """Say how much was done when this program began: what it adds to that is its rate."""
        self._before = done

    def time_left(self) -> Optional[float]:
        """Seconds until the program must have stopped; None where no time limit is known."""
        return None if self.stop_by is None else self.stop_by - time.time()

    def out_of_time(self) -> int:
        """Say that the program stops because of `stop_by`, with all its work saved in `work` (or in
        `out`, where the job resumes). Nothing may follow but the exit, with the status returned."""
        write_json(self._progress_path, {**self._line, "out_of_time": True})
        return os.EX_TEMPFAIL

    def warn(self, text: str) -> None:
        """Tell people of what does not end the job: in its log, beside its progress while it runs,
        and for good among its facts, as `warnings`."""
        print("warning: " + text, file=sys.stderr, flush=True)
        self._warnings.append(text)
        self.facts(warnings=self._warnings)

    def facts(self, **facts: Any) -> None:
        """Record facts for the manifest: tokens, counts, truncations, versions, ..."""
        self._facts.update(facts)
        write_json(self._facts_path, self._facts)


def load_job(argv: Optional[List[str]] = None) -> Job:
    """The job named by the last command-line word. What this process imports from here on is
    recorded in the manifest when it ends."""
    words = sys.argv[1:] if argv is None else argv
    report_at_exit()
    return Job(Path(words[-1]))


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically (a reader sees the old text or the new one, never a part)."""
    temporary = path.with_name(path.name + ".%d.tmp" % os.getpid())
    temporary.write_text(json.dumps(value, ensure_ascii=False, sort_keys=True), encoding="utf-8")
    temporary.replace(path)


def read_json(path: Path) -> Dict[str, Any]:
    """An object of JSON that may be missing; {} where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def iterate_rows(path: Path) -> Iterator[Dict[str, Any]]:
    """The rows of a JSONL file, one at a time."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def read_rows(path: Path) -> List[Dict[str, Any]]:
    """All rows of a JSONL file."""
    return list(iterate_rows(path))


def write_rows(path: Path, rows: Iterable[Dict[str, Any]]) -> None:
    """Write a JSONL file with one row on each line."""
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")


_KEPT = {"served": "identity", "facts": "facts"}
"""By the names of manifests, what is kept of an environment's account (its /meta)."""


class OtherEnvironmentError(Exception):
    """An environment is not the one that was planned; the message says in what."""


def admit_inside(lease: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """For the program that has opened the environment of such a lease, by the lease in its job's
    file: leaves what the manifest keeps of its account. Raises OtherEnvironmentError."""
    inside = lease["inside"]
    check_planned(inside["expect"], meta)
    write_json(Path(inside["account"]), account_facts(meta))


def check_planned(expect: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Hold an environment's account against what its lease expects; facts are compared with the
    `identity` in it, or with the account itself. Raises OtherEnvironmentError, a line for each."""
    identity = meta.get("identity")
    known = {**meta, **(identity if isinstance(identity, dict) else {})}
    known["identity"] = identity
    differing = [
        "  %s: expected %s, found %s" % (name, shortened(value), shortened(known.get(name)))
        for name, value in sorted(expect.items())
        if known.get(name) != value
    ]
    if differing:
        raise OtherEnvironmentError("is not the one that was planned:\n" + "\n".join(differing))


def account_facts(meta: Mapping[str, Any]) -> Dict[str, Any]:
    """What manifests keep of an environment's account, by their names for it: what it is, and facts
    that decide nothing."""
    found = {name: meta.get(told) for name, told in _KEPT.items()}
    return {name: part for name, part in found.items() if part and isinstance(part, dict)}


def recorded_account(record: Mapping[str, Any]) -> Dict[str, Any]:
    """The same of a record that holds it beside other things."""
    return {name: record[name] for name in _KEPT if name in record}


def shortened(value: Any) -> str:
    """A JSON value in a message."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "(nested too deeply to be shown)"
    return text if len(text) <= 200 else text[:197] + "..."
