"""`python -m tests.mutants`: puts each seeded fault into a copy of the checkout, and reports which
of them the tests named for it do not see. Exit status 1 unless all are caught."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.fault import Fault, FaultError, read_faults
from tests.mutants.trial import Copy, Interpreters, Verdict

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    options = _options().parse_args(arguments)
    try:
        faults = _chosen(read_faults(), options.only)
    except FaultError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1
    interpreters = Interpreters(usual=Path(sys.executable), torch=options.torch_python)
    with tempfile.TemporaryDirectory(prefix="agentc-mutants-") as folder:
        copies = [
            Copy(REPOSITORY, Path(folder, str(number)), interpreters)
            for number in range(min(options.workers, len(faults)))
        ]
        tests = list(dict.fromkeys(test for fault in faults for test in fault.tests))
        print(f"{len(faults)} faults; first the {len(tests)} tests without any", flush=True)
        failed = copies[0].passes_without(tests)
        if failed:
            print(f"{failed}\nmutants: these tests fail without a fault", file=sys.stderr)
            return 1
        verdicts = _try_all(faults, copies)
    missed = [verdict for verdict in verdicts if verdict.word != "caught"]
    for verdict in missed:
        print(f"\n{verdict.fault.id} ({verdict.fault.file}): {verdict.fault.breaks}")
        print(f"  {verdict.word}: {verdict.why}")
    print(f"\n{len(verdicts) - len(missed)} of {len(verdicts)} faults caught")
    return 1 if missed else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ID", help="these faults alone")
    parser.add_argument("--workers", type=int, default=1, help="copies that are tried at once")
    parser.add_argument(
        "--torch-python",
        type=Path,
        default=REPOSITORY / ".agentc/torch-tests/bin/python",
        help="the interpreter of tests/torch",
    )
    return parser


def _chosen(faults: Sequence[Fault], only: Sequence[str] | None) -> list[Fault]:
    known = {fault.id: fault for fault in faults}
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise FaultError(f"no fault {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in only] if only else list(faults)


def _try_all(faults: Sequence[Fault], copies: Sequence[Copy]) -> list[Verdict]:
    """In the order of the list; each is told as soon as it is known."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def try_one(fault: Fault) -> Verdict:
        copy = free.get()
        try:
            verdict = copy.try_out(fault)
        finally:
            free.put(copy)
        print(f"  {verdict.word:<12} {verdict.seconds:6.1f} s  {fault.id}", flush=True)
        return verdict

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(try_one, faults))


if __name__ == "__main__":
    raise SystemExit(main())
