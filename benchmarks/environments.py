"""Each environment beside its upstream, in one run: `python -m benchmarks.environments [NAME ...]`.

ScienceWorld's and jericho's packages come with our software stacks. The others need what
is not ours to ship, named by environment variables; what is not named is said and left out. Each
program prints its own table. Neighbours: `sciworld.py`, `detective.py`, `textcraft.py`,
`webshop.py`, `alfworld.py`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentc.runtime.software.job_software import ensure_software
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout

ROOT = Path(__file__).resolve().parents[1]
_LOCKS = ROOT / "backends" / "agentc_backends" / "software"


@dataclass(frozen=True, slots=True)
class Side:
    """How an environment's program is run; `needs` are variables of `arguments`."""

    lock: Path | None
    arguments: tuple[str, ...] = ()
    needs: tuple[tuple[str, str], ...] = ()


SIDES: Mapping[str, Side] = {
    "textcraft": Side(None, (), (("AGENTC_AGENTGYM", "a checkout of WooooDyy/AgentGym"),)),
    "sciworld": Side(_LOCKS / "sciworld.lock", ("--episodes", "0")),
    "detective": Side(
        _LOCKS / "jericho.lock",
        ("$AGENTC_DETECTIVE", "--episodes", "5"),
        (("AGENTC_DETECTIVE", "the game's file (`agentc data fetch detective`)"),),
    ),
    "webshop": Side(
        ROOT / "benchmarks" / "webshop_upstream" / "upstream.lock",
        (),
        (
            ("AGENTC_WEBSHOP", "a checkout of princeton-nlp/WebShop"),
            ("AGENTC_WEBSHOP_DATA", "its data (`agentc data fetch webshop-1000`)"),
        ),
    ),
    "alfworld": Side(
        None,
        ("--games", "$AGENTC_ALFWORLD", "--rules", "$AGENTC_ALFWORLD_RULES", "--count", "4",
         "--steps", "15"),
        (
            ("AGENTC_ALFWORLD", "packed games (`agentc data fetch alfworld`)"),
            ("AGENTC_ALFWORLD_RULES", "a released game.tw-pddl, for its rules"),
        ),
    ),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every program that could be run ended well."""
    parser = argparse.ArgumentParser(prog="benchmarks.environments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SIDES))
    names = parser.parse_args(arguments).names or list(SIDES)
    if unknown := [name for name in names if name not in SIDES]:
        parser.error(f"no such environment: {', '.join(unknown)}; there are {', '.join(SIDES)}")
    failed = False
    for name in names:
        side = SIDES[name]
        print(f"\n## {name}", flush=True)
        missing = [f"{variable} ({what})" for variable, what in side.needs
                   if not os.environ.get(variable)]  # fmt: skip
        if missing:
            print(f"left out: set {' and '.join(missing)}")
            continue
        program = [str(_python(side.lock)), "-m", f"benchmarks.{name}"]
        paths = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends", "."))
        ended = subprocess.run(
            [*program, *(os.path.expandvars(each) for each in side.arguments)],
            env={**os.environ, "PYTHONPATH": paths},
            check=False,
        )
        failed = failed or ended.returncode != 0
    return 1 if failed else 0


def _python(lock: Path | None) -> Path:
    if lock is None:
        return Path(sys.executable)
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    text = lock.read_text("utf-8")
    store = StoreLayout(ROOT / ".agentc" / "store")
    directory, _ = ensure_software(store, lock_digest(text), text, print)
    return directory / "bin" / "python"


if __name__ == "__main__":
    sys.exit(main())
