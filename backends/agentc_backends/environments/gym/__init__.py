"""Any environment as a `gymnasium.Env`, in this process and without a server.

    from agentc_backends.environments.gym import make

    env = make("env.textcraft", split="test", max_depth=2)

`environment.py` is the adapter, `make.py` checks the settings as a spec's are. Nothing else of the
project imports this package; it needs gymnasium, and the environment's own software, beside agentc.
"""

from agentc_backends.environments.gym.environment import TextEnvironment
from agentc_backends.environments.gym.make import SettingsError, make

__all__ = ["SettingsError", "TextEnvironment", "make"]
