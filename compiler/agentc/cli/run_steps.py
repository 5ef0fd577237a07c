"""What `agentc run` does once nothing stands against it: the plan is run, in steps where rounds may
stop: up to the next measures, then further by what the store says (`agentc.searching.stopping`)."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.cost import cost_to_run
from agentc.cli.stopping import show_rounds, with_stopped_rounds
from agentc.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_STORE
from agentc.text import print_wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.cost import Estimate, Summary
    from agentc.plan.job import Plan
    from agentc.plan.work import Work
    from agentc.run.orchestrate import RunOptions
    from agentc.runtime.store.layout import StoreLayout
    from agentc.searching.stopping import RoundsSoFar


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """How the plan that was typed is run: on so many `cores`, or in a queue."""

    arguments: argparse.Namespace
    table: BackendTable
    layout: StoreLayout
    options: RunOptions
    cores: int | None
    queued: bool

    def run(
        self,
        compiled: Compilation,
        rounds: tuple[RoundsSoFar, ...],
        work: Work,
        cost: tuple[Mapping[str, Estimate], Summary | None],
    ) -> int:
        """Run what is missing of `work`; `rounds` are those of `compiled` that stop, `cost` is what
        all of it is expected to take. Returns the exit code."""
        from agentc.cost.render import summary_sentence
        from agentc.plan.render import plan_document
        from agentc.plan.work import find_work, work_towards
        from agentc.runtime.store.file_system import StoreWriteError
        from agentc.searching.stopping import rounds_so_far, step_before

        begun = False
        try:
            while True:
                module, plan = compiled.module, compiled.plan
                assert module is not None
                assert plan is not None
                needed = {str(job["id"]) for job in work.needed}
                step = step_before(plan, module.stopping, rounds, needed) if work.missing else None
                if step is None:
                    code = self._run(compiled, plan, work, cost)
                    after = rounds_so_far(work.document, self.layout)
                    show_rounds([each for each in after if each not in rounds])
                    return code
                if not begun and cost[1] is not None:
                    print_wrapped(f"estimate with all rounds: {summary_sentence(cost[1])}")
                begun = True
                towards = work_towards(plan_document(step.plan), self.layout, step.objects())
                estimates, _ = self._cost(towards, compiled)
                code = self._run(compiled, step.plan, towards, (estimates, None), last=False)
                if code != EXIT_DONE:
                    return code
                before = rounds
                compiled, rounds = with_stopped_rounds(
                    compiled, self.arguments, self.table, self.layout
                )
                if rounds == before:
                    names = ", ".join(step.stages)
                    print(
                        f"agentc: the store has no result of {names} to go on with", file=sys.stderr
                    )
                    return EXIT_FAILED
                show_rounds([each for each in rounds if each not in before])
                assert compiled.plan is not None
                document = plan_document(compiled.plan)
                work = find_work(document, self.layout, self.arguments.until)
                cost = self._cost(work, compiled)
        except StoreWriteError as error:
            print(f"agentc: {error}", file=sys.stderr)
            return EXIT_STORE

    def _cost(
        self, work: Work, compiled: Compilation
    ) -> tuple[dict[str, Estimate], Summary | None]:
        return cost_to_run(work, compiled, self.table, cores=self.cores, queued=self.queued)

    def _run(
        self,
        compiled: Compilation,
        plan: Plan,
        work: Work,
        cost: tuple[Mapping[str, Estimate], Summary | None],
        *,
        last: bool = True,
    ) -> int:
        """Run one plan of the spec; its results are shown after the `last` one."""
        from agentc.cost.render import summary_sentence
        from agentc.emit import compile_to
        from agentc.plan.render import document_text
        from agentc.run.active_runs import claim_plan_folder
        from agentc.run.orchestrate import run_plan
        from agentc.runtime.store.file_system import writing
        from agentc.store.paths import plans_folder, variant_of

        estimates, expected = cost
        options = replace(
            self.options,
            estimates=estimates,
            expected=None if expected is None else summary_sentence(expected),
            results=last,
        )
        folder = Path(self.arguments.spec).parent
        with ExitStack() as stack:
            with writing("the compiled plan", plans_folder(self.layout)):
                plan_text = document_text(dict(work.document))
                label = variant_of(work.document).label
                claimed = claim_plan_folder(self.layout, label, plan_text)
                directory = stack.enter_context(claimed)
                compile_to(directory, plan, compiled.spec.source.text, folder)
            return run_plan(work, directory, options)
