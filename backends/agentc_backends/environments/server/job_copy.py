"""Takes files of a data set over as they were published: `python -m` of this, their names, FROM and
OUT.

`agentc data fetch` runs it, and checks what it left by its hashes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main(*words: str) -> int:
    """The exit status."""
    *names, source, out = words
    for name in names:
        try:
            shutil.copyfile(Path(source, name), Path(out, name))
        except OSError as error:
            print(f"{source} holds no {name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
