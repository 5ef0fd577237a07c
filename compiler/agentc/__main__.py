"""`python -m agentc COMMAND ...`: the command `agentc`, for where its script is not on the PATH."""

import sys

from agentc.cli import main

if __name__ == "__main__":
    sys.exit(main())
