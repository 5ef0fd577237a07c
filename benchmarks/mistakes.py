"""`python -m benchmarks.mistakes`: what agentc and its rivals say to the same wrong settings.

Every tool first gets a right configuration, which it must accept to the end; then one mistake at a
time. The tools, their configurations and the edits are in `wrong_settings/`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.rivals import program
from benchmarks.wrong_settings import FOLDER, MISTAKES, TOOLS, Edit, Tool

LIMIT_S = 600
BELOW = "<!-- written by `python -m benchmarks.mistakes --write` from here on -->"
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "AXOLOTL_DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "true",
    "TOKENIZERS_PARALLELISM": "false",
    "NO_COLOR": "1",
    "COLUMNS": "200",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a tool took a mistake: the moment at which a command failed (None: none did), that
    command, its seconds, and what it said."""

    tool: str
    mistake: str
    moment: str | None
    command: str
    wall_s: float
    said: str


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the answers on standard output; 1 when a tool refuses what is right."""
    parser = argparse.ArgumentParser(prog="benchmarks.mistakes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TOOL", help="such as dvc; default: all")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep all output there")
    parser.add_argument(
        "--answers", type=Path, metavar="FILE", help="add to answers of earlier runs, kept there"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the end of a document")
    options = parser.parse_args(arguments)
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory(prefix="agentc-mistakes-") as folder:
        logs = options.logs or Path(folder, "logs")
        logs.mkdir(parents=True, exist_ok=True)
        for tool in TOOLS:
            name = tool.name.split()[0].rstrip(",").lower()
            if options.names and name not in options.names:
                continue
            place = Path(folder, name)
            refused = try_mistake(tool, None, "control", place, logs)
            if refused.moment is not None:
                print(f"{tool.name} refuses what is right:\n{refused.said}", file=sys.stderr)
                return 1
            for mistake, edit in tool.edits.items():
                answers.append(try_mistake(tool, edit, mistake, place, logs))
                found = answers[-1]
                print(f"{found.tool}, {mistake}: {found.moment or 'never'}", file=sys.stderr)
    if options.answers is not None:
        answers = _with_earlier(answers, options.answers)
    text = report(answers)
    print(text)
    if options.write is not None:
        kept = options.write.read_text(encoding="utf-8").partition(BELOW)[0]
        options.write.write_text(f"{kept}{BELOW}\n\n{text}\n", encoding="utf-8")
    return 0


def try_mistake(tool: Tool, edit: Edit | None, mistake: str, place: Path, logs: Path) -> Answer:
    """Run the tool's commands one after the other until one fails."""
    folder = place / mistake / "work"
    _lay_out(tool, folder)
    if edit is not None:
        path = folder / edit.file
        text = path.read_text(encoding="utf-8")
        assert text.count(edit.old) == 1, (tool.name, mistake, text.count(edit.old))
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
    said = ""
    command = ""
    wall = 0.0
    programs = _programs(tool)
    for moment, words in tool.steps:
        argv = [word.replace("{bin}", programs) for word in words]
        command = " ".join(word.removeprefix("{bin}/") for word in words)
        variables = {**os.environ, **_OFFLINE, "PATH": f"{programs}:{os.environ['PATH']}"}
        began = time.perf_counter()
        ended = subprocess.run(
            argv, cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT_S
        )
        wall = time.perf_counter() - began
        output = ended.stdout + ended.stderr
        log = logs / f"{place.name}-{mistake}-{argv[1].strip('-')}.log"
        log.write_text(output, encoding="utf-8")
        output = output.replace(f"{folder}/", "")
        said = said or _quote(edit, output)
        if ended.returncode != 0:
            said = said or "\n".join(output.splitlines()[-8:])
            return Answer(
                tool=tool.name,
                mistake=mistake,
                moment=moment,
                command=command,
                wall_s=wall,
                said=said,
            )
    return Answer(
        tool=tool.name, mistake=mistake, moment=None, command=command, wall_s=wall, said=said
    )


def report(answers: Sequence[Answer]) -> str:
    """A table of moments, then every answer word for word."""
    tools = list(dict.fromkeys(answer.tool for answer in answers))
    found = {(answer.tool, answer.mistake): answer for answer in answers}
    heads = [title.split(":")[0] for title in MISTAKES.values()]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    for tool in tools:
        cells = [_cell(found[tool, mistake]) for mistake in MISTAKES]
        lines.append(f"| {tool} | {' | '.join(cells)} |")
    for tool in tools:
        lines += ["", f"### {tool}"]
        for mistake, title in MISTAKES.items():
            answer = found[tool, mistake]
            when = answer.moment or "never"
            lines += ["", f"**{title}**: {when}, `{answer.command}`, {answer.wall_s:.1f} s"]
            lines += ["```", *answer.said.splitlines(), "```"] if answer.said else []
    return "\n".join(line.rstrip() for line in lines)


def _with_earlier(answers: Sequence[Answer], path: Path) -> list[Answer]:
    """All answers in the order of the tools, those of now in place of earlier ones."""
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    found = {(one["tool"], one["mistake"]): Answer(**one) for one in earlier}
    found |= {(one.tool, one.mistake): one for one in answers}
    names = [tool.name for tool in TOOLS]
    kept = sorted(found.values(), key=lambda one: names.index(one.tool))
    text = json.dumps([asdict(one) for one in kept], indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return kept


def _cell(answer: Answer) -> str:
    if answer.moment is not None:
        return answer.moment
    return "a remark, then it goes on" if answer.said else "never"


def _quote(edit: Edit | None, output: str) -> str:
    found = re.search(edit.quote, output) if edit is not None and edit.quote else None
    return "" if found is None else found[0].strip()


def _programs(tool: Tool) -> str:
    if tool.rival is None:
        return str(Path(sys.executable).parent)
    return str(Path(program(tool.rival, "python")).parent)


def _lay_out(tool: Tool, folder: Path) -> None:
    """The tool's files, three rows of data, and for a trainer a tiny model."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "train.jsonl").write_text("{}\n" * 3, encoding="utf-8")
    for name in tool.files:
        target = folder.parent if name == "stage.py" else folder
        shutil.copy(FOLDER / name, target)
    if tool.rival is not None and tool.rival.name == "dvc":
        argv = [program(tool.rival, "dvc"), "init", "--no-scm", "-q"]
        subprocess.run(argv, cwd=folder, check=True, env={**os.environ, **_OFFLINE})
    if tool.tiny_model:
        tiny = folder.parent.parent / "tiny"
        if not tiny.exists():
            python, script = f"{_programs(tool)}/python", FOLDER / "trainers" / "make_tiny.py"
            argv = [python, str(script), str(tiny)]
            subprocess.run(argv, check=True, capture_output=True, env={**os.environ, **_OFFLINE})
        shutil.copytree(tiny, folder / "tiny")


if __name__ == "__main__":
    sys.exit(main())
