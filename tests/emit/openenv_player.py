"""Run by a Python that has openenv: plays by the client of an exported package (its folder is the
first word, the address the second, actions follow), and prints what it was told."""

import importlib
import json
import sys
from pathlib import Path

package, url, *actions = sys.argv[1:]
sys.path.insert(0, str(Path(package).parent))
name = Path(package).name
world = importlib.import_module(name)
client = next(getattr(world, each) for each in world.__all__ if each.endswith("Env"))
action = next(getattr(world, each) for each in world.__all__ if each.endswith("Action"))
with client(base_url=url).sync() as played:
    told = [played.reset(split="test", seed=3)]
    told += [played.step(action(action=each)) for each in actions]
    print(json.dumps([[each.observation.text, each.reward, each.done] for each in told]))
