"""ScienceWorld as AgentGym's released client finds it: it joins the task's description and the
room's by itself, and reads `score`. Neighbour: `environment.py`."""

from __future__ import annotations

from agentc_backends.environments.server.dialect import Answer, Dialect


def _opened(answer: Answer) -> object:
    room = str(answer["observation"]).removeprefix(f"{answer['task_description']}\n")
    # The released server looks around by a step, whose texts end without a newline.
    return {**answer, "observation": room.rstrip("\n")}


SCIWORLD = Dialect(bodiless_create=True, opened=_opened)
