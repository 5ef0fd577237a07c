"""Job: online RL. `python -m agentc_backends.trainers.online_rl.job_online JOB.json`.

Lease: `environment`. A run resumes from the job's folder `work/`; `loop.py` has the loop. Exit 75:
a rerun may succeed, or resumes where this one stopped before its time limit.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from agentc.kinds.interaction import Decoding
from agentc.kinds.reinforcement import EncoderReading, RunEvaluation
from agentc.program.job import Job
from agentc.program.settings import settings_from
from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import read_rules, split_tasks
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.rollout.play import TurnRules
from agentc_backends.data.models.checkpoint import configure_libraries, is_unchanged
from agentc_backends.job_device import require_gpus
from agentc_backends.trainers.common.step_log import curve_facts
from agentc_backends.trainers.online_rl.settings import LEARNERS

if TYPE_CHECKING:
    from agentc_backends.trainers.online_rl.learning import Learner, Learning

_PACKAGES = ("torch", "transformers")
_ON_OVERFLOW = "`on_overflow: error` makes that a failure of the stage."


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineSettings:
    """The run's part of the job's config, beside the rules of its episodes."""

    limit: int | None
    tasks: str
    decode: Decoding
    iterations: int
    episodes: int
    warmup: int
    buffer: Mapping[str, Any]
    learner: Mapping[str, Any]
    evaluate: RunEvaluation | None
    keep: tuple[int, ...]
    publish_state: bool
    seed: int


async def train(job: Job) -> None:
    """Run to the end and write the artifact. Raises OutOfTimeError with the run's state saved."""
    require_gpus(job)
    configure_libraries()
    # These take seconds to import, and need the variables that were just set.
    from agentc_backends.engine.model import (
        context_of,
        end_tokens,
        load_tokenizer,
    )
    from agentc_backends.openai_api.chat_text import ChatText
    from agentc_backends.trainers.online_rl.archer import ChaiLearner, CriticLearner
    from agentc_backends.trainers.online_rl.filtered_bc import filter_warning
    from agentc_backends.trainers.online_rl.learning import Learning
    from agentc_backends.trainers.online_rl.loop import (
        Acting,
        ActingStage,
        Evaluation,
        Run,
        RunSchedule,
    )
    from agentc_backends.trainers.online_rl.publishing import (
        ENCODER,
        clear,
        critic_description,
        keep_policy,
        load_policy,
        publish_run,
        write_policy,
    )
    from agentc_backends.trainers.online_rl.readers import encoder_of, write_encoder
    from agentc_backends.trainers.online_rl.replay import ReplayBuffer
    from agentc_backends.trainers.online_rl.sampling import Decode, LivePolicy, Sampler
    from agentc_backends.trainers.online_rl.state import (
        STATE,
        RunFiles,
        run_start,
        write_learner,
    )

    config, base = job.config, job.input("model")
    async with connect(job.leases, None, job.placement["concurrency"]) as servers:
        meta = await servers.world.meta()
        rules, turns, evaluation = read_rules(config, meta), config.read_as(TurnRules), None
        settings = config.read_as(OnlineSettings)
        config.assert_all_read()
        model = load_policy(base)
        tokenizer = load_tokenizer(str(base))
        sampler, chat = Sampler(model), ChatText(str(base), tokenizer)
        ends, context = end_tokens(model, tokenizer), context_of(model, tokenizer)

        def live_policy(temperature: float) -> LivePolicy:
            drawing = settings.decode
            decode = Decode(
                temperature=temperature, top_p=drawing.top_p, max_tokens=drawing.max_tokens,
                ends=ends,
            )  # fmt: skip
            return LivePolicy(sampler, chat, tokenizer, decode, context, drawing.stop)

        policy, evaluated = live_policy(settings.decode.temperature), None
        if (due := settings.evaluate) is not None:
            evaluated = live_policy(due.temperature)
            evaluation = Evaluation(tasks=split_tasks(meta, due.split, due.limit), when=due)
        reading = None
        if "encoder" in settings.learner:
            reading = settings_from(EncoderReading, settings.learner["encoder"])
        learner = make_learner(
            settings.learner,
            Learning(
                policy=model,
                tokenizer=tokenizer,
                sampler=sampler,
                decode=policy.decode,
                seed=settings.seed,
                micro_batch=job.placement["micro_batch"],
                encoder=encoder_of(job, tokenizer, reading, settings.seed),
            ),
        )
        if isinstance(learner, ChaiLearner):
            policy.choice = learner.choice
            if evaluated is not None:
                evaluated.choice = learner.choice
        buffer, start = settings.buffer, run_start(job, learner)
        # The critic's discount, where the algorithm has one.
        discount = settings.learner.get("critic", {}).get("discount", 1.0)
        run = Run(
            job=job,
            schedule=RunSchedule(
                iterations=start.iteration + settings.iterations,
                warmup=settings.warmup,
                keep=settings.keep,
                save_every=job.placement["save_every"],
            ),
            acting=Acting(
                stage=ActingStage(job=job, servers=servers, rules=rules, turns=turns),
                policy=policy,
                tasks=split_tasks(meta, rules.split, settings.limit),
                draw=settings.tasks,
                episodes=settings.episodes,
                group=settings.learner.get("group", 1),
                seed=settings.seed,
                evaluated=evaluated,
                evaluation=evaluation,
            ),
            learner=learner,
            buffer=ReplayBuffer(buffer["capacity"], discount, buffer["episodes"], buffer["by"]),
            files=RunFiles(job.work, settings.episodes),
            folder=job.work,
            keep_policy=lambda folder: keep_policy(model, base, folder),
            start=start,
        )
        await run.go()
    clear(job.out)  # of an attempt that was killed while it wrote
    write_policy(model, base, job.out)
    last = run.files.last
    about: dict[str, Any] = {
        "algorithm": settings.learner["algorithm"],
        "iterations": run.schedule.iterations,
        "trajectories": last["trajectories"],
        "steps": last["steps"],
        "reply_tokens": last["reply_tokens"],
        "seed": settings.seed,
    }
    if settings.publish_state and isinstance(learner, CriticLearner):
        about["critic"] = critic_description(config["prompt"], reading)
    publish_run(job.out, job.work, run.files, about, job.inputs("start"))
    if settings.publish_state:
        write_learner(job.out / STATE, learner)
        if "encoder" in settings.learner:
            write_encoder(job.input("encoder"), job.out / STATE / ENCODER)
    share = settings.learner.get("keep_share")
    if share is not None and (warning := filter_warning(run.files.curve(), share)):
        job.warn(warning)
    run.files.close()
    # CHAI trains a critic only: its policy is unchanged by design.
    same = None if isinstance(learner, ChaiLearner) else is_unchanged(job.out, base)
    unchanged = {} if same is None else {"unchanged": same}
    job.facts(
        **{name: about[name] for name in ("iterations", "trajectories", "steps", "reply_tokens")},
        return_first=run.files.curve()[0]["return"]["mean"],
        return_last=last["return"]["mean"],
        **unchanged,
        **curve_facts(run.files.curve()),
        versions={package: version(package) for package in _PACKAGES},
    )


def make_learner(settings: Mapping[str, Any], learning: Learning) -> Learner:
    """The learner of a config's `algorithm`. Raises KeyError for an unknown one."""
    learner: Learner = pkgutil.resolve_name(LEARNERS[settings["algorithm"]]).of(learning, settings)
    return learner


if __name__ == "__main__":
    sys.exit(run_job("online_rl", train, on_overflow=_ON_OVERFLOW))
