"""The sequence of `agentc run`: compile, find the work, check it, estimate it, run it in steps.

Where rounds may stop, a step goes up to the next measures, and the next one follows from what the
store says then (`agentc.searching.stopping`). A trial of `agentc search` is such a run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from agentc.backend_api import BackendTable, load_backends
from agentc.cli.arguments import same_spec, show_diagnostics, wants_colour
from agentc.cli.cost import cost_to_run, find_place, show_estimate
from agentc.cli.pinning import compile_pinned
from agentc.cli.spec_work import (
    RefusedSpecError,
    compile_and_report,
    show_rounds,
    with_stopped_rounds,
)
from agentc.compilation import Compilation
from agentc.cost import Estimate, Summary
from agentc.cost.place import Place
from agentc.cost.render import cost_column, summary_lines
from agentc.diagnostics import Sink
from agentc.emit import compile_to
from agentc.exit_codes import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_PREFLIGHT,
    EXIT_STORE,
    EXIT_USAGE,
)
from agentc.passes.lowering.secrets import report_missing
from agentc.placement import ResolvedRequest, read_requests, resolve_placement
from agentc.placement.device_count import DeviceCount, count_devices
from agentc.placement.profile import SLURM, Profile, find_profile, require_executor
from agentc.plan.job import Plan
from agentc.plan.render import document_text, plan_document
from agentc.plan.review import review_plan
from agentc.plan.tree import plan_text
from agentc.plan.work import Work, find_work, work_towards
from agentc.run.active_runs import claim_plan_folder
from agentc.run.orchestrate import RunOptions, run_plan
from agentc.run.past import plan_before
from agentc.run.slurm_queue import SubmitLimit
from agentc.run.snakemake_process import DriverOptions
from agentc.runtime.machine.hardware import DevicesError
from agentc.runtime.store.file_system import StoreWriteError, writing
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.stopping import RoundsProgress, rounds_progress, step_before
from agentc.software.requirements import needed_by_plan, report_lacking
from agentc.store.paths import open_store, plans_folder, variant_of
from agentc.text import terminal_width
from agentc.tracking.choice import ChosenTracker, choose_trackers, report_missing_secrets

Cost: TypeAlias = tuple[Mapping[str, Estimate], Summary | None]
"""Estimates by job id, and their totals; None where nothing has to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the checks of a run found: where its curves go, and how many GPUs there are."""

    trackers: tuple[ChosenTracker, ...]
    devices: DeviceCount


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRun:
    """A spec as typed, compiled for a store: how far its rounds are, and what has to run."""

    arguments: argparse.Namespace
    table: BackendTable
    profile: Profile | None
    layout: StoreLayout
    place: Place
    compiled: Compilation
    rounds: tuple[RoundsProgress, ...]
    work: Work

    @classmethod
    def prepare(cls, arguments: argparse.Namespace) -> ExperimentRun:
        """Compile the spec, pin what it names (unless nothing is to run), and find the work in the
        store. Raises RefusedSpecError and other CommandErrors."""
        profile = find_profile(arguments.profile, os.environ)
        if profile is not None and not arguments.dry_run:
            require_executor(profile)
        table = load_backends()
        compiled = compile_and_report(arguments, table)
        if not arguments.dry_run:
            if compiled.unavailable:
                names = ", ".join(compiled.unavailable)
                raise RefusedSpecError(
                    f"this experiment checks and plans, but cannot run yet: {names} has no server"
                )
            compiled = compile_pinned(compiled, arguments, table)
        try:
            layout = open_store(arguments.store)
        except OSError as error:
            raise RefusedSpecError(f"no usable store: {error}", EXIT_STORE) from None
        compiled, rounds = with_stopped_rounds(compiled, arguments, table, layout)
        show_rounds(rounds)
        return cls(
            arguments=arguments,
            table=table,
            profile=profile,
            layout=layout,
            place=find_place(None, profile, arguments.jobs),
            compiled=compiled,
            rounds=rounds,
            work=_work_of(compiled, layout, arguments),
        )

    @property
    def plan(self) -> Plan:
        """What the spec compiled to."""
        assert self.compiled.plan is not None
        return self.compiled.plan

    def check(self, cost: Cost) -> Checked:
        """Look for what would end the run, before anything is built or downloaded.
        Raises RefusedSpecError, ProfileError."""
        sink = Sink()
        declared = () if self.compiled.module is None else self.compiled.module.track
        folder = Path(self.arguments.spec).parent
        trackers = choose_trackers(declared, self.arguments.track, sink, folder)
        report_missing_secrets(trackers, os.environ, sink)
        stages = {str(job["stage"]) for job in self.work.missing}
        report_missing(self.compiled.secrets, stages, os.environ, sink)
        report_lacking(needed_by_plan(self.plan, set(self._missing())), self.layout, sink)
        if sink.has_errors:
            show_diagnostics(sink.sorted())
            raise RefusedSpecError
        try:
            devices = self._count_devices()
        except DevicesError as error:
            raise RefusedSpecError(str(error), EXIT_USAGE) from None
        if self.work.missing and not self.arguments.force:
            self._preflight(cost)
        return Checked(trackers=trackers, devices=devices)

    def estimate(self) -> Cost:
        """What the work is expected to take where it runs."""
        return cost_to_run(self.work, self.compiled, self.table, self.place)

    def require_budget(self, cost: Cost) -> None:
        """Raises RefusedSpecError where the estimate exceeds `budget:`, which is shown."""
        estimates, expected = cost
        budget = None if self.compiled.module is None else self.compiled.module.budget
        if budget is None or expected is None or self.arguments.over_budget:
            return
        from agentc.cost.render import over_budget

        excess = over_budget(budget, expected, estimates)
        if excess:
            show_diagnostics(excess)
            raise RefusedSpecError

    def show(self, cost: Cost) -> None:
        """Print what would run, as `agentc plan` does."""
        estimates, expected = cost
        review = review_plan(self.work, plan_before(self.layout, self.work.document))
        width = terminal_width(sys.stdout)
        print(plan_text(review, costs=cost_column(estimates), width=width), end="")
        if expected is not None:
            show_estimate(expected)
            print("  `agentc plan --cost` shows the sources")

    def execute(self, checked: Checked, cost: Cost) -> int:
        """Run what is missing, step by step; returns the exit code."""
        if checked.devices.note:
            print(checked.devices.note)
        options = RunOptions(
            driver=DriverOptions(
                jobs=self.arguments.jobs,
                profile=self.profile,
                keep_going=self.arguments.keep_going,
                gpus=checked.devices.gpus,
                cores=checked.devices.cores,
                limit=_submit_limit(self),
            ),
            plain=self.arguments.plain,
            colour=wants_colour(sys.stdout),
            spec_directory=Path(self.arguments.spec).parent,
            trackers=checked.trackers,
            explain=partial(_why_waiting, self.profile),
            slowdown=self.place.slowdown,
        )
        try:
            return self._steps(options, cost)
        except StoreWriteError as error:
            raise RefusedSpecError(str(error), EXIT_STORE) from None

    def _steps(self, options: RunOptions, cost: Cost) -> int:
        run, started = self, False
        while True:
            assert run.compiled.module is not None
            stopping = run.compiled.module.stopping
            needed = {str(job["id"]) for job in run.work.needed}
            missing = run.work.missing
            step = step_before(run.plan, stopping, run.rounds, needed) if missing else None
            if step is None:
                code = run._run_plan(run.plan, run.work, options, cost)
                after = rounds_progress(run.work.document, run.layout)
                show_rounds([each for each in after if each not in run.rounds])
                return code
            if not started and cost[1] is not None:
                print("with all rounds:")
                show_estimate(cost[1])
            started = True
            towards = work_towards(plan_document(step.plan), run.layout, step.objects())
            estimates, _ = replace(run, work=towards).estimate()
            code = run._run_plan(step.plan, towards, options, (estimates, None), last=False)
            if code != EXIT_DONE:
                return code
            run = run._after_step(step.stages)
            cost = run.estimate()

    def _after_step(self, stages: tuple[str, ...]) -> ExperimentRun:
        """The run with the rounds that the store leaves now. Raises RefusedSpecError where it has
        no result of the stages that were run."""
        compiled, rounds = with_stopped_rounds(
            self.compiled, self.arguments, self.table, self.layout
        )
        if rounds == self.rounds:
            names = ", ".join(stages)
            raise RefusedSpecError(
                f"the store has no result of {names} to continue with", EXIT_FAILED
            )
        show_rounds([each for each in rounds if each not in self.rounds])
        work = _work_of(compiled, self.layout, self.arguments)
        return replace(self, compiled=compiled, rounds=rounds, work=work)

    def _run_plan(
        self, plan: Plan, work: Work, options: RunOptions, cost: Cost, *, last: bool = True
    ) -> int:
        """Run one plan of the spec; its results are shown after the `last` one."""
        estimates, expected = cost
        options = replace(
            options,
            estimates=estimates,
            expected=() if expected is None else summary_lines(expected),
            results=last,
        )
        folder = Path(self.arguments.spec).parent
        with ExitStack() as stack:
            with writing("the compiled plan", plans_folder(self.layout)):
                text = document_text(dict(work.document))
                label = variant_of(work.document).label
                directory = stack.enter_context(claim_plan_folder(self.layout, label, text))
                compile_to(directory, plan, self.compiled.spec.source.text, folder)
            return run_plan(work, directory, options)

    def _missing(self) -> list[str]:
        return [str(job["id"]) for job in self.work.missing]

    def _settled(self) -> tuple[ResolvedRequest, ...]:
        """What the jobs that have to run ask for. Raises ProfileError."""
        requests = None if self.profile is None else read_requests(self.profile)
        return tuple(resolve_placement(self.work.document, requests, self._missing()))

    def _count_devices(self) -> DeviceCount:
        """GPUs for the jobs that have to run. Raises DevicesError, ProfileError."""
        if not self.work.missing:
            return DeviceCount()
        queued = self.profile is not None and self.profile.queued
        return count_devices(self._settled(), os.environ, queued=queued)[0]

    def _preflight(self, cost: Cost) -> None:
        """The offline half of preflight. Raises RefusedSpecError where it has a problem, which is
        printed."""
        from agentc.preflight.every_check import every_check
        from agentc.preflight.finding import problems_text

        requests = None if self.profile is None else read_requests(self.profile)
        findings = every_check(
            self.work, self.compiled, self.table, requests, cost, online=False, reach=True
        )
        if any(finding.verdict == "problem" for finding in findings):
            more = same_spec("plan", self.arguments, "--preflight", "profile", "store")
            print(problems_text(findings, more), file=sys.stderr)
            raise RefusedSpecError(code=EXIT_PREFLIGHT)


def _work_of(compiled: Compilation, layout: StoreLayout, arguments: argparse.Namespace) -> Work:
    assert compiled.plan is not None
    return find_work(plan_document(compiled.plan), layout, arguments.until)


def _submit_limit(run: ExperimentRun) -> SubmitLimit | None:
    """The smallest limit of SLURM's on the jobs that the run has in the queue."""
    from agentc.preflight.queue import limit_of_run

    profile = run.profile
    if profile is None or profile.executor != SLURM or not run.work.missing:
        return None
    return limit_of_run(run._settled())


def _why_waiting(profile: Profile | None, work: Work, unit: str) -> list[str]:
    """Why SLURM does not start a job, in preflight's words."""
    from agentc.preflight.queue import why_waiting

    return [] if profile is None else why_waiting(profile, work, unit)
