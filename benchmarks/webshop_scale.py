"""Does WebShop scale to its full catalogue? `python -m benchmarks.webshop_scale --products 100000`.

Catalogues of the released schema with texts as long as the released ones (words drawn by rank, as
in language), read from files by a process of their own: seconds of processor time, memory, and the
time of a search. The last line is what 1.18 million products would take, by proportion.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

from agentc_backends.environments.webshop.environment import WebShopEnvironment, WebShopShared
from agentc_backends.environments.webshop.invented import invent
from agentc_backends.environments.webshop.settings import WebShopSettings
from agentc_backends.environments.webshop.shop import open_shop

FULL = 1_181_436
_WORDS, _LONG = 60_000, 60
_CATALOGUE, _ATTRIBUTES, _PEOPLE = "items_shuffle.json", "items_ins_v2.json", "items_human_ins.json"


def write_catalogue(folder: Path, products: int) -> None:
    """The three files, as released ones are written. One product in a hundred has a person's
    instruction, as in the release."""
    random = Random(f"scale/{products}")
    weights = list(accumulate(1 / (rank + 3) for rank in range(_WORDS)))
    words = [f"{'bcdfgklmnprst'[n % 13]}{'aeiou'[n % 5]}{n:x}" for n in range(_WORDS)]
    rows, known = invent(products, 0)
    asked = {}
    for row in rows:
        more = random.choices(words, cum_weights=weights, k=_LONG)
        row["full_description"] += " " + " ".join(more)
        if random.random() < 0.01:
            asin = row["asin"]
            asked[asin] = [{
                "instruction": f"i want {row['query']}", "instruction_options": [],
                "instruction_attributes": known[asin]["attributes"][:1],
            }]  # fmt: skip
    for name, value in ((_CATALOGUE, rows), (_ATTRIBUTES, known), (_PEOPLE, asked)):
        (folder / name).write_text(json.dumps(value), encoding="utf-8")


def measure(folder: Path, by_people: bool) -> dict[str, float]:
    """Opens the shop of a folder in this process."""
    names = (_CATALOGUE, _ATTRIBUTES, _PEOPLE)
    settings = WebShopSettings(
        catalogue=names[0], attributes=names[1], instructions=names[2] if by_people else None,
        products=None, human_goals=by_people,
    )  # fmt: skip
    start = time.process_time()
    shop = open_shop(settings.shop, lambda path: (folder / path).read_bytes())
    read = time.process_time()
    shop.search("")
    indexed = time.process_time()
    goals = Random(0).sample(range(len(shop.goals)), min(200, len(shop.goals)))
    for number in goals:
        shop.search(shop.goals[number].instruction)
    searched = time.process_time()
    for number in goals:
        shop.search(shop.goals[number].instruction)
    again = time.process_time()
    line = f"0-{len(shop.goals) - 1}"
    environment = WebShopEnvironment(WebShopShared(shop, settings, {"all": line}))
    environment.reset(f"webshop_{goals[0]}")
    return {
        "goals": len(shop.goals),
        "read": read - start,
        "index": indexed - read,
        "search_first": 1000 * (searched - indexed) / len(goals),
        "search": 1000 * (again - searched) / len(goals),
        "file": (folder / _CATALOGUE).stat().st_size / 1e6,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def measured(products: int) -> list[dict[str, float]]:
    """With generated goals and with people's, each in a process of its own."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own too, for what makes the files must not count as memory.
        for extra in (["--write"], [], ["--people"]):
            command = [sys.executable, "-m", "benchmarks.webshop_scale", "--in", folder, *extra]
            command += ["--products", str(products)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            if done.stdout:
                rows.append(json.loads(done.stdout))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.webshop_scale", description=__doc__)
    parser.add_argument("--products", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--people", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.folder is not None:
        if options.write:
            write_catalogue(options.folder, options.products[0])
        else:
            print(json.dumps(measure(options.folder, options.people)))
        return 0
    print(f"load average {os.getloadavg()[0]:.1f}; seconds are of processor time\n")
    print("| products | goals | catalogue | reading and goals | index | search, first 200 | "
          "search, then | memory at most |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for products in options.products:
        for kind, row in zip(("generated", "people's"), measured(products), strict=True):
            _print(f"{products:,}", kind, row)
    factor = FULL / options.products[-1]
    grown = {key: value * factor for key, value in row.items()}
    _print(f"{FULL:,}, by proportion", "people's", grown)
    return 0


def _print(products: str, kind: str, row: dict[str, float]) -> None:
    print(f"| {products} | {row['goals']:,.0f} {kind} | {row['file']:,.0f} MB "
          f"| {row['read']:.1f} s | {row['index']:.1f} s | {row['search_first']:.1f} ms "
          f"| {row['search']:.1f} ms | {row['memory']:,.0f} MB |", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
