"""The world and its server: the agent names the numbers of a task, the smallest first."""

import sys
from dataclasses import dataclass
from itertools import permutations

from agentc.program.settings import setting
from agentc_backends.environments.server.program import program
from agentc_backends.environments.server.world import ExpertAction, TextWorld


@dataclass(frozen=True, kw_only=True)
class SortingSettings:
    length: int = setting("How many numbers there are.", 4, minimum=2, maximum=6)


class Sorting(TextWorld):
    name = "sorting"

    def __init__(self, settings):
        numbers = range(1, settings.length + 1)
        lists = ["-".join(map(str, each)) for each in permutations(numbers)]
        super().__init__({"train": lists[::2], "test": lists[1::2]}, settings)

    def begin(self, task_id, seed):
        self.left = sorted(task_id.split("-"))
        return f"Name these numbers one by one, the smallest first: {task_id}"

    def act(self, action):
        if action.strip() != self.left[0]:
            return "That is not the smallest number left.", 0.0, False
        del self.left[0]
        return f"{len(self.left)} to go.", float(not self.left), not self.left

    def expert_steps(self, task_id, *, seed=0):
        return [ExpertAction(number, "The smallest left.") for number in sorted(task_id.split("-"))]


def open_world(settings):
    return lambda: Sorting(settings)


opener, main = program(SortingSettings, open_world)

if __name__ == "__main__":
    sys.exit(main())
