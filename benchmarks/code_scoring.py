"""Scores of answers to programming tasks, ours beside a plain loop's, for results and for time.

`python -m benchmarks.code_scoring [--tasks FILE] [--limit N] [--rounds N] [--packages FOLDER]`. The
plain loop does what the released evaluator of ColBench does, in our own words: for each test it
executes reference and answer in its own process and compares what a call of each gives, with an
alarm after a second. Ours is the judge of env.colbench_backend, with all that it does for an answer
but the episode: a new one for each turn, so that it knows no reference and no verdict, whose
nurseries have started, as a server's have before its first answer. Answers are each task's
reference, the same with its first number one larger, and an empty function, each with a comment of
its own so that it is no text that the judge knows: all three of each task, and one of each task, of
the kinds by turns. Everything is taken by turns, `--rounds` times, and medians shown. Processor
time is that of all processes, the boxes' too.

`--at-once 1 2 3`: so many threads ask the judge. `--times` has each task come so often, its
reference anew. `--branches` makes each reference so many lines longer, `--alone` adds a box for
each answer, without a judge, `--episodes` the environment's expert, `--sleeping` how long
an answer waits beside so many that sleep. Boxes have the standard library and what is in
`--packages`: an answer that imports something else fails there, and not in the loop.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

from agentc.runtime.sandbox.boxes import CodeBox, boxed_interpreter
from agentc.runtime.sandbox.probe import probe
from agentc_backends.environments.code_tests.suite import code_of, score, suite_of, verdicts
from agentc_backends.environments.colbench.invented import invent
from agentc_backends.environments.colbench.job_serve import open_world
from agentc_backends.environments.colbench.judging import AnswerJudge, open_judge
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, read_tasks

_SECONDS = 1
Case = tuple[CodeTask, tuple[str, ...]]
Play = Callable[[], list[tuple[float, ...]]]
Way = Callable[[], AbstractContextManager[Play]]


_LOOP = "the plain loop, in its own process"


class Timed(NamedTuple):
    """Scores in order, answers a second, seconds of processors for one."""

    scores: list[float]
    rate: float
    spent: float


class _LateError(Exception):
    """The alarm rang."""


def main() -> None:
    """Prints a table in Markdown, and the answers that are scored differently."""
    parser = argparse.ArgumentParser(prog="benchmarks.code_scoring", description=__doc__)
    parser.add_argument("--tasks", type=Path, help="a JSONL file; without it they are invented")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--times", type=int, default=1, help="how often each task comes")
    parser.add_argument("--branches", type=int, default=0, help="so many more lines of a reference")
    parser.add_argument("--alone", action="store_true", help="a box for each answer as well")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 2], help="threads that ask")
    parser.add_argument("--packages", help="a folder that boxes import from, such as numpy's")
    parser.add_argument("--episodes", type=int, default=0, help="so many tasks of the environment")
    parser.add_argument("--sleeping", type=int, default=0, help="so many answers that sleep")
    options = parser.parse_args()
    if options.sleeping:
        _sleeping(options.sleeping)
        return
    tasks = [_longer(task, options.branches) for task in _tasks(options.tasks, options.limit)]
    tasks = [
        replace(task, id=f"{task.id} {turn}") for turn in range(options.times) for task in tasks
    ]
    boxes = []
    for each in probe(boxed_interpreter(packages=(options.packages,) if options.packages else ())):
        if each.box is None:
            print(f"no {each.kind}: {each.reason}")
        else:
            boxes.append(each.box)
    for cases in ([(task, answers_of(task)) for task in tasks], one_of_each(tasks)):
        _compare(cases, boxes, options.at_once, options.rounds, alone=options.alone)
    if options.episodes:
        _episodes(options.episodes)


def answers_of(task: CodeTask) -> tuple[str, ...]:
    """A right one, one that may be wrong, a wrong one, none of them known by its text."""
    name = re.findall(r"def (\w+)", task.reference)[-1]
    codes = (task.reference, _changed(task.reference), f"def {name}(*_, **__): pass")
    return tuple(f"{code}\n# answer {number}" for number, code in enumerate(codes))


def one_of_each(tasks: Sequence[CodeTask]) -> list[Case]:
    """One answer to each task: a right one, one that may be wrong, a wrong one, and so on."""
    return [(task, (answers_of(task)[number % 3],)) for number, task in enumerate(tasks)]


def judged_scores(
    judge: AnswerJudge, at_once: int, cases: Sequence[Case]
) -> list[tuple[float, ...]]:
    """By the environment's judge."""

    def scored(case: Case) -> tuple[float, ...]:
        task, answers = case
        return tuple(score(judge.verdicts(task, answer)) for answer in answers)

    with ThreadPoolExecutor(at_once) as pool:
        return [*pool.map(scored, cases)]


def plain_scores(case: Case) -> tuple[float, ...]:
    """The share of tests that each answer passes, by the plain loop."""
    task, answers = case
    return tuple(
        sum(_passes(task.reference, code_of(answer, "published"), call) for call in task.calls)
        / len(task.calls)
        for answer in answers
    )


def boxed_scores(box: CodeBox, case: Case) -> tuple[float, ...]:
    """The same in a box for each, which takes the reference's values once."""
    task, answers = case
    suite = suite_of(box, task.reference, task.calls, namespace="published")
    return tuple(score(verdicts(box, suite, answer)) for answer in answers)


def _compare(
    cases: Sequence[Case],
    boxes: Sequence[CodeBox],
    at_once: Sequence[int],
    rounds: int,
    alone: bool,
) -> None:
    """Prints a table of the loop and each box."""
    ways: dict[str, Way] = {_LOOP: lambda: nullcontext(lambda: [*map(plain_scores, cases)])}
    for box in boxes:
        for number in at_once:
            ways[f"{box.kind}, judge, {number} at once"] = partial(_judged, box, number, cases)
            if alone:
                ways[f"{box.kind}, a box for each, {number} at once"] = partial(
                    _alone, box, number, cases
                )
    answers = sum(len(answers) for _, answers in cases)
    print(f"{len(cases)} tasks, {answers} answers, {rounds} times by turns")
    _table([{name: _timed(way) for name, way in ways.items()} for _ in range(rounds)])


@contextlib.contextmanager
def _judged(box: CodeBox, at_once: int, cases: Sequence[Case]) -> Iterator[Play]:
    """By a new judge, as many nurseries of which have started."""
    settings = ColBenchSettings(tasks="tasks.jsonl", namespace="published")
    judge = AnswerJudge(box, settings, [task for task, _ in cases])
    first = CodeTask(id="first", description="", reference="def f(): return 1", calls=("f()",))
    together = "def f():\n    import time\n    time.sleep(1)"
    judged_scores(judge, at_once, [(first, (f"{together}\n# {n}",)) for n in range(at_once)])
    try:
        yield partial(judged_scores, judge, at_once, cases)
    finally:
        judge.close()


@contextlib.contextmanager
def _alone(box: CodeBox, at_once: int, cases: Sequence[Case]) -> Iterator[Play]:
    with ThreadPoolExecutor(at_once) as pool:
        yield lambda: [*pool.map(partial(boxed_scores, box), cases)]


def _sleeping(number: int) -> None:
    """Each of them sleeps in all of its ten calls; another answer comes a second later."""
    settings = ColBenchSettings(invented_tasks=1)
    judge = open_judge(settings)
    (task,) = (each.task for each in invent(settings).values())
    name = re.findall(r"def (\w+)", task.reference)[-1]
    judge.verdicts(task, "")
    with ThreadPoolExecutor(number + 1) as pool:
        begun = time.perf_counter()
        sleeps = f"import time\ndef {name}(*_, **__): time.sleep(60); return {{}}"
        asleep = [pool.submit(judge.verdicts, task, sleeps.format(n)) for n in range(number)]
        time.sleep(1)
        started = time.perf_counter()
        verdicts = judge.verdicts(task, f"{task.reference}\n#")
        waited = time.perf_counter() - started
        found = {each.result() for each in asleep}
    took = time.perf_counter() - begun
    print(f"beside {number} answers that sleep one waits {waited:.2f} s ({set(verdicts)}); ")
    print(f"the {number} are judged within {took:.0f} s ({set().union(*found)})")


def _episodes(number: int) -> None:
    """Of the environment's expert, twice: the second time each answer is known."""
    settings = ColBenchSettings(invented_tasks=number, careless=0.5)
    opener = open_world(settings)
    worlds = [opener() for _ in range(number)]
    tasks = [task for split in worlds[0].splits for task in worlds[0].tasks(split)]
    named = [*zip(worlds, tasks, strict=True)]
    for time_number in ("first", "second"):
        started = time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            rewards = [*pool.map(_episode, named)]
        rate = len(rewards) / (time.perf_counter() - started)
        mean = sum(rewards) / len(rewards)
        print(
            f"the expert's episodes, the {time_number} time: {rate:.0f} a second, reward {mean:.4f}"
        )


def _episode(named: tuple[Any, str]) -> float:
    world, task = named
    world.reset(task)
    rewards: list[float] = [world.step(each.action)[1] for each in world.expert_steps(task)]
    return rewards[-1]


def _passes(reference: str, answer: str, call: str) -> bool:
    with contextlib.redirect_stdout(io.StringIO()):
        expected, given = _value(reference, call), _value(answer, call)
    return expected is not None and bool(expected == given)


def _value(source: str, call: str) -> Any:
    """Of a call, where definitions are locals of a function; None where anything goes wrong."""
    space: dict[str, Any] = {}
    signal.signal(signal.SIGALRM, _ring)
    signal.alarm(_SECONDS)
    try:
        exec(source, {}, space)
        return eval(call, {}, space)
    except (Exception, SystemExit):
        return None
    finally:
        signal.alarm(0)


def _ring(*_: object) -> None:
    raise _LateError


def _changed(source: str) -> str:
    """The source with its first number one larger, as Python writes it out again."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        # Not True: a bool is an int.
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            node.value = cast("float", node.value) + 1
            break
    return ast.unparse(tree)


def _longer(task: CodeTask, branches: int) -> CodeTask:
    """With branches in front that no call takes."""
    if not branches:
        return task
    tree = ast.parse(task.reference)
    function = next(each for each in tree.body if isinstance(each, ast.FunctionDef))
    name = function.args.args[0].arg
    lines = [f"if {name} == 'none of {n}': return {n} + len({name})" for n in range(branches)]
    function.body[:0] = ast.parse("\n".join(lines)).body
    return replace(task, reference=ast.unparse(tree))


def _tasks(file: Path | None, limit: int) -> Sequence[CodeTask]:
    if file is not None:
        return read_tasks(file.read_bytes(), file.name)[:limit]
    return [each.task for each in invent(ColBenchSettings(invented_tasks=limit)).values()]


def _timed(way: Way) -> Timed:
    with way() as play:
        started, spent = time.perf_counter(), _processor_seconds()
        scores = [each for case in play() for each in case]
        seconds, spent = time.perf_counter() - started, _processor_seconds() - spent
    return Timed(scores, len(scores) / seconds, spent / len(scores))


def _table(rounds: Sequence[dict[str, Timed]]) -> None:
    """The rate beside the loop's is the median of those within a turn."""
    print("| what | answers a second | as the loop | CPU for an answer | mean score | alike |")
    print("|---|---|---|---|---|---|")
    for name, first in rounds[0].items():
        rate = median(each[name].rate for each in rounds)
        beside = median(each[name].rate / each[_LOOP].rate for each in rounds)
        spent = median(each[name].spent for each in rounds) * 1e3
        mean = sum(first.scores) / len(first.scores)
        differing = [*_differing(first.scores, rounds[0][_LOOP].scores)]
        alike = len(first.scores) - len(differing)
        print(f"| {name} | {rate:.0f} | {beside:.2f} | {spent:.2f} ms | {mean:.4f} | {alike} |")
        for index in differing:
            told = rounds[0][_LOOP].scores[index], first.scores[index]
            print(f"  answer {index}: {told[0]} and {told[1]}")


def _differing(scores: Sequence[float], others: Sequence[float]) -> Iterator[int]:
    return (n for n, pair in enumerate(zip(scores, others, strict=True)) if pair[0] != pair[1])


def _processor_seconds() -> float:
    """Of this process, of all that it started, and of all that those have waited for."""
    told = os.times()
    own = told.user + told.system + told.children_user + told.children_system
    return own + sum(map(_ticks, _children("self"))) / os.sysconf("SC_CLK_TCK")


def _ticks(process: str) -> int:
    """Of a process and of those below it; nothing of one that has just ended, which its parent
    waits for."""
    told: list[str] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, told[11:15])) + sum(map(_ticks, _children(process)))


def _children(process: str) -> Iterator[str]:
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one that just ends
            yield from (thread / "children").read_text().split()


if __name__ == "__main__":
    main()
