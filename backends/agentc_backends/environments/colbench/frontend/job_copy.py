"""Takes the stylesheet over as it was published: `python -m` of this, FROM and OUT.

`agentc data fetch tailwind` runs it, and checks what it left by its hash.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from agentc_backends.environments.colbench.frontend.tailwind import FILE


def main(source: str, out: str) -> int:
    try:
        shutil.copyfile(Path(source, FILE), Path(out, FILE))
    except OSError as error:
        print(f"{source} holds no {FILE}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
