"""Seconds: from a workload and a machine to time. docs/design/cost.md has the formulas.

A job's time is the start of its servers and of its program, and the work; each part is refined by
itself, since they are unlike: a start depends on software, work on its amount.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentc.cost.amounts import CHOSEN_PASSES, Workload, candidates_of
from agentc.cost.hardware import DEFAULT_GPU, ComputeProfile, gpu_machine
from agentc.cost.parameters import ModelShape
from agentc.cost.past import Traits
from agentc.cost.quantities import RATE_FACTOR, ZERO, Quantity, prior, total, value
from agentc.cost.subject import JobProfile, ServerProfile
from agentc.kinds.table import PAIR_TRAINERS

_SAVING_SHARE = 0.05
"""Of a training's time that its checkpoints may take where the spec names no steps."""
_UNSEEN = Quantity.between(1.0, RATE_FACTOR)


@dataclass(frozen=True, slots=True)
class Effort:
    """Time of the program: its median, the spread of rates alone (which an observation of a known
    workload corrects), and what the workload's own spread adds."""

    seconds: Quantity
    rate_spread: float
    workload_spread: float


def program_time(subject: JobProfile, work: Workload) -> Effort:
    """Time from the program's start to its end, servers being there."""
    if subject.forecast == "training" and work.model is not None:
        return _training(subject, work, work.model)
    if subject.forecast in ("reinforcement", "experience") and work.model is not None:
        return _reinforcement(subject, work, work.model)
    if subject.forecast in ("episodes", "trees") or work.replied.median > 0:
        return _episodes(subject, work)
    if subject.forecast == "scores" and work.model is not None:
        return _scoring(subject, work, work.model)
    if subject.forecast == "demonstrations":
        amount = work.turns.times(prior("expert_turn"))
        return _sum([prior("light_job"), amount], amount, work.turns.spread)
    if subject.forecast == "weights":
        return _making(subject, work)
    if subject.forecast == "unknown":
        return _sum([prior("own_program")], prior("own_program"), 0.0)
    amount = work.rows.times(prior("light_row"))
    return _sum([prior("light_job"), amount], amount, work.rows.spread)


def server_start(server: ServerProfile, machine: ComputeProfile, work: Workload) -> Quantity:
    """Time until a leased server is ready."""
    if not server.own or server.backend == "serve.scripted":
        return prior("light_job")
    if not server.backend.startswith("serve."):
        return prior("environment_start")
    if server.backend == "serve.vllm":
        start = prior("vllm_start")
    else:
        start = prior("cuda_server_start") if machine.is_gpu else prior("server_start")
    weights = 0.0 if work.model is None else _weight_bytes(work.model, machine)
    return total([start, Quantity(weights / value("load_rate"), prior("load_rate").spread)])


def time_traits(subject: JobProfile, work: Workload) -> Traits:
    """What the speed of a program is compared by."""
    server = subject.simulator_server
    return {
        "machine": subject.machine.kind,
        "cpus": float(subject.cpus),
        "gpus": float(subject.gpus),
        "server": "" if server is None else server.backend,
        "parameters": 0.0 if work.model is None else round(work.model.parameters.median, -3),
        "tokens": _two_digits(work.tokens.median),
    }


def _training(subject: JobProfile, work: Workload, model: ModelShape) -> Effort:
    machine, count = subject.machine, model.parameters.median
    half = subject.setting("dtype") == "bfloat16" and machine.is_gpu
    rate = machine.training_rate()
    rate = rate.times(machine.half / machine.single) if half else rate
    # Forward 2, backward 4 operations a weight and token; recomputing costs one forward more,
    # frozen weights spare the gradients of weights.
    per_weight = 6.0
    if subject.config.get("lora") is not None or subject.setting("lora") is not None:
        per_weight = 4.0
    if _checkpoints(subject):
        per_weight += 2
    tokens = work.tokens.median
    flops = per_weight * count * tokens
    if subject.kind in PAIR_TRAINERS:  # the reference's log-probabilities, once for each row
        flops += 2 * count * tokens / max(1.0, subject.number("epochs", 1))
    # Attention scores, forward and backward: 6 x width x length operations a token and block, half
    # of what two full products take since the mask is causal.
    flops += per_weight * model.layers * model.width * work.context.median * tokens
    compute = Quantity(flops / rate.median, rate.spread)
    launches = work.steps.median * _micro_steps(subject)
    overhead = prior("step_overhead").times(launches * (model.layers + 1))
    start = prior("cuda_start") if machine.is_gpu else prior("torch_start")
    load = Quantity(_weight_bytes(model, machine) / value("load_rate"), prior("load_rate").spread)
    amount = total([compute, overhead])
    saving = _saving(subject, work, count, amount.median)
    return _sum([start, load, compute, overhead, saving], amount, work.tokens.spread)


def _saving(subject: JobProfile, work: Workload, count: float, trained_s: float) -> Quantity:
    """Resumable checkpoints: weights and both moments of Adam, of adapters next to nothing. Without
    `save_every` as many as take a twentieth of the time."""
    rate = prior("save_rate")
    adapters = subject.config.get("lora") is not None or subject.setting("lora") is not None
    save_s = 0.0 if adapters else 12 * count / rate.median
    every = subject.setting("save_every")
    if isinstance(every, int):
        saves = max(0.0, (work.steps.median - 1) // every)
    else:
        saves = _SAVING_SHARE * trained_s // save_s if save_s else 0.0
    return Quantity(saves * save_s, rate.spread) if saves else ZERO


def _reinforcement(subject: JobProfile, work: Workload, model: ModelShape) -> Effort:
    """Acting and learning in one process: `work.tokens` are those that some network reads, and a
    turn of all episodes of an iteration is drawn at once. What learns from recorded episodes has
    none of its own."""
    machine, count = subject.machine, model.parameters.median
    rate = machine.training_rate()
    compute = Quantity(2 * count * work.tokens.median / rate.median, rate.spread)
    iterations = subject.number("iterations", 1)
    turns = work.turns.median / max(1.0, work.rows.median)
    reply = work.replied.median / max(1.0, work.turns.median)
    drawn = iterations * turns * min(reply, subject.number("decode.max_tokens", 32))
    # A reply's token is a pass forward, a third of a step.
    passes = (work.steps.median + drawn / 3) * (model.layers + 1)
    overhead = prior("step_overhead").times(passes)
    acting = prior("environment_turn").times(work.turns.median)
    start = prior("cuda_start") if machine.is_gpu else prior("torch_start")
    load = Quantity(_weight_bytes(model, machine) / value("load_rate"), prior("load_rate").spread)
    amount = total([compute, overhead, acting])
    spread = (work.turns if work.turns.median else work.tokens).spread
    return _sum([start, load, compute, overhead, acting], amount, spread)


def _episodes(subject: JobProfile, work: Workload) -> Effort:
    server = subject.simulator_server
    concurrency = subject.placement.get("concurrency") or subject.number("concurrency", 32)
    # Candidates of a turn are asked for at once, and each counts.
    alone = subject.forecast == "candidates"
    several = candidates_of(subject)
    at_once = work.turns if alone else work.rows.times(several)
    flying = max(1.0, min(float(concurrency), at_once.median))
    if subject.forecast == "trees":  # the children of a node are sampled at once
        flying *= subject.number("children", 4)
    together = max(1.0, flying * value("occupancy"))
    steps = work.replied.median / together
    turn = prior("environment_turn")
    acting = ZERO if alone else turn.times(work.turns.median)
    if server is None or not server.own or work.model is None:
        # A hosted endpoint streams each reply at its own pace.
        decode = Quantity(steps / value("remote_rate"), prior("remote_rate").spread)
        prefill = ZERO
    else:
        decode = _decode_step(subject.machine, work, together, server.backend).times(steps)
        # Prefix caching: a turn reads only what is new since the last one.
        fresh = work.turns.median * min(work.context.median, 2 * value("observation_tokens"))
        rate = _reading_rate(subject.machine, work.model)
        flops = 2 * work.model.parameters.median * (fresh + work.replied.median)
        if several > 1:  # critic and reference read what was drawn, prompts included
            scored = work.tokens.median * (1 - 1 / CHOSEN_PASSES)
            flops += 2 * work.model.parameters.median * scored
        prefill = Quantity(flops / rate.median, rate.spread)
    decode = decode.widened(prior("occupancy").spread)
    amount = total([decode, prefill, acting, _simulator_time(subject, work, together)])
    return _sum([prior("light_job"), amount], amount, work.turns.spread)


def _simulator_time(subject: JobProfile, work: Workload, together: float) -> Quantity:
    """Time that episodes wait for a model that their environment asks: so many at once."""
    server = None if subject.asking is None else subject.servers[subject.asking]
    if server is None or not work.asked_replied.median:
        return ZERO
    steps = work.asked_replied.median / together
    if not server.own or work.simulator_model is None:
        return Quantity(steps / value("remote_rate"), prior("remote_rate").spread)
    machine = subject.machine
    if server.devices:
        machine = gpu_machine(machine.kind if machine.is_gpu else DEFAULT_GPU, server.devices)
    theirs = replace(work, model=work.simulator_model, context=work.asked_context)
    return _decode_step(machine, theirs, together, server.backend).times(steps)


def _scoring(subject: JobProfile, work: Workload, model: ModelShape) -> Effort:
    """Forward passes over prompts and what is scored: nothing is decoded. A critic with a head has
    no server: the program loads it."""
    rate = _reading_rate(subject.machine, model)
    flops = 2 * model.parameters.median * work.tokens.median
    passing = Quantity(flops / rate.median, rate.spread)
    if subject.simulator_server is not None:
        return _sum([prior("light_job"), passing], passing, work.tokens.spread)
    machine = subject.machine
    start = prior("cuda_start") if machine.is_gpu else prior("torch_start")
    load = Quantity(
        _weight_bytes(model, subject.machine) / value("load_rate"), prior("load_rate").spread
    )
    return _sum([start, load, passing], passing, work.tokens.spread)


def _reading_rate(machine: ComputeProfile, model: ModelShape) -> Quantity:
    """Operations a second of whole texts that go through a model once."""
    if machine.is_gpu:
        return prior("prefill_share").times(machine.half)
    return machine.training_rate()


def _decode_step(
    machine: ComputeProfile, work: Workload, together: float, backend: str
) -> Quantity:
    model = work.model
    assert model is not None
    fast = 0.1 if backend == "serve.vllm" else 1.0
    read = _weight_bytes(model, machine) + together * work.context.median * model.cache_bytes
    # Every step reads all weights and the caches of the sequences in flight.
    reading = Quantity(
        read / (machine.bandwidth * value("decode_bandwidth_share")),
        prior("decode_bandwidth_share").spread,
    )
    return total(
        [
            prior("decode_step"),
            prior("decode_block").times(fast * model.layers),
            prior("decode_sequence").times(fast * together),
            reading,
        ]
    )


def _making(subject: JobProfile, work: Workload) -> Effort:
    assert work.model is not None
    start = prior("torch_start").times(0.6)
    if "hidden_size" in subject.config:
        amount = work.tokens.times(value("characters_per_token") / value("tokenizer_rate"))
        amount = amount.widened(prior("tokenizer_rate").spread)
        return _sum([start, amount], amount, work.tokens.spread)
    rate = prior("download_rate" if "repo" in subject.config else "load_rate")
    amount = Quantity(work.disk.median / rate.median, rate.spread)
    return _sum([start, amount], amount, work.disk.spread)


def _sum(parts: list[Quantity], amount: Quantity, workload_spread: float) -> Effort:
    """The parts together; the workload's spread counts by the share of what grows with it."""
    seconds = total(parts)
    share = amount.median / seconds.median
    rates = total([Quantity(part.median, part.spread) for part in parts]).widened(_UNSEEN.spread)
    return Effort(seconds, rates.spread, share * workload_spread)


def _micro_steps(subject: JobProfile) -> float:
    """Forward and backward passes in an optimiser step."""
    arguments = subject.config.get("arguments")
    steps = arguments.get("gradient_accumulation_steps") if isinstance(arguments, dict) else None
    return float(steps) if isinstance(steps, (int, float)) else 1.0


def _checkpoints(subject: JobProfile) -> bool:
    arguments = subject.config.get("arguments")
    return isinstance(arguments, dict) and bool(arguments.get("gradient_checkpointing"))


def _weight_bytes(model: ModelShape, machine: ComputeProfile) -> float:
    return model.parameters.median * (2 if machine.is_gpu else 4)


def _two_digits(number: float) -> float:
    return float(f"{number:.1e}")
