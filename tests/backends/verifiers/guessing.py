"""A taskset of several turns for verifiers 0.4: an environment of its own answers guesses."""

import verifiers.v1 as vf


class GuessData(vf.TaskData):
    secret: int


class GuessTask(vf.Task[GuessData, vf.State, vf.TaskConfig]):
    pass


class GuessConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"})


class GuessEnv(vf.Env[GuessConfig]):
    async def run(self, task, agents):
        won = 0.0
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                if f"<{task.data.secret}>" in segment.last_reply:
                    won = 1.0
                    break
                segment = await interaction.turn("No. Guess again.")
        interaction.trace.record_reward("won", won, 1.0)


class GuessTaskset(vf.Taskset[GuessTask, vf.TasksetConfig]):
    def load(self):
        for i in range(3):
            data = GuessData(name=f"guess-{i}", prompt=f"Guess number {i}.", secret=i)
            yield GuessTask(data, self.config.task)


__all__ = ["GuessEnv", "GuessTaskset"]
