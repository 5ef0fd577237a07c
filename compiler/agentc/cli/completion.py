"""`agentc dev completion SHELL`: what makes a shell ask agentc at the tab key (`completing.py`)."""

from __future__ import annotations

import argparse

from agentc.exit_codes import EXIT_DONE

HELP = "print what completes agentc's commands, options and names in bash, zsh or fish"

_EPILOG = """\
Once, for every new shell:
  bash  agentc dev completion bash > ~/.local/share/bash-completion/completions/agentc
  zsh   agentc dev completion zsh > FOLDER/_agentc     (FOLDER: one of $fpath, before compinit)
  fish  agentc dev completion fish > ~/.config/fish/completions/agentc.fish

Only in this shell: `eval "$(agentc dev completion bash)"` (zsh: after compinit), or
`agentc dev completion fish | source`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that it is for")


def execute(arguments: argparse.Namespace) -> int:
    """0, with the shell's code on standard output."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["agentc"], shell=arguments.shell).strip())
    return EXIT_DONE
