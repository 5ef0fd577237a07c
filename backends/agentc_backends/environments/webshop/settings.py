"""WebShop's settings: what a spec may write, and the splits of a shop's goals.

Splits are agentc's own, ranges, lists or files of goal numbers. Goals are told apart by what they
ask of which product, never by number alone: splits that share one are refused. They are resolved
while a spec is compiled, so that keys follow the goals themselves."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentc.program.settings import only_with, setting, unless
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import (
    ReadFile,
    SplitError,
    check_disjoint,
    check_names,
    content_of,
    excluded_splits,
    fold_numbers,
    unfold_numbers,
)
from agentc_backends.environments.webshop.pages import MOST_RESULTS, PAGE_SIZE

if TYPE_CHECKING:
    from agentc_backends.environments.webshop.shop import Shop


Numbers: TypeAlias = tuple[int, ...]

OWN = ("train", "dev", "test")
DEFAULT: Mapping[str, Any] = {name: {"own": name} for name in OWN}
_ITEM = re.compile(r"(?:webshop_|fixed_)?([0-9]{1,9})")
_OWN_LINE = re.compile(r"own (train|dev|test) \(([0-9]+)\)")


def read_splits(written: Mapping[str, Any], shop: Shop, read_file: ReadFile) -> dict[str, str]:
    """A line for each split: `own train (5502)` or numbers, `0-13,20`. Raises SplitError."""
    check_names(written)
    written = {name: _without_nulls(value) for name, value in written.items()}
    found = {name: _read(name, value, shop, read_file) for name, value in written.items()}
    for name, value in written.items():
        others = excluded_splits(name, value, found)
        left_out = {shop.identities[n] for other in others for n in found[other]}
        found[name] = tuple(n for n in found[name] if shop.identities[n] not in left_out)
        if not found[name]:
            raise SplitError(f"the split `{name}` holds no goal")
    check_disjoint(
        found,
        lambda shared: f"{len(shared)} goals, such as {shared[0]}",
        shop.identities.__getitem__,
    )
    return {name: _line(value, found[name]) for name, value in written.items()}


def _without_nulls(value: Any) -> Any:
    """Without keys that are null, as expressions write what a choice has no use for."""
    if not isinstance(value, Mapping):
        return value
    return {key: inner for key, inner in value.items() if inner is not None}


def numbers_of(line: str, shop: Shop) -> Numbers:
    """The goals of a line that `read_splits` made."""
    if match := _OWN_LINE.fullmatch(line):
        return shop.product_splits[match[1]]
    return unfold_numbers(line)


def size(line: str) -> int:
    match = _OWN_LINE.fullmatch(line)
    return int(match[2]) if match else len(unfold_numbers(line))


def task_id(number: int) -> str:
    """As published lists write it."""
    return f"webshop_{number}"


def _read(name: str, value: Any, shop: Shop, read_file: ReadFile) -> Numbers:
    total = len(shop.goals)
    match value:
        case {"own": str(own), **rest} if own in OWN:
            numbers = shop.product_splits[own]
        case {"range": [int(first), int(end)], **rest} if 0 <= first < end:
            numbers = tuple(range(first, min(end, total + 1)))
        case {"ids": list(ids), **rest} if ids:
            numbers = tuple(_number(name, "ids", each) for each in ids)
        case {"file": str(path), **rest}:
            numbers = _of_file(name, path, read_file)
        case _:
            raise SplitError(
                f"the split `{name}` is {json.dumps(value)[:80]}; expected `{{own: train|dev|"
                "test}`, `{range: [first, end]}` (the end is left out), `{ids: [...]}` or "
                "`{file: path}`"
            )
    if unknown := [key for key in rest if key not in ("except", "repeated")]:
        raise SplitError(f"the split `{name}` has an unknown key `{unknown[0]}`")
    if rest.get("repeated", "drop") != "drop":
        raise SplitError(f"the split `{name}`: `repeated` can only be `drop`")
    if beyond := [number for number in numbers if number >= total]:
        others = f" and {len(beyond) - 1} others beyond" if beyond[1:] else ""
        raise SplitError(
            f"the split `{name}` holds goal {beyond[0]}{others}, but the catalogue gives 0 to "
            f"{total - 1}: is the list of goals that people wrote, over another catalogue?"
        )
    if "repeated" in rest:
        return tuple(dict.fromkeys(numbers))
    if repeated := [number for number, count in Counter(numbers).items() if count > 1]:
        more = f" and {len(repeated) - 1} others" if repeated[1:] else ""
        raise SplitError(
            f"the split `{name}` holds goal {repeated[0]}{more} twice: write `repeated: drop` in "
            "it to take each once"
        )
    return numbers


def _of_file(name: str, path: str, read_file: ReadFile) -> Numbers:
    content = content_of(name, path, read_file)
    try:
        items = json.loads(content)
    except (ValueError, RecursionError):
        raise SplitError(f"the split `{name}`: {path} is no JSON") from None
    if not isinstance(items, (list, dict)) or not items:
        raise SplitError(f"the split `{name}`: {path} is no list of goals")
    return tuple(_number(name, path, each) for each in items)


def _number(name: str, place: str, item: Any) -> int:
    written = item.get("item_id") if isinstance(item, dict) else item
    match = _ITEM.fullmatch(str(written))
    if match is None:
        raise SplitError(
            f"the split `{name}`: {json.dumps(item)[:60]} in {place} is no goal's number, such as "
            "31 or webshop_31"
        )
    return int(match[1])


def _line(value: Mapping[str, Any], numbers: Numbers) -> str:
    own = value.get("own")
    whole = own is not None and "except" not in value
    return f"own {own} ({len(numbers)})" if whole else fold_numbers(numbers)


FILES = ("catalogue", "attributes", "instructions")


# fmt: off
_OF_CATALOGUE = only_with(
    "catalogue", because="an invented catalogue (no `catalogue`) has its own")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopOptions:
    """What makes the shop. Without `catalogue`, one is invented."""

    catalogue: str | None = setting(
        "WebShop's list of products (`items_shuffle*.json`, or .gz); null: an invented catalogue "
        "in the same form, for the real texts are not ours to ship.", None)
    attributes: str | None = setting(
        "Attributes and generated instructions of its products (`items_ins_v2*.json`).", None,
        only_if=_OF_CATALOGUE)
    instructions: str | None = setting(
        "Instructions that people wrote (`items_human_ins.json`).", None,
        only_if=(_OF_CATALOGUE, only_with(
            "human_goals", because="only `human_goals: true` reads them")))
    products: int | None = setting(
        "How many products: the first of the catalogue, or as many to invent; null: all.", 1000,
        minimum=1)
    invented_seed: int = setting("Seed of the invented catalogue.", 0, seed=True,
        only_if=unless(
            "catalogue", because="`catalogue` names products that are not invented"))
    human_goals: bool = setting(
        "Goals from people's instructions instead of generated ones.", False)
    price_seed: int = setting(
        "Seed of prices where a product has a range, and of the price limits of goals; as "
        "released, each process draws others.", 0, seed=True)
    shuffle_seed: int = setting(
        "Seed of the order of goals; with the released one, goals have the numbers of published "
        "lists.", 233, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebShopSettings(ShopOptions):
    # What a server is told are goals' numbers, however they are written.
    splits: Mapping[str, Any] = setting(
        "Goals of each split: `{own: train}` (or dev, test: no product is in two of them), "
        "`{range: [0, 500]}` (the end is left out), `{ids: [...]}` or `{file: path}` (a list of "
        "numbers or of items like webshop_31), each with `except: [other split]`, and `repeated: "
        "drop` where a list has a goal twice. Splits that share a goal are refused.", DEFAULT,
        rule=False)
    expert_query: Literal["instruction", "title"] = setting(
        "What the expert searches for: the instruction where that finds the product, or always "
        "the product's title.", "instruction")
    expert_thoughts: Literal["plain", "options", "none"] = setting(
        "Thoughts of the expert: a plain sentence for each action; for options only, with their "
        "names (`color: gray`, as in instructions); or none.", "plain")
    expert_case: Literal["lower", "shown"] = setting(
        "Letters of the expert's actions: lower case, as in published trajectories, or as the "
        "page shows them, which is easier to copy. Clicks heed no case.", "lower")
    page_size: int = setting(
        "Results on a page; ten as released. Fewer make observations shorter.", PAGE_SIZE,
        minimum=1, maximum=MOST_RESULTS)
    repeat_instruction: bool = setting(
        "Show the instruction on every page, as released, or only on the first page.", True)
    catalogue_sha256: str | None = setting("What the files have to be.", None, in_spec=False)

    @property
    def shop(self) -> ShopOptions:
        return ShopOptions(**{each.name: getattr(self, each.name) for each in fields(ShopOptions)})

    def rules(self) -> dict[str, Any]:
        """What the identity says of them; what files hold shows in digests, wherever they lie."""
        return {**rules_of(self), **{name: getattr(self, name) is not None for name in FILES}}
