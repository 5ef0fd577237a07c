"""A file that a verb writes for its user, who may have one of that name: `init`, `import`."""

from __future__ import annotations

import sys
from pathlib import Path


def write_new_file(target: Path, text: str) -> bool:
    """Whether it was written; else standard error says why. What is there already stays."""
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        print(f"agentc: {target} is there already; name another FILE", file=sys.stderr)
        return False
    except OSError as error:
        print(f"agentc: cannot write {target}: {error.strerror}", file=sys.stderr)
        return False
    return True
