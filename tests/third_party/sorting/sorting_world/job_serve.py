"""The world and its server: the agent names the numbers of a task, the smallest first."""

import sys
from itertools import permutations

from agentc_backends.environment_server.world import Step, TextWorld, program


class Sorting(TextWorld):
    name = "sorting"

    def __init__(self, length):
        lists = ["-".join(map(str, each)) for each in permutations(range(1, length + 1))]
        super().__init__({"train": lists[::2], "test": lists[1::2]}, {"length": length})

    def begin(self, task_id, seed):
        self.left = sorted(task_id.split("-"))
        return f"Name these numbers one by one, the smallest first: {task_id}"

    def act(self, action):
        if action.strip() != self.left[0]:
            return "That is not the smallest number left.", 0.0, False
        del self.left[0]
        return f"{len(self.left)} to go.", float(not self.left), not self.left

    def expert_steps(self, task_id, *, seed=0):
        return [Step(number, "The smallest left.") for number in sorted(task_id.split("-"))]


opener, main = program(Sorting, length=int)

if __name__ == "__main__":
    sys.exit(main())
