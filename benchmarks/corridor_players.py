"""The corridor played by a small model that reads its whole conversation, without a server.

Chance follows from the numbers that `play` is given. For `trl_resume.py` and `trl_corridor.py`.
"""

from __future__ import annotations

from pathlib import Path

from tests.torch.online_rl.wanderer import ACKNOWLEDGEMENT, INSTRUCTION

from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.model import end_tokens, load_tokenizer
from agentc_backends.environments.corridor.rules import ROOMS, goes_on, outcome
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.readers import Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import Episode, EpisodeTurn
from agentc_backends.trainers.online_rl.sampling import Decode, DrawRequest, Sampler


class Players:
    """The model of a checkpoint and the episodes that it plays."""

    def __init__(self, folder: Path) -> None:
        self.policy = load_model(folder).eval()
        self.tokenizer = load_tokenizer(str(folder))
        self.sampler = Sampler(self.policy)
        self.decode = Decode(max_tokens=4, ends=end_tokens(self.policy, self.tokenizer))
        self._chat = ChatText(str(folder), self.tokenizer)

    def play(self, seed: int, episodes: int, longest: int) -> list[Episode]:
        """So many episodes from the first room, of at most `longest` turns; all that was said is
        shown."""
        opening = [
            {"role": "user", "content": INSTRUCTION},
            {"role": "assistant", "content": ACKNOWLEDGEMENT},
            {"role": "user", "content": ROOMS[0]},
        ]
        said = [[*opening] for _ in range(episodes)]
        rooms: list[int | None] = [0] * episodes
        turns: list[list[EpisodeTurn]] = [[] for _ in range(episodes)]
        for step in range(longest):
            going = [number for number, room in enumerate(rooms) if room is not None]
            prompts = [
                self._chat.encode(
                    said[number], add_generation_prompt=True, continue_final_message=False
                )
                for number in going
            ]
            keys = [((seed * episodes + number) * longest + step, 0) for number in going]
            asked = [DrawRequest(*pair) for pair in zip(prompts, keys, strict=True)]
            drawn = self.sampler.draw(asked, self.decode)
            for number, prompt, reply in zip(going, prompts, drawn, strict=True):
                action = self.tokenizer.decode(reply.ids, skip_special_tokens=True).strip()
                onward = goes_on("corridor", seed * episodes + number, step)
                found = outcome(rooms[number] or 0, action, goes_on=onward)
                state = TextPrefix(Text(tuple(prompt)), len(prompt))
                turns[number].append(EpisodeTurn(state, Text(reply.ids), found.reward))
                said[number] += [
                    {"role": "assistant", "content": action},
                    {"role": "user", "content": found.seen},
                ]
                rooms[number] = found.room
        return [Episode(tuple(each)) for each in turns]
