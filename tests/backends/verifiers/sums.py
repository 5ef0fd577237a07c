"""A taskset of one turn for verifiers 0.4: sums, one point for the right number."""

import verifiers.v1 as vf


class SumData(vf.TaskData):
    answer: str


class SumsConfig(vf.TasksetConfig):
    tasks: int = 4


class SumTask(vf.Task[SumData, vf.State, vf.TaskConfig]):
    @vf.reward(weight=1.0)
    async def right(self, trace: vf.Trace) -> float:
        return float(self.data.answer in trace.last_reply)


class SumsTaskset(vf.Taskset[SumTask, SumsConfig]):
    def load(self):
        for i in range(self.config.tasks):
            data = SumData(name=f"sum-{i}", prompt=f"What is {i} + {i}?", answer=f"{2 * i}.")
            yield SumTask(data, self.config.task)


__all__ = ["SumsTaskset"]
