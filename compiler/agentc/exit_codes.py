"""Exit codes of `agentc`, as docs/design/contracts.md, section 8, has them. Errors that end a
command bear one. Imports nothing."""

EXIT_DONE = 0
EXIT_SPEC = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_STORE = 4
EXIT_NOT_FOUND = 5
EXIT_CLAIM = 6
EXIT_PREFLIGHT = 7
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


class CommandError(Exception):
    """Ends a command with `exit_code`; its text is for people, empty where they know the reason."""

    exit_code = EXIT_USAGE
