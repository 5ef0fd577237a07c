"""What the tab key gets: main() comes here where a shell asks (`agentc completion` sets that up).

argcomplete reads the line and the options of our parser; the words that only agentc knows are those
of `completion_words.py`. Nothing of this is imported when a command runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence

import argcomplete
from argcomplete.finders import safe_actions
from argcomplete.lexers import split_line

from agentc.cli import COMMANDS
from agentc.cli.arguments import Param
from agentc.cli.completion_words import words_for
from agentc.cli.parser import OnceAction


def complete(
    parser_of: Callable[[Sequence[str]], argparse.ArgumentParser],
    answer: Callable[..., None] = argcomplete.autocomplete,
) -> None:
    """Write what may stand at the cursor to where the shell reads it; ends the process there."""
    line, point = os.environ["COMP_LINE"], int(os.environ["COMP_POINT"])
    _, _, _, before, _ = split_line(line, point)
    # The program may stand behind an interpreter: `python -m agentc`.
    words = before[int(os.environ["_ARGCOMPLETE"]) :]
    typed = next((word for word in words if not word.startswith("-")), None)
    names = (typed,) if typed in COMMANDS else COMMANDS
    safe_actions.update((Param, OnceAction))
    answer(
        parser_of([name for name in names if name is not None]),
        always_complete_options=False,
        default_completer=_Words(),
    )


class _Words(argcomplete.completers.BaseCompleter):
    """Asked for each argument that has no `choices`."""

    def __call__(
        self,
        *,
        prefix: str,
        action: argparse.Action,
        parser: argparse.ArgumentParser,
        parsed_args: argparse.Namespace,
    ) -> Mapping[str, str]:
        """Words with what they mean; files have no meaning."""
        found = words_for(parser.prog.split()[1:], action, parsed_args, prefix)
        files = {}
        if found.files is not None:
            listed = argcomplete.completers.FilesCompleter(found.files)
            files = dict.fromkeys(
                listed(prefix=prefix, action=action, parser=parser, parsed_args=parsed_args), ""
            )
        return {**found.words, **files}
