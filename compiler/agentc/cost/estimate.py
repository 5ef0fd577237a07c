"""estimate_plan: what each job of a plan will cost, and the basis of that."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from agentc.backend_api import BackendTable
from agentc.cost.amounts import Workload
from agentc.cost.hardware import DEFAULT_GPU, GPUS
from agentc.cost.observe import actual_wall, learn, read_past, read_subject
from agentc.cost.past import History, Refined, weighted_median
from agentc.cost.place import Place
from agentc.cost.quantities import ZERO, Quantity
from agentc.cost.seconds import program_time, server_start, time_traits
from agentc.cost.statements import Stated
from agentc.cost.subject import JobProfile, Likenesses, subject_of_job
from agentc.cost.workload import Forecaster
from agentc.kinds.table import SERVED, TRAINERS
from agentc.memory.cards import card_type
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import all_folders
from agentc.store.presence import find_published
from agentc.store.run_history import read_history
from agentc.text import counted

State: TypeAlias = Literal["cached", "run", "unneeded"]
CHECKPOINTS = 9
"""Weights that lie in the staging folder while a training saves, where its backend does not say:
three checkpoints (two that are kept and the one being written), each with both moments of Adam."""
PRIOR = "prior"
"""The basis of an estimate that no finished job was like."""
_AGAIN = 0.25
"""Spread of the time of a job that ran before, if it runs again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Cost of one job on an idle machine: wall time in seconds with the start of its servers,
    tokens through models, and through those that its environment asks (`asked`), bytes that stay in
    the store, and those of the `checkpoints` that a training has beside them until it ends. For a
    `cached` job they are what it did cost.

    `basis` is for people: `prior`, `3 runs of this stage`, `3 like jobs`, `its own run`, `in the
    store`. `like` counts the finished jobs that the time is based on. `unknown` names the model of
    a job that obtains one of which nothing says how large it is.
    """

    id: str
    stage: str
    kind: str
    object: str
    state: State
    seconds: Quantity
    tokens: Quantity
    disk: Quantity
    cpus: int
    gpus: int
    basis: str
    like: int = 0
    asked: Quantity = ZERO
    card: str = ""
    checkpoints: float = 0.0
    unknown: str = ""

    @property
    def gpu_hours(self) -> Quantity:
        """GPUs that the job holds, times hours."""
        return self.seconds.times(self.gpus / 3600)


def estimate_plan(
    document: Mapping[str, Any],
    store: StoreLayout | None,
    *,
    table: BackendTable | None = None,
    gpu: str = DEFAULT_GPU,
    place: Place | None = None,
    others: Sequence[StoreLayout] = (),
    states: Mapping[str, State] | None = None,
) -> dict[str, Estimate]:
    """Estimates by job id, in the order of the plan.

    `document` is plan.json, decoded (`plan.render.plan_document` of a Plan). `table` tells how many
    tasks environments have; `gpu` is the type that GPUs are taken for (hardware.GPUS) where neither
    `place` nor a job's `placement.gpu` says which; `others` are more stores to learn from; `states`
    (plan.work.Work) tell jobs that no run would make from those to run. Never raises for what a
    store holds.
    """
    stores = (*(() if store is None else (store,)), *others)
    kinds = {str(job["kind"]) for job in document["jobs"]}
    stated = Stated.of(table)
    subjects = read_past(stores, kinds)
    return Estimator(
        store=store,
        subjects=subjects,
        history=learn(subjects, stores, stated),
        stated=stated,
        walls=_walls_of_history(store, str(document.get("name") or "")),
        gpu=gpu,
        place=place,
    ).estimate(document, states)


@dataclass(slots=True, kw_only=True)
class Estimator:
    """The parts of an estimate, for one plan after another over the same history. `walls` are times
    by object and kind of processor."""

    store: StoreLayout | None
    subjects: Mapping[str, JobProfile]
    history: History
    stated: Stated
    walls: Mapping[tuple[str, str], list[float]]
    gpu: str = DEFAULT_GPU
    place: Place | None = None

    def estimate(
        self, document: Mapping[str, Any], states: Mapping[str, State] | None
    ) -> dict[str, Estimate]:
        """Estimates by job id. Without `states` every job that the store lacks is to run; with them
        those that they do not know are not asked for (`--until`)."""
        alike = Likenesses()
        jobs = {
            f"{job['kind']}/{job['key']}": self._subject(job, alike) for job in document["jobs"]
        }
        stages = {str(job["id"]): str(job["stage"]) for job in document["jobs"]}
        published = find_published(self.store, jobs) if self.store else set()
        cached: dict[str, JobProfile] = {}
        for name in published:
            known = self.subjects.get(name)
            if known is None and self.store is not None:
                known = read_subject(self.store.object(name))
            if known is not None:
                cached[name] = known

        def find(name: str) -> JobProfile | None:
            return cached.get(name) or jobs.get(name)

        # On GPUs nothing counts that jobs without one have shown, nor of what comes before them.
        forecasters = {
            on_gpu: Forecaster(find, self.history.of(on_gpu), self.stated)
            for on_gpu in (False, True)
        }
        times: dict[Hashable, Refined] = {}
        found: dict[str, Estimate] = {}
        for job in document["jobs"]:
            name = f"{job['kind']}/{job['key']}"
            job_id = str(job["id"])
            subject = jobs[name]
            forecaster = forecasters[subject.machine.is_gpu]
            if name in published:
                made, work = cached.get(name), Workload()
                try:
                    work = work if made is None else forecaster.workload(made)
                except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
                    # A manifest of an odd shape: what the plan says of the job has to do.
                    del cached[name]
                found[job_id] = self._cached(job_id, stages[job_id], subject, made, work)
            else:
                work = forecaster.workload(subject)
                made_now = self._to_run(job, subject, work, times)
                state = "run" if states is None else states.get(job_id, "unneeded")
                found[job_id] = made_now if state == "run" else replace(made_now, state=state)
        return found

    def _subject(self, job: Mapping[str, Any], alike: Likenesses) -> JobProfile:
        most = None if self.place is None else self.place.gpus
        return subject_of_job(job, self._gpu_of(job), alike, most_gpus=most)

    def _gpu_of(self, job: Mapping[str, Any]) -> str:
        if self.place is not None and self.place.card is not None:
            return self.place.card
        card = (job.get("memory") or {}).get("card")
        known = None if card is None else card_type(card)
        return known if known in GPUS else self.gpu

    def _cached(
        self, job_id: str, stage: str, subject: JobProfile, made: JobProfile | None, work: Workload
    ) -> Estimate:
        wall = 0.0 if made is None else float(made.measured.get("wall_s") or 0.0)
        return Estimate(
            id=job_id,
            stage=stage,
            kind=subject.kind,
            object=subject.object,
            state="cached",
            seconds=Quantity(wall),
            tokens=_model_tokens(subject, work),
            asked=work.asked,
            disk=work.disk,
            cpus=subject.cpus,
            gpus=subject.gpus,
            basis="in the store",
        )

    def _to_run(
        self,
        job: Mapping[str, Any],
        subject: JobProfile,
        work: Workload,
        times: dict[Hashable, Refined],
    ) -> Estimate:
        # Jobs that are alike and have equal inputs have one workload, which the forecaster keeps.
        ground = (subject.likeness, work, subject.alike)
        if subject.likeness is None or ground not in times:
            times[ground] = self.time(subject, work)
        refined = times[ground]
        seconds, basis = refined.quantity, _basis(subject, work, refined)
        own = self._recorded_times(subject)
        if own:
            seconds = Quantity(weighted_median([(wall, 1.0) for wall in own]), _AGAIN)
            basis = "its own run" if len(own) == 1 else f"its own {len(own)} runs"
        return Estimate(
            id=str(job["id"]),
            stage=str(job["stage"]),
            kind=subject.kind,
            object=subject.object,
            state="run",
            seconds=seconds,
            tokens=_model_tokens(subject, work),
            asked=work.asked,
            disk=work.disk,
            cpus=subject.cpus,
            gpus=subject.gpus,
            basis=basis,
            like=refined.like,
            card=subject.machine.kind if subject.gpus else "",
            checkpoints=_checkpoints(job, work),
            unknown=_unknown(subject, work),
        )

    def time(self, subject: JobProfile, work: Workload) -> Refined:
        """Wall time of a job on an idle machine, and the like jobs that it is based on."""
        past = self.history.of(subject.machine.is_gpu)
        guess = program_time(subject, work)
        refined = past.refined(
            "seconds",
            subject.backend,
            Quantity(guess.seconds.median, guess.rate_spread),
            time_traits(subject, work),
            subject.alike,
        )
        program = refined.quantity.widened(guess.workload_spread)
        starts = [
            past.refined(
                "start",
                server.backend,
                server_start(server, subject.machine, work),
                {"machine": subject.machine.kind},
            ).quantity
            for server in subject.servers.values()
            if server.own
        ]
        # Servers start side by side.
        start = max(starts, key=lambda each: each.median, default=ZERO)
        median = program.median + start.median
        share = program.median / median
        spread = ((share * program.spread) ** 2 + ((1 - share) * start.spread) ** 2) ** 0.5
        return replace(refined, quantity=Quantity(median, spread))

    def _recorded_times(self, subject: JobProfile) -> list[float]:
        """Times of the very same job elsewhere, or before its result was deleted."""
        times = list(self.walls.get((subject.object, subject.machine.kind), ()))
        elsewhere = self.subjects.get(subject.object)
        if elsewhere is not None and elsewhere.machine.kind == subject.machine.kind:
            wall = actual_wall(elsewhere)
            times += [wall] if wall is not None else []
        return times


def _basis(subject: JobProfile, work: Workload, time: Refined) -> str:
    """What moved the time: finished jobs, or what these showed of the amounts, or nothing."""
    if time.of_stage:
        return f"{counted(time.of_stage, 'run')} of this stage"
    if time.like:
        return counted(time.like, "like job")
    if subject.forecast == "unknown":
        return "not known"
    if work.model is not None and not work.model.known:
        return f"{PRIOR}, size of the model unknown"
    return f"{PRIOR}, amounts of {counted(work.like, 'job')}" if work.like else PRIOR


def _checkpoints(job: Mapping[str, Any], work: Workload) -> float:
    """Bytes of the checkpoints that lie there while a training runs."""
    if job["kind"] not in TRAINERS:
        return 0.0
    memory = job.get("memory") or {}
    return float(memory.get("staging") or CHECKPOINTS * work.disk.median)


def _unknown(subject: JobProfile, work: Workload) -> str:
    """The model that a job obtains, where its size is not known."""
    if subject.forecast != "weights" or work.model is None or work.model.known:
        return ""
    return str(subject.config.get("repo") or subject.config.get("path") or subject.stage)


def _model_tokens(subject: JobProfile, work: Workload) -> Quantity:
    """Tokens through a model; those that a new tokenizer was trained on are none."""
    return work.tokens if subject.kind in (*TRAINERS, *SERVED) else ZERO


def _walls_of_history(store: StoreLayout | None, name: str) -> dict[tuple[str, str], list[float]]:
    """Times by object and processor from the histories of an experiment, at whichever scale and
    with whichever params: results may be gone since."""
    walls: dict[tuple[str, str], list[float]] = {}
    if store is None:
        return walls
    for folder in all_folders(store):
        for line in read_history(folder) if folder.label.partition("@")[0] == name else ():
            with suppress(AttributeError, KeyError, TypeError):
                for each in line.get("ran") or []:
                    took = each["idle_s"] if "idle_s" in each else each.get("wall_s")
                    if isinstance(took, (int, float)):
                        key = (str(each["object"]), str(each.get("on") or "cpu"))
                        walls.setdefault(key, []).append(float(took))
    return walls
