"""Job: offline RL. `python -m agentc_backends.trainers.online_rl.job_offline JOB.json`.

No lease: all episodes are recorded. A run resumes from the job's folder `work/`; `loop.py` has the
loop. Exit 75: a rerun resumes where this one stopped before its time limit.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Literal

from agentc.kinds.interaction import Decoding
from agentc.kinds.reinforcement import CriticSteps, EncoderReading, OfflineActorSteps
from agentc.program.artifact_files import TRAJECTORIES_FILE
from agentc.program.job import Job, read_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.program import run_job
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.models.checkpoint import configure_libraries
from agentc_backends.job_device import require_gpus
from agentc_backends.trainers.common.step_log import curve_facts
from agentc_backends.trainers.online_rl.settings import CriticPhase

_PACKAGES = ("torch", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineSettings:
    """The job's config. `rewards` is how the rewards of turns make an episode's; `decode` is None
    where no reply is drawn."""

    rewards: Literal["sum", "terminal", "latest", "max"]
    decode: Decoding | None
    iterations: int
    warmup: int
    discount: float
    by: Literal["utterances", "episodes"]
    critic: CriticSteps
    actor: OfflineActorSteps
    encoder: EncoderReading | None = None
    keep: tuple[int, ...]
    publish_state: bool
    seed: int


async def train(job: Job) -> None:
    """Run to the end and write the artifact. Raises OutOfTimeError with the run's state saved, and
    FatalError for episodes that cannot be learnt from."""
    require_gpus(job)
    settings = job.config.read_as(OfflineSettings)
    job.config.assert_all_read()
    configure_libraries()
    # These take seconds to import, and need the variables that were just set.
    from agentc_backends.data.chat.tokens import Encoder, chat_format_of
    from agentc_backends.engine.decoding import stop_test
    from agentc_backends.engine.model import context_of, end_tokens, load_tokenizer
    from agentc_backends.trainers.online_rl.archer import OfflineArcherLearner
    from agentc_backends.trainers.online_rl.learning import Learning
    from agentc_backends.trainers.online_rl.loop import Run, RunSchedule
    from agentc_backends.trainers.online_rl.publishing import (
        clear,
        keep_policy,
        load_policy,
        publish_run,
        write_policy,
    )
    from agentc_backends.trainers.online_rl.readers import encoder_of
    from agentc_backends.trainers.online_rl.replay import ReplayBuffer, tokenise_episodes
    from agentc_backends.trainers.online_rl.sampling import Decode, Sampler
    from agentc_backends.trainers.online_rl.state import STATE, RunFiles, RunStart, write_learner

    base = job.input("model")
    model = load_policy(base)
    tokenizer = load_tokenizer(str(base))
    ends = end_tokens(model, tokenizer)
    rows = [row for folder in job.inputs("data") for row in read_rows(folder / TRAJECTORIES_FILE)]
    try:
        encoder = Encoder(tokenizer, chat_format_of(base))
        recording = tokenise_episodes(rows, encoder, settings.rewards, context_of(model, tokenizer))
    except FormatError as error:
        raise FatalError(str(error)) from error
    decode = Decode(max_tokens=1, ends=ends)  # not used where nothing is drawn
    if settings.decode is not None:
        drawing = settings.decode
        decode = Decode(
            temperature=drawing.temperature,
            top_p=drawing.top_p,
            max_tokens=drawing.max_tokens,
            ends=ends,
            finished=stop_test(tokenizer, drawing.stop) if drawing.stop else None,
        )
    learner = OfflineArcherLearner(
        Learning(
            policy=model,
            tokenizer=tokenizer,
            sampler=Sampler(model),
            decode=decode,
            seed=settings.seed,
            micro_batch=job.placement["micro_batch"],
            encoder=encoder_of(job, tokenizer, settings.encoder, settings.seed),
        ),
        CriticPhase(discount=settings.discount, **asdict(settings.critic)),
        settings.actor,
    )
    steps = sum(row["turns"] for row in recording.rows)
    run = Run(
        job=job,
        schedule=RunSchedule(
            iterations=settings.iterations,
            warmup=settings.warmup,
            keep=settings.keep,
            save_every=job.placement["save_every"],
        ),
        acting=None,
        learner=learner,
        buffer=ReplayBuffer(steps, settings.discount, by=settings.by),
        files=RunFiles(job.work, 0),
        folder=job.work,
        keep_policy=lambda folder: keep_policy(model, base, folder),
        start=RunStart(played=[recording.rows]),
    )
    await run.go()
    clear(job.out)  # of an attempt that was killed while it wrote
    write_policy(model, base, job.out)
    counts = {
        "iterations": settings.iterations,
        "trajectories": len(recording.rows),
        "steps": steps,
        "reply_tokens": sum(
            len(turn["reply"]) for row in recording.rows for turn in row["turn_tokens"]
        ),
    }
    about = {"algorithm": "archer", "seed": settings.seed, **counts}
    publish_run(job.out, job.work, run.files, about, ())
    if settings.publish_state:
        write_learner(job.out / STATE, learner)
    run.files.close()
    job.facts(
        **counts,
        **{name: number for name, number in asdict(recording).items() if name != "rows"},
        return_mean=sum(row["reward"] for row in recording.rows) / len(recording.rows),
        **curve_facts(run.files.curve()),
        versions={package: version(package) for package in _PACKAGES},
    )


if __name__ == "__main__":
    sys.exit(run_job("offline_rl", train))
