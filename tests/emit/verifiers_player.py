"""Run by a Python that has verifiers and an exported package: plays one task of it by verifiers'
own loaders and loop, and prints what the trace holds. Words: the taskset, its settings as JSON, the
task's name, and the address of a model, whose key is PLAYER_KEY."""

import asyncio
import json
import sys

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_environment, resolve_env_config


async def main(taskset: str, settings: str, name: str, url: str) -> None:
    config = resolve_env_config({"taskset": {"id": taskset, **json.loads(settings)}})
    environment = load_environment(config)
    tasks = list(environment.taskset)
    context = vf.ModelContext(
        client=vf.EvalClientConfig(base_url=f"{url}/v1", api_key_var="PLAYER_KEY"),
        model="policy",
        sampling=vf.SamplingConfig(),
    )
    async with environment.serving():
        [slot] = environment.slots(next(task for task in tasks if task.data.name == name))
        episode = await environment.run_slot(slot, context)
    [trace] = episode.traces
    json.dump(
        {
            "tasks": len(tasks),
            "errors": [str(error) for error in (*episode.errors, trace.last_error) if error],
            "said": [[m.role, m.content] for m in trace.messages],
            "reward": trace.reward,
            "metrics": trace.metrics,
        },
        sys.stdout,
    )


asyncio.run(main(*sys.argv[1:]))
