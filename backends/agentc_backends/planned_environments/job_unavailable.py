"""Stands where the server of a declared environment will be: says so and fails."""

from __future__ import annotations

import sys


def main() -> int:
    """Exit with 1, naming the environment."""
    name = sys.argv[1] if len(sys.argv) > 1 else "this environment"
    print(f"{name} has no server in this release of agentc", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
