"""WebShop's speed beside the released engine's: `PYTHON -m benchmarks.webshop`.

PYTHON and the variables are those of `benchmarks.webshop_equality`. Both play the same walks of the
expert in the same process, one after the other, in turns; the server is ours behind HTTP with one
client. The released engine is given our search, so that no Lucene is timed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random

from agentc_backends.environments.webshop.environment import WebShopEnvironment, WebShopShared
from agentc_backends.environments.webshop.expert import expert_steps
from agentc_backends.environments.webshop.settings import WebShopSettings
from benchmarks.served import call, started
from benchmarks.side_by_side import Player, print_table
from benchmarks.webshop_equality import same_words
from benchmarks.webshop_upstream.engine import (
    files_in,
    released_environment,
    released_server,
    with_prices_of,
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.webshop", description=__doc__)
    parser.add_argument("--episodes", type=int, default=40, help="of each turn")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    checkout, data = (os.environ.get(name) for name in ("AGENTC_WEBSHOP", "AGENTC_WEBSHOP_DATA"))
    if not checkout or not data:
        parser.error("set AGENTC_WEBSHOP (a checkout) and AGENTC_WEBSHOP_DATA (WebShop's data)")
    files = files_in(Path(data))
    shop = files.shop()
    random = Random(0)
    walks = [(n, [step.action for step in expert_steps(shop, shop.goals[n], query="title")])
             for n in random.sample(range(len(shop.goals)), options.episodes)]  # fmt: skip
    silent = StringIO()
    with (
        tempfile.TemporaryDirectory() as scratch,
        redirect_stdout(silent),
        redirect_stderr(silent),
    ):
        server = released_server(
            Path(checkout), files, shop, same_words, Path(scratch), by_people=False
        )
        with_prices_of(server, shop)
        released = released_environment(server)
    ours = WebShopEnvironment(
        WebShopShared(shop, WebShopSettings(), {"all": f"0-{len(shop.goals) - 1}"})
    )
    options_of_server = ["--catalogue", str(files.catalogue), "--attributes", str(files.attributes)]
    with started("webshop", options_of_server) as ours_served:
        client = ours_served.client()
        session = call(client, "/create")["id"]
        players: dict[str, Player] = {
            "released engine, in process": (released.reset, released.step),
            "ours, in process": (lambda n: ours.reset(f"webshop_{n}"), ours.step),
            "ours, server with one client": (
                lambda n: call(client, "/reset", id=session, task_id=f"webshop_{n}"),
                lambda action: call(client, "/step", id=session, action=action),
            ),
        }
        print_table(players, walks, options.turns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
