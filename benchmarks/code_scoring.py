"""Scores of answers to programming tasks, ours beside a plain loop's, for results and for time.

`python -m benchmarks.code_scoring [--tasks FILE] [--limit N] [--rounds N] [--packages FOLDER]`. The
plain loop does what the released evaluator of ColBench does, in our own words: for each test it
executes reference and answer in its own process and compares what a call of each gives, with an
alarm after a second. Ours runs the reference once, and the answer in a box of its own or, as
env.colbench_backend does it, in a process that is forked in a box for it. Answers are each task's
reference, the same with its first number one larger, and an empty function. All are taken by turns,
`--rounds` times, and medians shown. `--times` has each task come so often, its reference anew: the
nurseries are started once. `--branches` makes each reference so many lines longer, `--only-forked`
leaves out a box for each answer, `--episodes` adds the environment's expert, `--sleeping` how long
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
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

from agentc.runtime.sandbox.interpreter import boxed_interpreter
from agentc.runtime.sandbox.kinds import CodeBox
from agentc.runtime.sandbox.probe import probe
from agentc_backends.environments.code_tests.answer import code_of
from agentc_backends.environments.code_tests.calls import CallLimits, Place
from agentc_backends.environments.code_tests.places import CallPlaces
from agentc_backends.environments.code_tests.suite import score, suite_of, verdicts
from agentc_backends.environments.colbench.invented import invent
from agentc_backends.environments.colbench.job_serve import open_world
from agentc_backends.environments.colbench.judging import open_judge
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, read_tasks

_SECONDS = 1
Case = tuple[CodeTask, tuple[str, ...]]
Way = Callable[[], list[tuple[float, ...]]]
Runner = Callable[[Callable[[Place], tuple[float, ...]]], tuple[float, ...]]


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
    parser.add_argument("--only-forked", action="store_true")
    parser.add_argument("--packages", help="a folder that boxes import from, such as numpy's")
    parser.add_argument("--episodes", type=int, default=0, help="so many tasks of the environment")
    parser.add_argument("--sleeping", type=int, default=0, help="so many answers that sleep")
    options = parser.parse_args()
    if options.sleeping:
        _sleeping(options.sleeping)
        return
    tasks = (_longer(task, options.branches) for task in _tasks(options.tasks, options.limit))
    cases = [(task, answers_of(task)) for task in tasks] * options.times
    number = sum(len(answers) for _, answers in cases)
    ways: dict[str, Way] = {_LOOP: lambda: [*map(plain_scores, cases)]}
    for each in probe(boxed_interpreter(packages=(options.packages,) if options.packages else ())):
        if each.box is None:
            print(f"no {each.kind}: {each.reason}")
            continue
        for at_once in (1, 2):
            if not options.only_forked:
                alone = _boxed(partial(_in_a_box, each.box), cases, at_once)
                ways[f"{each.kind}, a box for each, {at_once} at once"] = alone
            forked = partial(_forked, each.box, cases, at_once)
            ways[f"{each.kind}, forked, {at_once} at once"] = forked
    print(f"{len(cases)} tasks, {number} answers, {options.rounds} times by turns")
    _table([{name: _timed(way) for name, way in ways.items()} for _ in range(options.rounds)])
    if options.episodes:
        _episodes(options.episodes)


def answers_of(task: CodeTask) -> tuple[str, ...]:
    """A right one, one that may be wrong, a wrong one."""
    name = re.findall(r"def (\w+)", task.reference)[-1]
    return (task.reference, _changed(task.reference), f"def {name}(*_, **__): pass")


def plain_scores(case: Case) -> tuple[float, ...]:
    """The share of tests that each answer passes, by the plain loop."""
    task, answers = case
    return tuple(
        sum(_passes(task.reference, code_of(answer, "published"), call) for call in task.calls)
        / len(task.calls)
        for answer in answers
    )


def boxed_scores(run: Runner, case: Case) -> tuple[float, ...]:
    """The same by ours, which takes the reference's values once."""
    task, answers = case

    def score_all(place: Place) -> tuple[float, ...]:
        suite = suite_of(place, task.reference, task.calls, namespace="published")
        return tuple(score(verdicts(place, suite, answer)) for answer in answers)

    return run(score_all)


def _in_a_box(box: CodeBox, work: Callable[[Place], tuple[float, ...]]) -> tuple[float, ...]:
    return work(box)


def _forked(box: CodeBox, cases: Sequence[Case], at_once: int) -> list[tuple[float, ...]]:
    """The nurseries are ended as well, so that their time counts."""
    places = CallPlaces(box, CallLimits(), at_once)
    try:
        return _boxed(places.run, cases, at_once)()
    finally:
        places.close()


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


def _boxed(run: Runner, cases: Sequence[Case], at_once: int) -> Way:
    def play() -> list[tuple[float, ...]]:
        with ThreadPoolExecutor(at_once) as pool:
            return [*pool.map(lambda case: boxed_scores(run, case), cases)]

    return play


def _timed(way: Way) -> Timed:
    started, spent = time.perf_counter(), _processor_seconds()
    scores = [each for case in way() for each in case]
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
            print(f"  answer {index % 3} of task {index // 3}: {told[0]} and {told[1]}")


def _differing(scores: Sequence[float], others: Sequence[float]) -> Iterator[int]:
    return (n for n, pair in enumerate(zip(scores, others, strict=True)) if pair[0] != pair[1])


def _processor_seconds() -> float:
    """Of this process and of all that it has waited for."""
    told = os.times()
    return told.user + told.system + told.children_user + told.children_system


if __name__ == "__main__":
    main()
