"""Goals, splits and the expert, over the invented catalogue and the released one."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.backends.webshop.webshop_products import asked, environment_of, row, shop_of

from agentc_backends.environments.server.splits import SplitError
from agentc_backends.environments.webshop.backend import BACKEND
from agentc_backends.environments.webshop.catalogue import CatalogueError, read_rows
from agentc_backends.environments.webshop.expert import expert_steps
from agentc_backends.environments.webshop.settings import (
    DEFAULT,
    ShopOptions,
    numbers_of,
    read_splits,
    size,
)
from agentc_backends.environments.webshop.shop import Shop, open_shop

DATA = Path(__file__).parents[4] / "shared" / "data"
FILES = {
    "catalogue": DATA / "webshop" / "items_shuffle_1000.reconstructed.json.gz",
    "attributes": DATA / "webshop" / "items_ins_v2_1000.json",
}


def nothing(path: str) -> bytes | None:
    return None


@pytest.fixture(scope="module")
def invented() -> Shop:
    return open_shop(ShopOptions(), nothing)


@pytest.fixture(scope="module")
def released() -> Shop:
    if not all(path.exists() for path in FILES.values()):
        pytest.skip("WebShop's files are not here; their texts are not part of this project")
    options = ShopOptions(**{name: str(path) for name, path in FILES.items()})
    return open_shop(options, lambda path: Path(path).read_bytes())


def lines(shop: Shop, written: Mapping[str, Any], **files: str) -> dict[str, str]:
    return read_splits(written, shop, lambda path: files[path].encode() if path in files else None)


def mean_of_expert(shop: Shop, query: str, goals: int) -> tuple[float, float]:
    """Mean reward and mean number of actions over a sample of goals."""
    environment = environment_of(shop, expert_query=query)
    rewards, actions = [], 0
    for number in random.Random(0).sample(range(len(shop.goals)), goals):
        environment.reset(f"webshop_{number}")
        for step in environment.expert_steps(f"webshop_{number}"):
            reward = environment.step(step.action)[1]
            actions += 1
        rewards.append(reward)
    return sum(rewards) / goals, actions / goals


def test_released_files_give_the_goals_of_published_lists(released: Shop) -> None:
    assert (len(released.products), len(released.goals)) == (1000, 6910)
    # Goal 0 as servers of AgentGym show it, but for its price limit.
    assert released.goals[0].instruction.startswith(
        'Find me double sided, machine washable decorative pillows with printing technology with '
        'size: 28" x 28"'
    )  # fmt: skip


def test_expert_over_the_released_files(released: Shop) -> None:
    mean, actions = mean_of_expert(released, "title", 300)
    assert mean > 0.985
    assert 4 < actions < 6


@pytest.mark.parametrize("query", ["instruction", "title"])
def test_expert_over_the_invented_catalogue(invented: Shop, query: str) -> None:
    assert mean_of_expert(invented, query, 100)[0] > 0.985


def test_expert_asks_as_the_instruction_does_where_that_suffices() -> None:
    """Among sixty like lamps the instruction does not find the last one; its own title does."""
    rows = [row(f"P{number}", name=f"Desk Lamp Model{number}") for number in range(60)]
    known = {"P2": asked("glass"), "P59": asked("glass")}
    shop = shop_of(rows, known)
    queries = {
        goal.product.asin: expert_steps(shop, goal, query="instruction")[0].action
        for goal in shop.goals
    }
    assert queries == {"P2": "search[find me glass desk lamps]",
                       "P59": "search[desk lamp model59]"}  # fmt: skip


def test_expert_copies_the_letters_of_the_page_where_asked_to(invented: Shop) -> None:
    environment = environment_of(invented, expert_case="shown", page_size=3)
    for number in range(40):
        task = f"webshop_{number}"
        page, _ = environment.reset(task)
        steps = environment.expert_steps(task)
        assert steps
        for step in steps:
            words = step.action.partition("[")[2].removesuffix("]")
            # Its own keywords are the instruction's, unless only the title finds the product.
            assert words in page or step is steps[0]
            page, reward, done, _, _ = environment.step(step.action)
        assert done
        assert reward > 0.5
        lower = environment_of(invented, page_size=3).expert_steps(task)
        assert [step.action.lower() for step in steps] == [step.action for step in lower]


def test_expert_thinks_of_options_by_name_where_asked_to(invented: Shop) -> None:
    environment = environment_of(invented, expert_thoughts="options")
    seen = 0
    for number in range(20):
        page, _ = environment.reset(f"webshop_{number}")
        for step in environment.expert_steps(f"webshop_{number}"):
            if step.thought:
                seen += 1
                wanted = step.thought.removeprefix("The instruction asks for ").removesuffix(".")
                assert wanted in page
                assert step.action == f"click[{wanted.partition(': ')[2]}]"
            else:
                assert step.action.startswith(("search[", "click[b0", "click[next", "click[buy"))
    assert seen > 20
    for step in environment_of(invented, expert_thoughts="none").expert_steps("webshop_0"):
        assert step.thought == ""


def test_buying_the_first_thing_found_is_worth_less(invented: Shop) -> None:
    """Else the catalogue would ask nothing of an agent."""
    environment = environment_of(invented)
    rewards = []
    for number in range(60):
        environment.reset(f"webshop_{number}")
        found = environment.step(f"search[{invented.goals[number].instruction}]")[0]
        first = next(part for part in found.split(" [SEP] ") if part.startswith("B0"))
        environment.step(f"click[{first}]")
        rewards.append(environment.step("click[buy now]")[1])
    assert 0.1 < sum(rewards) / len(rewards) < 0.7


def test_own_splits_share_no_product(invented: Shop) -> None:
    found = lines(invented, DEFAULT)
    parts = {name: numbers_of(line, invented) for name, line in found.items()}
    assert sum(map(len, parts.values())) == len(invented.goals)
    assert [size(found[name]) for name in found] == [len(part) for part in parts.values()]
    products = [{invented.goals[n].product.asin for n in part} for part in parts.values()]
    assert not products[0] & products[1]
    assert not products[0] & products[2]
    assert not products[1] & products[2]


def test_splits_that_share_a_goal_are_refused_and_can_be_mended(invented: Shop) -> None:
    written: dict[str, Any] = {"train": {"range": [0, 50]}, "test": {"ids": [7, 60]}}
    with pytest.raises(SplitError, match=r"share 1 goals, such as 7.*`except: \[train\]`"):
        lines(invented, written)
    written["train"]["except"] = ["test"]
    assert lines(invented, written) == {"train": "0-6,8-49", "test": "7,60"}


def test_goals_of_the_same_content_are_one_whatever_their_number() -> None:
    """A product that offers a value twice makes two goals that ask the same."""
    shop = shop_of([row("A", options={"color": ["red", "red", "blue"]})], {"A": asked("glass")})
    numbers = [n for n, goal in enumerate(shop.goals) if goal.options == (("color", "red"),)]
    assert len(numbers) == 2
    with pytest.raises(SplitError, match="share 1 goals"):
        lines(shop, {"train": {"ids": numbers[:1]}, "test": {"ids": numbers[1:]}})


def test_splits_from_files(invented: Shop) -> None:
    items = json.dumps([{"item_id": "webshop_31"}, {"item_id": "webshop_4"}])
    written = {"train": {"file": "map"}, "test": {"file": "items"}}
    found = lines(invented, written, items=items, map='{"6": 6, "8": 7}')
    assert found == {"train": "6,8", "test": "31,4"}


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({}, "no split"),
        ({"a b": {"own": "train"}}, "no name"),
        ({"train": {"own": "best"}}, "expected"),
        ({"train": {"range": [5, 5]}}, "expected"),
        ({"train": {"range": [0, 10**7]}}, "but the catalogue gives 0 to"),
        ({"train": {"ids": [1, 1]}}, "twice"),
        ({"train": {"ids": ["x"]}}, "no goal's number"),
        ({"train": {"file": "gone"}}, "no file gone"),
        ({"train": {"file": "bad"}}, "no JSON"),
        ({"train": {"own": "train", "but": 1}}, "unknown key `but`"),
        ({"train": {"own": "train", "except": ["dev"]}}, "names no other split"),
    ],
)
def test_what_is_wrong_with_splits(invented: Shop, written: dict[str, Any], says: str) -> None:
    with pytest.raises(SplitError, match=says):
        lines(invented, written, bad="{")


def test_published_lists_leave_nothing_in_two_splits(released: Shop) -> None:
    folder = DATA / "splits"
    files = {name: (folder / f"agentr_webshop_{name}.json").read_text()
             for name in ("train_clean", "test")}  # fmt: skip
    written = {"train": {"file": "train_clean", "except": ["test"]}, "test": {"file": "test"}}
    found = lines(released, written, **files)
    parts = [{released.goals[n].identity for n in numbers_of(line, released)}
             for line in found.values()]  # fmt: skip
    assert size(found["test"]) == 200
    assert not parts[0] & parts[1]


def test_prices_and_limits_come_from_their_seed() -> None:
    rows = [row(f"P{number}", pricing="$20 to $60") for number in range(8)]
    known = {f"P{number}": asked("glass") for number in range(8)}
    shops = [shop_of(rows, known, price_seed=seed) for seed in (0, 0, 1)]
    assert shops[0].prices == shops[1].prices != shops[2].prices
    assert shop_of(rows[:3], known).prices == {k: shops[0].prices[k] for k in ("P0", "P1", "P2")}
    for goal in shops[0].goals:
        price = shops[0].prices[goal.product.asin]
        assert 20 <= price <= 60
        assert price < goal.price_limit <= price + 40


def test_goals_of_people() -> None:
    told = {"A": [{"instruction": "i want a lamp.", "instruction_attributes": ["glass"],
                   "instruction_options": ["red"]},
                  {"instruction": "any", "instruction_attributes": [],
                   "instruction_options": []}]}  # fmt: skip
    files = {"rows": json.dumps([row("A", options={"color": ["red", "blue"]})]).encode(),
             "known": b'{"A": {"attributes": ["glass"]}}',
             "told": json.dumps(told).encode()}  # fmt: skip
    options = ShopOptions(
        catalogue="rows", attributes="known", instructions="told", human_goals=True
    )
    shop = open_shop(options, files.get)
    assert [goal.instruction.split(",")[0] for goal in shop.goals] == ["i want a lamp"]
    assert mean_of_expert(shop, "title", 1)[0] == 1.0


@pytest.mark.parametrize("packed", [False, True])
def test_a_catalogue_is_read_row_by_row(packed: bool) -> None:
    """Rows that are cut by the pieces that it is read in, and no further than asked."""
    rows = [{"number": n, "text": "é★💖" * 90_000} for n in range(6)]
    content = ("\n " + json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode()
    assert len(content) > 3 << 20
    content = gzip.compress(content) if packed else content
    assert list(read_rows(content, "rows")) == rows
    broken = content if packed else content[:-100_000]
    assert list(islice(read_rows(broken, "rows"), 4)) == rows[:4]
    if not packed:
        with pytest.raises(CatalogueError, match="rows is no JSON"):
            list(read_rows(broken, "rows"))


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"{", "no JSON"), (b"{}", "no list"), (b"[]", "no product"), (b"[{}]", "row 0"),
     (b"\x1f\x8bxx", "no JSON"), (b"", "no JSON"), (b"[{", "no JSON"), (b"\xff", "no JSON"),
     (b'{"a": [', "no JSON")],
)  # fmt: skip
def test_what_is_wrong_with_a_catalogue(content: bytes, says: str) -> None:
    options = ShopOptions(catalogue="rows", attributes="known")
    with pytest.raises(CatalogueError, match=says):
        open_shop(options, {"rows": content, "known": b"{}"}.get)
    with pytest.raises(CatalogueError, match="no file"):
        open_shop(options, nothing)


def test_tasks_are_stated_where_the_splits_are_told() -> None:
    assert BACKEND.expected_tasks is not None
    assert BACKEND.expected_tasks({"splits": {"all": "0-99"}}) == {"all": (100.0, 1.0)}
    # What an older result tells of its shop may have none.
    assert BACKEND.expected_tasks({}) == {}
